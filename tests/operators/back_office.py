"""Shared by the tests of the back office: staff, and rows of every model."""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin, auth
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.models import Model
from django.template import Engine, Template
from django.template.loader_tags import ExtendsNode
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_otp import DEVICE_ID_SESSION_KEY
from pytest_django import DjangoDbBlocker

import operators.admin.site  # noqa: F401  registers the pages
from accounts.models import Account, OwnCompany, SecondFactor
from accounts.sign_in.confirmation import CONFIRMED, CONFIRMED_SECONDS
from audit.models import AuditAction
from audit.services import record_action
from cases.models import Case
from cases.services import open_case
from catalogue.models import PriceList, PriceListEntry, VoucherCode
from catalogue.price_lists import Target, Terms, add_price_entry
from catalogue.stock.holds import hold_codes
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context, seal
from figures.models import ExchangeRate, StockThreshold
from merchants.frame.prepared_files import row_of_file, row_of_part, seal_part
from merchants.models import EmailedReport, FileState, PreparedFile, Role
from merchants.people.invitations import invite_person
from operators.imports.models import FileImport, ImportKind, row_of_import, seal_file
from operators.telegram.models import Announcement, AnnouncementRoute, AnnouncementState
from operators.telegram.staff_links import link_user
from operators.upkeep.models import ReconcileRun, RunState
from operators.warnings.models import StaffWarning
from operators.warnings.raising import rules
from orders.models import Order
from tests.factories import (
    Merchant,
    buy_topup,
    link,
    make_batch,
    make_category,
    make_lost_purchase,
    make_merchant,
    make_operator,
    make_product,
    make_record,
    make_topup_product,
    make_variation,
    move_now,
    new_booking_reference,
    own_shelf,
)
from tests.merchants.people import make_member, open_session
from topups.fulfilment.proofs import NewProof, add_proof
from topups.fulfilment.transitions import Move
from topups.models import DeliveryProof, Fulfilment
from wallets.approvals import ask_for_approval
from wallets.evidence.closes import COLUMNS
from wallets.models import (
    BankDetails,
    BookingApproval,
    BookingLimit,
    DailyClose,
    EntryKind,
    MonthlyStatement,
    WalletClose,
)
from wallets.transfers import announce_transfer

_numbers = itertools.count(1)


@dataclass
class World:
    """Rows of every model that the back office shows."""

    codes: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def grow(self, number: int) -> None:
        """Adds merchants, each with its own rows of everything, so that no two rows share one."""
        for _ in range(number):
            merchant = make_merchant()
            self.keys.append(merchant.key)
            product = make_product(codes=2, category=make_category())
            shelf = make_variation(product, codes=1).shelf
            account = merchant.account
            link(account, "their own name", shelf)
            topup_product = make_topup_product(announce=True)
            fulfilment = Fulfilment.objects.get(order_reference=buy_topup(merchant, topup_product))
            announced = fulfilment.pk
            Announcement.objects.create(
                fulfilment=fulfilment,
                state=AnnouncementState.ANNOUNCED,
                chat_id=-1001,
                message_id=announced,
                announced_at=timezone.now(),
            )
            AnnouncementRoute.objects.create(product=topup_product, chat_id=-1001)
            link_user(user=make_operator().user, telegram_user_id=announced, actor=None)
            order = merchant.buy(product_id=product.pk, quantity=2).json()["data"]
            self.codes += [code["code"] for code in order["codes"]]
            make_record(merchant.client, order_reference=order["reference"])
            make_case(order["reference"])
            make_lost_purchase(merchant.client)
            prices = PriceList.objects.create(name=f"List {next(_numbers)}", currency="USD")
            PriceListEntry.objects.create(price_list=prices, product=product, added_by="test")
            add_price_entry(
                price_list_id=prices.pk,
                target=Target(topup_product_id=topup_product.pk),
                terms=Terms(price=Decimal("4.50")),
                actor=make_staff(),
            )
            batch = make_batch(own_shelf(make_product()))
            hold_codes(codes=batch.its_codes, reason="recalled", held_by="test")
            day = date(2026, 1, 1) + timedelta(days=next(_numbers))
            make_close(account, day)
            ExchangeRate.objects.create(currency="EUR", into="USD", day=day, rate=2)
            StockThreshold.objects.create(shelf=shelf, stock=3)
            rules()
            StaffWarning.objects.create(kind="low_stock", subject=f"shelf {shelf.pk}", text="Low")
            Group.objects.create(name=f"Group {next(_numbers)}")
            member = make_member(account)
            invite_person(
                account=account,
                email=f"invited-{next(_numbers)}@merchant.example",
                role=Role.VIEWER,
                invited_by=member.user,
            )
            EmailedReport.objects.create(user=member.user, kind="orders", every="day")
            ReconcileRun.objects.create(
                state=RunState.FINDINGS,
                finished_at=timezone.now(),
                findings=[{"check": "a rule", "finding": "an exception"}],
            )
            make_import()
            make_approval(account)
            announce_transfer(
                account=account,
                amount=Decimal(5),
                reference=new_booking_reference(),
                actor=member.user,
            )
            number = next(_numbers)
            currency = "X" + chr(65 + number // 26 % 26) + chr(65 + number % 26)
            OwnCompany.objects.get_or_create(pk=1, defaults={"legal_name": "Example GmbH"})
            BankDetails.objects.get_or_create(currency=currency, defaults={"details": "IBAN"})
            BookingLimit.objects.create(
                group=Group.objects.latest("pk"), kind=EntryKind.DEPOSIT, amount=500
            )
            record_action(
                actor=make_staff(), action=AuditAction.CODE_REVEALED, on=VoucherCode(pk=1)
            )


@contextmanager
def rows_for_a_module(blocker: DjangoDbBlocker) -> Iterator[None]:
    """A transaction around the tests of a module, for rows that are made once and then read.

    Each test rolls back what it changes. No test of the module may commit.
    """
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]
    with blocker.unblock(), block:
        yield
        transaction.set_rollback(True)


