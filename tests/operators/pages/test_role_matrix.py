"""Which role may open each page of the back office, and send each of its forms.

A page without a row fails. No role is shown a link to a page that it may not open.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from accounts.models import ApiKey
from cases.models import CaseFile
from catalogue.models import VoucherCode
from core.backoffice.staff_roles import StaffRole
from merchants.models import Membership, Role
from merchants.people.invitations import invite_person
from operators.imports.models import ImportKind
from operators.telegram.models import PlatformSettings
from tests.factories import make_merchant
from tests.merchants.people import make_member
from tests.operators.back_office import (
    World,
    browser_with,
    list_url,
    make_proof,
    make_staff,
    people_read_once,
    rows_for_a_module,
    shown_models,
    signed_in,
    url,
    without_frame,
)
from topups.fulfilment.transitions import Move
from topups.models import DeliveryProof

pytestmark = pytest.mark.menu

LETTERS = {
    "A": StaffRole.ADMINISTRATOR,
    "M": StaffRole.MERCHANT_MANAGER,
    "S": StaffRole.SUPPORT,
    "K": StaffRole.STOCK_KEEPER,
    "F": StaffRole.FINANCE,
    "O": StaffRole.OPERATOR,
    "P": StaffRole.SENIOR_OPERATOR,
    "R": StaffRole.AUDITOR,
}
ALL = "".join(LETTERS)
LINK = re.compile(r'href="(/admin/[^"#]*)"')
# The parts of a page that have links of its own. The menu is the same on all pages.
LINKS = (
    "{% block nav-global %}{% endblock %}{% block nav-global-side %}{% endblock %}"
    "{% block content %}{% endblock %}"
)

# The roles that may view, add, change and delete the rows of a model.
MODELS: dict[str, tuple[str, str, str, str]] = {
    "accounts.account": ("AMSFR", "AM", "AM", ""),
    "accounts.apiclient": ("MSFR", "M", "M", ""),
    "accounts.owncompany": ("AFR", "", "A", ""),
    "accounts.requestrecord": ("MSFR", "", "", ""),
    "audit.auditentry": ("AR", "", "", ""),
    "auth.group": ("AR", "A", "A", "A"),
    "auth.user": ("AR", "A", "A", ""),
    "cases.case": ("SFR", "", "", ""),
    "catalogue.batch": ("KR", "", "K", ""),
    "catalogue.category": ("AMSKR", "K", "K", "K"),
    "catalogue.codehold": ("KR", "", "", ""),
    "catalogue.pricelist": ("AMSKR", "K", "K", ""),
    "catalogue.pricelistentry": ("AMSKR", "", "", ""),
    "catalogue.product": ("AMSKFR", "K", "K", "K"),
    "catalogue.referencelink": ("MSKR", "MK", "MK", "MK"),
    "catalogue.shelf": ("AMSKR", "", "K", ""),
    "catalogue.vouchercode": ("SKR", "", "", ""),
    "idempotency.idempotencyrecord": ("SR", "", "", ""),
    "imports.fileimport": ("KFR", "", "", ""),  # F: those of exchange rates
    "merchants.email": ("AMSR", "", "", ""),
    "merchants.emailedreport": ("AMFR", "AMF", "", "AMF"),
    "merchants.invitation": ("MSR", "M", "", ""),
    "merchants.membership": ("MSR", "", "", ""),
    "figures.exchangerate": ("FR", "F", "F", "F"),
    "figures.stockthreshold": ("KR", "K", "K", "K"),
    "warnings.staffwarning": ("AMSKFPR", "", "", ""),
    "warnings.warningrule": ("AR", "", "A", ""),
    "orders.lostpurchase": ("FR", "", "", ""),
    "orders.order": ("MSFR", "", "", ""),
    "telegram.announcement": ("APR", "", "", ""),
    "telegram.announcementroute": ("AR", "A", "A", "A"),
    "telegram.platformsettings": ("AR", "", "A", ""),
    "telegram.telegramlink": ("AR", "", "", "A"),
    "topups.fulfilment": ("SFOPR", "", "", ""),
    "topups.topupproduct": ("AMSKR", "K", "K", ""),
    "upkeep.reconcilerun": ("AFR", "", "", ""),
    "wallets.announcedtransfer": ("FR", "", "", ""),
    "wallets.bankdetails": ("AFR", "A", "A", ""),
    "wallets.bookingapproval": ("FR", "", "", ""),
    "wallets.bookinglimit": ("AFR", "A", "A", ""),
    "wallets.dailyclose": ("FR", "", "", ""),
    "wallets.walletclose": ("FR", "", "", ""),
    "wallets.ledgerentry": ("FR", "", "", ""),
    "wallets.wallet": ("FR", "", "", ""),
}

# The roles that may open (GET) another page, and send its form (POST).
PAGES: dict[str, tuple[str, str]] = {
    "admin:accounts_account_book": ("F", "F"),
    "admin:accounts_account_choose_list": ("M", "M"),
    "admin:accounts_account_company": ("AM", "AM"),
    "admin:accounts_account_decide_company": ("AM", "AM"),
    "admin:accounts_account_prices": ("AMSFR", "AMSFR"),
    "admin:accounts_account_switch_off": ("AM", "AM"),
    "admin:accounts_account_switch_on": ("AM", "AM"),
    "admin:accounts_apiclient_issue": ("M", "M"),
    "admin:accounts_apiclient_revoke_key": ("M", "M"),
    "admin:accounts_apiclient_rotate": ("M", "M"),
    "admin:accounts_apiclient_switch_off": ("M", "M"),
    "admin:accounts_apiclient_switch_on": ("M", "M"),
    "admin:auth_user_password_change": ("", ""),
    "admin:auth_user_end_access": ("A", "A"),
    "admin:auth_user_end_sessions": ("A", "A"),
    "admin:auth_user_remove_second_factor": ("A", "A"),
    "admin:auth_user_send_link": ("A", "A"),
    "admin:auth_user_unlock_sign_in": ("A", "A"),
    "admin:cases_case_answer": ("S", "S"),
    "admin:cases_case_assign": ("SF", "SF"),
    "admin:cases_case_credit": ("SF", "SF"),
    "admin:cases_case_decline": ("F", "F"),
    "admin:cases_case_file": ("SFR", "SFR"),
    "admin:cases_case_propose": ("S", "S"),
    "admin:cases_case_reject": ("S", "S"),
    "admin:cases_case_replace": ("F", "F"),
    "admin:catalogue_batch_hold": ("K", "K"),
    "admin:catalogue_batch_recall": ("KR", "KR"),
    "admin:catalogue_batch_recall_file": ("KR", "KR"),
    "admin:catalogue_batch_release": ("K", "K"),
    "admin:catalogue_batch_take_back": ("K", "K"),
    "admin:catalogue_batch_void": ("K", "K"),
    "admin:catalogue_codehold_release": ("K", "K"),
    "admin:catalogue_codehold_void": ("K", "K"),
    "admin:catalogue_pricelist_add_price": ("K", "K"),
    "admin:catalogue_pricelist_compare": ("AMSKR", "AMSKR"),
    "admin:catalogue_pricelist_compare_list": ("AMSKR", "AMSKR"),
    "admin:catalogue_pricelist_import_prices": ("K", "K"),
    "admin:catalogue_pricelist_import_prices_of_list": ("K", "K"),
    "admin:catalogue_pricelist_set_prices": ("K", "K"),
    "admin:catalogue_pricelistentry_end": ("K", "K"),
    "admin:figures_exchangerate_import_rates": ("F", "F"),
    "admin:catalogue_product_import_catalogue": ("K", "K"),
    "admin:catalogue_shelf_change_price": ("K", "K"),
    "admin:catalogue_shelf_import_codes": ("K", "K"),
    "admin:catalogue_shelf_new_prices": ("K", "K"),
    "admin:catalogue_shelf_withdraw_price": ("K", "K"),
    "admin:catalogue_vouchercode_hold": ("K", "K"),
    "admin:catalogue_vouchercode_import_codes": ("K", "K"),
    "admin:catalogue_vouchercode_release": ("K", "K"),
    "admin:catalogue_vouchercode_reveal": ("", ""),
    "admin:catalogue_vouchercode_void": ("K", "K"),
    "admin:imports_fileimport_new_catalogue": ("K", "K"),
    "admin:imports_fileimport_new_codes": ("K", "K"),
    "admin:imports_fileimport_new_prices": ("K", "K"),
    "admin:imports_fileimport_new_rates": ("F", "F"),
    "admin:imports_fileimport_export": ("K", "K"),
    "admin:imports_fileimport_part": ("K", "K"),
    "admin:imports_fileimport_changes": ("KR", "KR"),
    "admin:imports_fileimport_problems": ("KR", "KR"),
    "admin:imports_fileimport_progress": ("KR", "KR"),
    "admin:imports_fileimport_step": ("K", "K"),
    "admin:imports_fileimport_upload": ("K", "K"),
    "admin:merchants_membership_block": ("MS", "MS"),
    "admin:merchants_membership_end_sessions": ("MS", "MS"),
    "admin:merchants_membership_remove_second_factor": ("MS", "MS"),
    "admin:merchants_membership_unblock": ("MS", "MS"),
    "admin:merchants_membership_unlock_sign_in": ("MS", "MS"),
    "admin:merchants_invitation_approve": ("M", "M"),
    "admin:merchants_invitation_withdraw": ("M", "M"),
    "admin:orders_lostpurchase_settle": ("F", "F"),
    "admin:orders_lostpurchase_settle_all": ("F", "F"),
    "admin:orders_order_credit": ("F", "F"),
    "admin:orders_order_open_case": ("S", "S"),
    "admin:orders_order_reveal": ("", ""),
    "admin:topups_fulfilment_add_proof": ("OP", "OP"),
    "admin:topups_fulfilment_dashboard": ("SFOPR", "SFOPR"),
    "admin:topups_fulfilment_deliver_next": ("OP", "OP"),
    "admin:topups_fulfilment_glance": ("SFOPR", "SFOPR"),
    "admin:topups_fulfilment_move": ("OP", "OP"),
    "admin:topups_fulfilment_next": ("OP", "OP"),
    "admin:topups_fulfilment_proof_file": ("SFOPR", "SFOPR"),
    "admin:topups_fulfilment_report": ("SFOPR", "SFOPR"),
    "admin:topups_fulfilment_strip": ("SFOPR", "SFOPR"),
    "admin:topups_fulfilment_viewers": ("SFOPR", "SFOPR"),
    "admin:topups_topupproduct_change_price": ("K", "K"),
    "admin:topups_topupproduct_new_prices": ("K", "K"),
    "admin:topups_topupproduct_withdraw_price": ("K", "K"),
    "admin:upkeep_reconcilerun_progress": ("AFR", "AFR"),
    "admin:upkeep_reconcilerun_run_now": ("AF", "AF"),
    "admin:wallets_announcedtransfer_close": ("F", "F"),
    "admin:wallets_announcedtransfer_confirm": ("F", "F"),
    "admin:wallets_bookingapproval_approve": ("F", "F"),
    "admin:wallets_bookingapproval_reject": ("F", "F"),
    "admin:wallets_ledgerentry_reverse": ("F", "F"),
    "admin:wallets_wallet_statement": ("FR", "FR"),
    "admin:wallets_wallet_book": ("F", "F"),
    "audit_trail": ("AR", ""),
    "audit_trail_file": ("AR", ""),
    "who_saw_codes": ("AR", ""),
    "month_end": ("FR", ""),
    "margins": ("FR", ""),
    "margins_file": ("FR", ""),
    "system": (ALL, ALL),
    "system_now": (ALL, ALL),
    "telegram_link": (ALL, ALL),
}

# The roles that are offered each action on the rows that are ticked in a list.
ACTIONS = {
    "catalogue.referencelink: delete_selected": "MK",
    "catalogue.shelf: change_prices": "K",
    "catalogue.vouchercode: hold_selected": "K",
    "catalogue.vouchercode: release_selected": "K",
    "catalogue.vouchercode: void_selected": "K",
    "telegram.announcement: announce_again_selected": "AP",
    "topups.fulfilment: claim_selected": "OP",
    "topups.fulfilment: complete_selected": "OP",
    "topups.fulfilment: reject_selected": "OP",
    "topups.fulfilment: reject_unrefunded_selected": "P",
    "topups.fulfilment: release_selected": "OP",
    "topups.fulfilment: review_selected": "OP",
    "topups.topupproduct: change_prices": "K",
}

# Pages of everybody: their own password, second factor and passkeys, and what signs in or out.
OWN = {
    "admin:autocomplete",  # asks the page of the rows (test_admin_permissions.py)
    "admin:index",
    "admin:jsi18n",
    "admin:login",
    "admin:logout",
    "admin:password_change",
    "admin:password_change_done",
    "admin:search",  # each finder asks its model (test_search.py)
    "admin:view_on_site",
    "begin",  # asks for the right of its action (test_search.py)
    "find_batches",  # and so does its search (test_search.py)
    "note",  # asks the page of its row (test_timelines.py)
    "otp_webauthn:credential-authentication-begin",
    "otp_webauthn:credential-authentication-complete",
    "otp_webauthn:credential-registration-begin",
    "otp_webauthn:credential-registration-complete",
    "otp_webauthn:js-i18n-catalog",
    "passkey_remove",
    "passkeys",
    "cancel_prepared_file",
    "end_request",  # the asker, and who may agree (test_asked_changes.py)
    "prepared_file",  # only who asked for a file gets it (test_prepared_files.py)
    "prepared_file_part",
    "search",
    "staff_forgotten",
    "staff_password",
    "time_zone",
    "two_factor",
    "two_factor_enrol",
}
OF_MODELS = ("changelist", "add", "change", "delete", "history", "list_file")
EXPORTERS = "AMKFR"  # the roles that download the lists they see


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """One row of every model."""
    with rows_for_a_module(django_db_blocker), people_read_once():
        make_proof(make_merchant())
        World().grow(1)
        PlatformSettings.objects.get_or_create()
        yield


def more_arguments(name: str) -> list[Any]:
    """The arguments of an address after, or instead of, the key of a row."""
    arguments: dict[str, list[Any]] = {
        "admin:imports_fileimport_export": ["csv"],
        "admin:imports_fileimport_upload": [ImportKind.CODES],
        "admin:imports_fileimport_step": ["discard"],
        "admin:topups_fulfilment_move": [Move.CLAIM],
        "admin:wallets_wallet_statement": ["2026-01", "csv"],
        "admin:topups_fulfilment_proof_file": [DeliveryProof.objects.latest("pk").pk],
        "admin:cases_case_file": [CaseFile.objects.latest("message__case", "pk").pk],
        "admin:accounts_apiclient_revoke_key": [ApiKey.objects.latest("pk").pk],
    }
    return arguments.get(name, [])


def address_of(name: str) -> str:
    """The address of a page, about the newest row of its model."""
    more = more_arguments(name)
    for model in shown_models():
        if name.startswith(f"admin:{model._meta.app_label}_{model._meta.model_name}_"):
            try:
                return reverse(name, args=[latest(model).pk, *more])
            except NoReverseMatch:
                return reverse(name, args=more)
    return reverse(name)


def names_of_pages(resolver: Any = None, before: str = "", space: str = "") -> set[str]:
    """The names of all pages under /admin/."""
    names: set[str] = set()
    for pattern in (resolver or get_resolver()).url_patterns:
        address = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            names |= names_of_pages(pattern, address, inner)
        elif isinstance(pattern, URLPattern) and address.startswith("admin/") and pattern.name:
            names.add(space + pattern.name)
    return names - {"admin:app_list"}


def test_every_page_has_a_row() -> None:
    of_models = {
        f"admin:{label.replace('.', '_')}_{page}" for label in MODELS for page in OF_MODELS
    }
    assert names_of_pages() == of_models | set(PAGES) | OWN


def test_each_role_is_offered_its_actions_on_a_selection(db: None) -> None:
    """The list accepts no other action from it."""
    found: dict[str, str] = {}
    for letter, role in LETTERS.items():
        request = browser_with(role).get("/admin/").wsgi_request
        for model, page in admin.site._registry.items():
            offered = page.get_actions(request) if page.has_view_permission(request) else {}
            for name in offered:
                action = f"{model._meta.label_lower}: {name}"
                found[action] = found.get(action, "") + letter
    assert found == ACTIONS


@contextmanager
def taken_back() -> Iterator[None]:
    """Undoes what a form did."""
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]
    with block:
        yield
        transaction.set_rollback(True)


def lets_in(answer: Any) -> bool:
    return answer.status_code not in (HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED)


def prepare(person: User) -> None:
    User.objects.filter(pk=person.pk).update(email=f"{person.username}@staff.example")
    """Gives the person a second factor and a wrong password, so that their page offers all."""
    signed_in(person)
    AccessAttempt.objects.create(username=person.username, failures_since_start=1)


def latest(model: Any) -> Any:
    """The newest row for which the actions of its page are offered."""
    label = model._meta.label_lower
    if label == "auth.user":
        person = make_staff("auth.view_user")
        prepare(person)
        return person
    if label == "accounts.apiclient":
        return ApiKey.objects.latest("pk").client
    if label == "catalogue.vouchercode":
        return VoucherCode.objects.filter(order_id=None, hold=None).latest("pk")
    if label == "merchants.membership":
        member = make_member()
        prepare(member.user)
        Membership.objects.filter(pk=member.pk).update(blocked_at=timezone.now())
        return member
    if label == "merchants.invitation":
        owner = make_member()
        return invite_person(
            account=owner.account, email="next@shop.example", role=Role.VIEWER,
            invited_by=make_staff(),
        )  # fmt: skip
    return model._default_manager.latest("pk")


class Walk:
    """The pages of one role. What it has opened, and the links that it was shown."""

    def __init__(self, role: StaffRole) -> None:
        self.browser = browser_with(role)
        self.opened: dict[str, int] = {}
        self.links: set[tuple[str, str]] = set()

    def opens(self, address: str, *, frame: str = "") -> bool:
        """Whether the role may open the page. Notes its links if its frame is rendered."""
        with without_frame(frame):
            answer = self.browser.get(address)
        self.opened[address] = answer.status_code
        if frame and answer.status_code == HTTPStatus.OK:
            self.note_links(address, answer)
        return lets_in(answer)

    def sends(self, address: str) -> bool:
        """Whether the role may send the form of the page."""
        with without_frame(""):
            return lets_in(self.browser.post(address, {}))

    def note_links(self, address: str, answer: Any) -> None:
        found = LINK.findall(answer.content.decode())
        self.links |= {(address, link.replace("&amp;", "&")) for link in found}

    def rights_to(self, model: Any) -> list[bool]:
        """To view, add, change and delete."""
        row, meta = latest(model), model._meta
        views = {self.opens(page, frame=LINKS) for page in (list_url(model), url(row))}
        assert len(views) == 1, f"a role sees the list and the pages of {meta.label}, or neither"
        return [
            views.pop(),
            self.opens(reverse(f"admin:{meta.app_label}_{meta.model_name}_add")),
            self.sends(url(row)),
            self.opens(url(row, "delete")),
        ]

    def dead_links(self) -> set[tuple[str, str]]:
        """The links to pages that the role may not open. A page is opened once."""
        self.note_links("/admin/", self.browser.get("/admin/", follow=True))  # with the menu
        for _, link in self.links:
            if link not in self.opened and "logout" not in link:
                self.opens(link)
        return {
            (page, link)
            for page, link in self.links
            if self.opened.get(link) == HTTPStatus.FORBIDDEN
        }


def test_each_role_downloads_the_lists_that_it_sees_if_it_may_export(world: None, db: None) -> None:
    found = dict.fromkeys(MODELS, "")
    for letter, role in LETTERS.items():
        browser = browser_with(role)
        for model in shown_models():
            meta = model._meta
            address = reverse(f"admin:{meta.app_label}_{meta.model_name}_list_file", args=["csv"])
            found[meta.label_lower] += letter if lets_in(browser.get(address)) else ""

    assert found == {
        label: "".join(letter for letter in sees if letter in EXPORTERS)
        for label, (sees, *_) in MODELS.items()
    }


@pytest.mark.parametrize("letter", ALL)
def test_a_role_has_its_rights_its_pages_and_no_dead_link(
    letter: str, world: None, db: None
) -> None:
    """Opens every page and sends every form as one role, and compares what it may with the rows."""
    walk = Walk(LETTERS[letter])
    rights = {model._meta.label_lower: walk.rights_to(model) for model in shown_models()}
    assert rights == {label: [letter in may for may in row] for label, row in MODELS.items()}
    assert walk.dead_links() == set()
    assert len(walk.links) > 5

    pages = {}
    for name in PAGES:
        with taken_back():
            address = address_of(name)
            pages[name] = (walk.opens(address), walk.sends(address))
    assert pages == {
        name: (letter in opens, letter in sends) for name, (opens, sends) in PAGES.items()
    }