def make_staff(*permissions: str, superuser: bool = False) -> User:
    """A member of staff with these permissions, such as `catalogue.view_product`."""
    name = f"staff-{next(_numbers)}"
    user = User.objects.create_user(name, password=None, is_staff=True, is_superuser=superuser)
    for permission in permissions:
        app, _, codename = permission.partition(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    return user


def staff_with(role: StaffRole) -> User:
    """A new member of staff with this role."""
    user = make_staff()
    user.groups.add(Group.objects.get(name=role.value))
    return user


def make_approval(
    account: Account,
    *,
    amount: str = "20000",
    reason: str | None = None,
    kind: EntryKind = EntryKind.DEPOSIT,
    reference: str = "",
    asked_by: User | None = None,
) -> BookingApproval:
    """A booking above its maker's limit, which waits."""
    booking = BookingApproval(
        wallet=account.wallet,
        kind=kind,
        amount=Decimal(amount),
        note="transfer",
        reason=reason,
        booking_reference=reference or new_booking_reference(),
        asked_by=asked_by or make_staff(),
    )
    return ask_for_approval(booking=booking)


def make_case(reference: str) -> Case:
    """An open case about the first code of an order, with a file."""
    order = Order.objects.get(reference=reference)
    code = VoucherCode.objects.filter(order_id=order.pk).earliest("position")
    account = order.client.account
    return open_case(
        order=order,
        code=code,
        actor=make_member(account).user,
        text="It was used before.",
        files=[("code.pdf", b"%PDF-1.7")],
    )


def make_proof(merchant: Merchant, **body: Any) -> DeliveryProof:
    """A proof of a top-up that is delivered, with a file."""
    operator = make_operator()
    order = move_now(reference=buy_topup(merchant, **body), move=Move.COMPLETE, operator=operator)
    new = NewProof(transaction_number="TX-1", file=("sent.pdf", b"%PDF-1.7"))
    return add_proof(fulfilment=order, operator=operator, proof=new)


def make_close(account: Account, day: date) -> None:
    """The close of a day on which the account paid 5 in, and nothing else happened; and the
    statement of its month."""
    nothing = dict.fromkeys(COLUMNS.values(), Decimal(0))
    sums = {**nothing, "opening": Decimal(0), "deposits": Decimal(5), "closing": Decimal(5)}
    WalletClose.objects.create(wallet=account.wallet, day=day, **sums)
    DailyClose.objects.get_or_create(
        day=day, currency=account.currency, defaults={"wallets": 1, **sums}
    )
    MonthlyStatement.objects.get_or_create(
        wallet=account.wallet,
        month=day.replace(day=1),
        defaults={"issuer": {}, "recipient": {"name": account.name}},
    )


def make_import() -> FileImport:
    """An uploaded catalogue that nobody has checked yet. It is empty."""
    token = uuid4()
    return FileImport.objects.create(
        token=token,
        kind=ImportKind.CATALOGUE,
        file_name="catalogue.json",
        size=2,
        sealed=seal_file(b"{}", row_of_import(token)),
        created_by=make_staff(),
    )


def make_prepared_file(user: User) -> PreparedFile:
    """A file with one part that is ready."""
    token = uuid4()
    request = seal(b'{"address": "/admin/"}', Context.PREPARED_FILE, row_of_file(token))
    file = PreparedFile.objects.create(
        token=token, user=user, name="x.csv", state=FileState.READY, sealed=request, parts=1
    )
    file.pieces.create(token=token, number=0, sealed=seal_part(b"line", row_of_part(token, 0)))
    return file


def signed_in(user: User | None = None, *, csrf: bool = False) -> Client:
    """A browser in which this person is signed in with a second factor; a superuser if nobody is
    given."""
    browser = Client(enforce_csrf_checks=csrf)
    user = user or make_staff(superuser=True)
    factor = SecondFactor.objects.filter(user=user).first() or SecondFactor.objects.create(
        user=user
    )
    open_session(browser, user, **{DEVICE_ID_SESSION_KEY: factor.persistent_id})
    return browser


def browser_with(role: StaffRole) -> Client:
    """A browser in which a new member of staff with this role is signed in."""
    return signed_in(staff_with(role))


def text_of(answer: Any) -> str:
    page: str = answer.content.decode()
    return page


def is_guarded(headers: Any) -> bool:
    """Whether a browser loads nothing from other hosts, and shows the page in no frame."""
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    return (
        policy["default-src"] == "'none'"
        and policy["frame-ancestors"] == "'none'"
        and policy["base-uri"] == "'none'"
        and policy["form-action"] == "'self'"
        and "unsafe-inline" not in policy["script-src"]
        and not any("http" in sources or "*" in sources for sources in policy.values())
        and headers["X-Frame-Options"] == "DENY"
        and headers["X-Content-Type-Options"] == "nosniff"
        and headers["Referrer-Policy"] == "same-origin"
        and headers["Cross-Origin-Opener-Policy"] == "same-origin"
    )


def show_factor(browser: Client, user: User) -> None:
    """Marks the browser's session as one that has just shown a second factor, and sets that up."""
    factor, _ = SecondFactor.objects.get_or_create(user=user)
    session = browser.session
    session[DEVICE_ID_SESSION_KEY] = factor.persistent_id
    session[CONFIRMED] = time.time() + CONFIRMED_SECONDS
    session.save()


def shown_models() -> list[Any]:
    """Every model that the back office shows."""
    return sorted(admin.site._registry, key=lambda model: model._meta.label)


def list_url(model: type[Model], **query: Any) -> str:
    meta = model._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist", query=query)


def url(obj: Model, page: str = "change") -> str:
    meta = obj._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_{page}", args=[obj.pk])


@contextmanager
def people_read_once() -> Iterator[None]:
    """Reads the person of a session once, with their permissions. These must not change."""
    read, people = auth.get_user, dict[str | None, Any]()

    def get_user(request: Any) -> Any:
        key = request.session.session_key
        if key not in people:
            people[key] = read(request)
        return people[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "get_user", get_user)
        yield


@contextmanager
def without_menu() -> Iterator[None]:
    """Leaves the menu out of all pages, and does not collect its entries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admin.site, "enable_nav_sidebar", False)
        patch.setattr(admin.site, "get_sidebar_list", lambda *_: [])
        yield


@contextmanager
def with_menu() -> Iterator[None]:
    """Renders the menu, whatever threads of an earlier test left in place of it: two that patch the
    site at once may restore the patch of the other."""
    site: Any = admin.site.__class__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admin.site, "enable_nav_sidebar", True)
        patch.setattr(admin.site, "get_sidebar_list", partial(site.get_sidebar_list, admin.site))
        yield


@contextmanager
def without_frame(page: str) -> Iterator[None]:
    """Has pages extend this template instead of the frame with the menu. They fill its blocks, and
    nobody collects what the menu has."""
    find, bare = ExtendsNode.find_template, Engine.get_default().from_string(page)

    def find_bare(node: ExtendsNode, name: str, context: Any) -> Template:
        return bare if name == "admin/base.html" else find(node, name, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExtendsNode, "find_template", find_bare)
        patch.setattr(admin.site, "get_app_list", lambda *_: [])
        patch.setattr(admin.site, "get_sidebar_list", lambda *_: [])
        yield


def form_of(browser: Client, address: str) -> dict[str, Any]:
    """The data that the page's form would send unchanged, including its inlines. The page itself is
    not rendered, which takes most of the time."""
    with without_frame(""):
        context = browser.get(address).context
    forms = [context["adminform"].form]
    data: dict[str, Any] = {}
    for inline in context["inline_admin_formsets"]:
        forms += [inline.formset.management_form, *inline.formset.initial_forms]
    for form in forms:
        for bound in form:
            value = bound.value()
            if value is True:
                value = "on"
            if value is not None and value is not False:
                data[bound.html_name] = value
                if bound.field.show_hidden_initial:
                    data[bound.html_initial_name] = value
    return data
