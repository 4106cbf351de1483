"""Every form and action of the back office that changes something records who did it.

The tables below are complete: a new page or action fails until it has a row.
"""

import html
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from accounts.models import Account, ApiClient
from cases.services import propose_replacement
from catalogue.models import (
    Batch,
    Category,
    CodeHold,
    PriceList,
    PriceListEntry,
    Shelf,
    VoucherCode,
)
from merchants.models import EmailedReport, Invitation, Role
from merchants.people.company import propose_company
from merchants.people.invitations import invite_person
from merchants.people.members import block_member
from operators.imports import jobs
from operators.imports.models import FileImport
from operators.telegram.models import Announcement, AnnouncementState, PlatformSettings
from orders.models import Order
from tests.factories import (
    buy_topup,
    make_account,
    make_batch,
    make_client,
    make_lost_purchase,
    make_merchant,
    make_product,
    make_topup_product,
    new_booking_reference,
    own_shelf,
)
from tests.merchants.people import make_member
from tests.neighbour import ours
from tests.operators.back_office import (
    World,
    form_of,
    list_url,
    make_approval,
    make_case,
    make_proof,
    make_staff,
    rows_for_a_module,
    signed_in,
    url,
)
from tests.operators.records import Watch, failed_order
from topups.models import Fulfilment
from wallets.models import AnnouncedTransfer, LedgerEntry, Wallet

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """One row of every model, made once for this module."""
    with rows_for_a_module(django_db_blocker):
        World().grow(1)
        yield


@pytest.fixture
def world(rows: None, db: None) -> None:
    """Each test takes back what it changes."""


# --- Forms ---------------------------------------------------------------------------------------

# What to type into the form that adds a row: the rest of the form stays as it is shown.
NEW: dict[str, Callable[[], dict[str, Any]]] = {
    "accounts.account": lambda: {"name": "New", "currency": "EUR"},
    "accounts.apiclient": lambda: {"name": "New"},
    "auth.group": lambda: {"name": "New"},
    "auth.user": lambda: {
        "username": "new",
        "email": "new@staff.example",
    },
    "catalogue.category": lambda: {"name": "New"},
    "catalogue.pricelist": lambda: {"name": "New", "currency": "USD"},
    "catalogue.product": lambda: {"name": "New", "currency": "USD", "type": "voucher"},
    "catalogue.referencelink": lambda: {
        "account": make_account().pk,
        "shelf": own_shelf(make_product()).pk,
        "reference": "new",
    },
    "merchants.invitation": lambda: {
        "account": make_account().pk,
        "email": "new@shop.example",
        "role": "owner",
    },
    "merchants.emailedreport": lambda: {"kind": "closes", "every": "week"},
    "figures.stockthreshold": lambda: {"shelf": own_shelf(make_product()).pk, "stock": "7"},
    "figures.exchangerate": lambda: {
        "currency": "GBP",
        "into": "USD",
        "day": "2026-01-01",
        "rate": "1.3",
    },
    "telegram.announcementroute": lambda: {
        "product": make_topup_product().pk,
        "chat_id": "-1002",
    },
    "topups.topupproduct": lambda: {"name": "New", "currency": "USD", "price": "1"},
    "wallets.bankdetails": lambda: {"currency": "EUR", "details": "IBAN 2"},
    "wallets.bookinglimit": lambda: {
        "group": Group.objects.latest("pk").pk,
        "kind": "payout",
        "amount": "5",
    },
}
# A field of the form that changes a row, its new value, and whether the audit entry shows both.
CHANGED: dict[str, tuple[str, Any]] = {
    "accounts.account": ("name", "Renamed"),
    "accounts.apiclient": ("rate_limit_per_minute", "7"),
    "auth.group": ("name", "Renamed"),
    "auth.user": ("email", "renamed@shop.example"),
    "catalogue.batch": ("supplier", "Renamed"),
    "figures.exchangerate": ("rate", "3"),
    "figures.stockthreshold": ("stock", "8"),
    "warnings.warningrule": ("limit", "99"),
    "catalogue.category": ("name", "Renamed"),
    "catalogue.pricelist": ("name", "Renamed"),
    "catalogue.product": ("name", "Renamed"),
    "catalogue.referencelink": ("reference", "renamed"),
    "catalogue.shelf": ("price", "8.50"),
    "telegram.announcementroute": ("chat_id", "-1003"),
    "accounts.owncompany": ("legal_name", "Another name"),
    "telegram.platformsettings": ("repeat_minutes", "17"),
    "topups.topupproduct": ("name", "Renamed"),
    "wallets.bankdetails": ("details", "IBAN 3"),
    "wallets.bookinglimit": ("amount", "7"),
}
# How to make a row that may be deleted.
DELETED: dict[str, Callable[[], Model]] = {
    "auth.group": lambda: row_of("auth.group"),
    "catalogue.category": lambda: Category.objects.create(name="Old"),
    "catalogue.product": make_product,
    "catalogue.referencelink": lambda: row_of("catalogue.referencelink"),
    "merchants.emailedreport": lambda: EmailedReport.objects.create(
        user=User.objects.filter(is_superuser=True).latest("pk"), kind="closes", every="day"
    ),
    "figures.exchangerate": lambda: row_of("figures.exchangerate"),
    "figures.stockthreshold": lambda: row_of("figures.stockthreshold"),
    "telegram.announcementroute": lambda: row_of("telegram.announcementroute"),
    "telegram.telegramlink": lambda: row_of("telegram.telegramlink"),
    "wallets.bankdetails": lambda: row_of("wallets.bankdetails"),
    "wallets.bookinglimit": lambda: row_of("wallets.bookinglimit"),
}


def forms(verb: str) -> set[str]:
    """The models whose page lets a superuser do this."""
    request = RequestFactory().get("/")
    request.user = type("Chief", (), {"is_superuser": True, "has_perm": lambda *words: True})()
    return {
        model._meta.label_lower
        for model, page in admin.site._registry.items()
        if getattr(page, f"has_{verb}_permission")(request)
    }


def row_of(label: str) -> Any:
    """A row that the pages may change; for users, one that is not a member of an account."""
    if label == "telegram.platformsettings":
        return PlatformSettings.objects.get_or_create()[0]
    if label == "auth.user":
        return make_staff()
    return apps.get_model(label)._default_manager.latest("pk")


def test_the_tables_name_every_form() -> None:
    assert forms("add") == set(NEW)
    assert forms("change") == set(CHANGED)
    assert forms("delete") == set(DELETED)


@pytest.mark.parametrize("label", sorted(NEW))
def test_adding_a_row_is_recorded(label: str, browser: Client, world: None) -> None:
    model: Any = apps.get_model(label)
    address = reverse(f"admin:{label.replace('.', '_')}_add")
    typed, before, watch = NEW[label](), set(model.objects.values_list("pk", flat=True)), Watch()

    answer = browser.post(address, {**form_of(browser, address), **typed})

    assert answer.status_code == 302, answer.context["adminform"].form.errors
    (made,) = model.objects.exclude(pk__in=before)
    assert str(made.pk) in {one.object_id for one in about(watch, label)}


@pytest.mark.parametrize("label", sorted(CHANGED))
def test_changing_a_row_is_recorded_with_both_values(
    label: str, browser: Client, world: None
) -> None:
    row, (name, value) = row_of(label), CHANGED[label]
    old, watch = getattr(row, name), Watch()

    answer = browser.post(url(row), {**form_of(browser, url(row)), name: value})

    assert answer.status_code == 302, answer.context["adminform"].form.errors
    (entry,) = about(watch, label)
    assert entry.object_id == str(row.pk)
    assert list(entry.changes) == [name]
    was, became = entry.changes[name]
    assert str(old) == str(was) or float(old) == float(was)
    assert str(became) == str(value)


@pytest.mark.parametrize("label", sorted(DELETED))
def test_deleting_a_row_is_recorded(label: str, browser: Client, world: None) -> None:
    row, watch = DELETED[label](), Watch()

    assert browser.post(url(row, "delete"), {"post": "yes"}).status_code == 302

    assert not type(row)._default_manager.filter(pk=row.pk).exists()
    assert watch.added("audit") != []


def test_saving_an_unchanged_form_records_nothing(browser: Client, world: None) -> None:
    for label in CHANGED:
        row, watch = row_of(label), Watch()
        before = len(watch.added("audit"))
        assert browser.post(url(row), form_of(browser, url(row))).status_code == 302, label
        assert len(watch.added("audit")) == before, label


def test_rows_of_a_product_are_recorded(browser: Client) -> None:
    product = make_product(price="2.00")
    shelf, watch = own_shelf(product), Watch()
    data = form_of(browser, url(product))
    names = [name for name in data if name.endswith("-price")]
    (price,) = (name for name in names if not name.startswith("initial-"))
    data |= {price: "2.50", "variations-TOTAL_FORMS": "1", "variations-0-name": "Large"}

    assert browser.post(url(product), data).status_code == 302

    (entry,) = about(watch, "catalogue.product")
    variation = product.variations.get()
    assert entry.changes == {f"variation {variation.pk}": [None, str(variation)]}
    (of_shelf,) = about(watch, "catalogue.shelf")  # it has a page of its own
    assert (of_shelf.object_id, of_shelf.actor) == (str(shelf.pk), entry.actor)
    assert of_shelf.changes == {"price": ["2.0000", "2.50"]}


def about(watch: Watch, label: str) -> list[Any]:
    return [entry for entry in watch.added("audit") if entry.object_type == label]


# --- Actions -------------------------------------------------------------------------------------


def press(browser: Client, row: Model, name: str) -> Any:
    """Chooses an action of the list for one row."""
    shown = hidden(browser.get(list_url(type(row))))
    form = {**shown, "action": name, "_selected_action": [row.pk]}
    return browser.post(list_url(type(row)), form)


def hidden(page: Any) -> dict[str, str]:
    """The hidden fields of a page's forms."""
    found = {}
    for field in re.findall(r"<input[^>]*type=\"hidden\"[^>]*>", page.content.decode()):
        name, value = (re.search(rf'{part}="([^"]*)"', field) for part in ("name", "value"))
        if name:
            found[name[1]] = html.unescape(value[1]) if value else ""
    return found


def open_topup() -> Fulfilment:
    return Fulfilment.objects.get(order_reference=buy_topup(make_merchant()))


def move(name: str) -> Callable[[Client], None]:
    """Chooses a move for an order, after claiming it if needed, and confirms what is asked."""

    def carry_out(browser: Client) -> None:
        row = open_topup()
        if name != "claim_selected":
            press(browser, row, "claim_selected")
        steps = ["review_selected", name] if name == "reject_unrefunded_selected" else [name]
        for step in steps:
            asked = press(browser, row, step)
            if asked.status_code == 200:
                form = hidden(asked) | {"reason": "wrong_id", "note": "x"}
                answer = browser.post(list_url(Fulfilment), form)
                assert answer.status_code == 302

    return carry_out


def deposit_form() -> dict[str, str]:
    return {
        "kind": "deposit",
        "amount": "5",
        "reason": "x",
        "reference": new_booking_reference(),
        "form_id": str(uuid4()),
    }


def decide(name: str) -> Callable[[Client], None]:
    def carry_out(browser: Client) -> None:
        browser.post(url(make_approval(make_account()), name), {"note": ""})

    return carry_out


def close_transfer(browser: Client) -> None:
    browser.post(url(AnnouncedTransfer.objects.latest("pk"), "close"))


def reverse_entry(browser: Client) -> None:
    entry = LedgerEntry.objects.get(wallet=make_account(balance="1").pk)
    browser.post(url(entry, "reverse"), {"reason": "x"})


def book(browser: Client) -> None:
    wallet = Wallet.objects.get(account=make_account(balance="1"))
    browser.post(url(wallet, "book"), {**deposit_form(), "confirmed": "1"})


def book_for_an_account(browser: Client) -> None:
    browser.post(url(make_account(balance="1"), "book"), {**deposit_form(), "confirmed": "1"})


def switch_off(browser: Client) -> None:
    browser.post(url(make_account(), "switch_off"), {"reason": "x"})


def switch_on(browser: Client) -> None:
    account = make_account()
    Account.objects.filter(pk=account.pk).update(enabled=False)
    browser.post(url(account, "switch_on"), {"reason": "x"})


def switch_client_off(browser: Client) -> None:
    browser.post(url(make_client(make_account()), "switch_off"), {"reason": "x"})


def switch_client_on(browser: Client) -> None:
    client = make_client(make_account(), enabled=False)
    browser.post(url(client, "switch_on"), {"reason": "x"})


def credit(browser: Client) -> None:
    order = Order.objects.get(reference=failed_order())
    form = {"amount": "1", "note": "x", "form_id": str(uuid4()), "confirmed": "1"}
    browser.post(url(order, "credit"), form)


def new_order() -> str:
    product = make_product(codes=2)
    answer = make_merchant().buy(product_id=product.pk, quantity=1)
    reference: str = answer.json()["data"]["reference"]
    return reference


def case_page(name: str, **form: str) -> Callable[[Client], None]:
    def carry_out(browser: Client) -> None:
        browser.post(url(make_case(new_order()), name), {**form, "version": "1"})

    return carry_out


def decline_proposal(browser: Client) -> None:
    case = make_case(new_order())
    propose_replacement(case=case, version=1, actor=make_staff())
    browser.post(url(case, "decline"), {"version": "2"})


def add_proof(browser: Client) -> None:
    order = make_proof(make_merchant()).fulfilment
    browser.post(url(order, "add_proof"), {"token": uuid4(), "transaction_number": "TX-2"})


def change_company(browser: Client) -> None:
    browser.post(url(make_account(), "company"), {"legal_name": "Games Ltd"})


def decide_company(browser: Client) -> None:
    account = make_account()
    proposal = propose_company(
        account=account, data={"legal_name": "Games Ltd"}, actor=make_member(account).user
    )
    address = reverse("admin:accounts_account_decide_company", args=[account.pk])
    browser.post(address, {"proposal": proposal.pk})


def assign_case(browser: Client) -> None:
    to_me = browser.session["_auth_user_id"]
    User.objects.filter(pk=to_me).update(last_login=timezone.now())
    browser.post(url(make_case(new_order()), "assign"), {"seen": "", "assignee": to_me})


def open_case(browser: Client) -> None:
    order = Order.objects.get(reference=new_order())
    browser.post(url(order, "open_case"), {"code": "", "text": "Nothing works."})


def settle(browser: Client) -> None:
    lost = make_lost_purchase(make_client(make_account()))
    browser.post(url(lost, "settle"), {"debits": "no", "note": "x"})


def settle_all(browser: Client) -> None:
    make_lost_purchase(make_client(make_account()))
    address = reverse("admin:orders_lostpurchase_settle_all")
    browser.post(address, {"debits": "no", "note": "x"})


def run_reconcile(browser: Client) -> None:
    browser.post(reverse("admin:upkeep_reconcilerun_run_now"))


def download_buyers(browser: Client) -> None:
    assert browser.get(url(held_batch(), "recall_file")).status_code == 200


def hold_batch(browser: Client) -> None:
    browser.post(url(make_batch(own_shelf(make_product())), "hold"), {"reason": "x"})


def take_back(browser: Client) -> None:
    browser.post(url(make_batch(own_shelf(make_product())), "take_back"), {"reason": "x"})


def hold_code(browser: Client) -> None:
    code = VoucherCode.objects.get(pk=make_batch(own_shelf(make_product())).first_code)
    browser.post(url(code, "hold"), {"reason": "x"})


def hold_selected_codes(browser: Client) -> None:
    batch = make_batch(own_shelf(make_product()))
    act_on_selected("hold", browser, batch)


def act_on_selected(name: str, browser: Client, batch: Batch) -> None:
    chosen = {"action": f"{name}_selected", "_selected_action": [batch.first_code], "reason": "x"}
    browser.post(list_url(VoucherCode), chosen)


def choose_list(browser: Client) -> None:
    row = PriceList.objects.create(name="Gold", currency="USD")
    address = url(make_account(), "choose_list")
    asked = browser.post(address, {"price_list": row.pk})
    browser.post(address, hidden(asked))


def add_price(browser: Client) -> None:
    row = PriceList.objects.create(name="Gold", currency="USD")
    typed = {"about": "everything", "terms": "percent", "percent_off": "5"}
    asked = browser.post(url(row, "add_price"), typed)
    browser.post(url(row, "add_price"), hidden(asked))


def set_prices_of_list(browser: Client) -> None:
    row = PriceList.objects.create(name="Gold", currency="USD")
    address = f"{url(row, 'set_prices')}?row=shelf-{own_shelf(make_product()).pk}"
    asked = browser.post(address, {"terms": "percent", "value": "5"})
    browser.post(address, hidden(asked))


def end_price(browser: Client) -> None:
    end = url(PriceListEntry.objects.latest("pk"), "end")
    browser.post(end, hidden(browser.get(end)))


def make_shelf() -> Shelf:
    return own_shelf(make_product())


def change_prices(make: Callable[[], Any]) -> Callable[[Client], None]:
    """Changes a price on the page of many, and confirms the preview."""

    def carry_out(browser: Client) -> None:
        row = make()
        address = browser.get(url(row, "change_price")).headers["Location"]
        shown = {f"initial-price-{row.pk}": row.price}
        preview = browser.post(address, shown | {"change": "prices", f"price-{row.pk}": "7.50"})
        browser.post(address, hidden(preview) | {"confirmed": "1"})

    return carry_out


def withdraw_price(make: Callable[[], Any]) -> Callable[[Client], None]:
    def carry_out(browser: Client) -> None:
        row = make()
        type(row).objects.filter(pk=row.pk).update(
            next_price=5, next_price_from=timezone.now() + timedelta(days=1)
        )
        browser.post(url(row, "withdraw_price"))

    return carry_out


def end_hold(name: str) -> Callable[[Client], None]:
    def carry_out(browser: Client) -> None:
        hold_batch(browser)
        browser.post(url(CodeHold.objects.latest("pk"), name), {"reason": "x"})

    return carry_out


def held_batch() -> Batch:
    return Batch.objects.latest("pk")  # of the world


def end_hold_of_batch(name: str) -> Callable[[Client], None]:
    def carry_out(browser: Client) -> None:
        browser.post(url(held_batch(), name), {"reason": "x"})

    return carry_out


def end_hold_of_code(name: str) -> Callable[[Client], None]:
    def carry_out(browser: Client) -> None:
        code = VoucherCode.objects.get(pk=held_batch().first_code)
        browser.post(url(code, name), {"reason": "x"})

    return carry_out


def end_hold_of_selected(name: str) -> Callable[[Client], None]:
    return lambda browser: act_on_selected(name, browser, held_batch())


def reveal_order(browser: Client) -> None:
    browser.post(url(ours(Order).latest("pk"), "reveal"))


def reveal_code(browser: Client) -> None:
    make_product(codes=1)
    browser.post(url(ours(VoucherCode).latest("pk"), "reveal"))


def announce_again(browser: Client) -> None:
    row = ours(Announcement).latest("pk")
    Announcement.objects.filter(pk=row.pk).update(
        state=AnnouncementState.GIVEN_UP, message_id=None, announced_at=None, last_error="gone"
    )
    press(browser, row, "announce_again_selected")


def of_staff(action: str) -> Callable[[Client], None]:
    def carry_out(browser: Client) -> None:
        user = make_staff()
        signed_in(user)  # with a second factor
        browser.post(url(user, action))

    return carry_out


def send_link(browser: Client) -> None:
    user = make_staff()
    User.objects.filter(pk=user.pk).update(email="person@staff.example")
    browser.post(url(user, "send_link"))


def of_member(action: str) -> Callable[[Client], None]:
    def carry_out(browser: Client) -> None:
        member = make_member()
        signed_in(member.user)
        browser.post(url(member, action), {"reason": "stolen"})

    return carry_out


def unblock(browser: Client) -> None:
    member = make_member()
    block_member(membership=member, actor=make_staff(), reason="stolen")
    browser.post(url(member, "unblock"))


def withdraw(browser: Client) -> None:
    browser.post(url(ours(Invitation).latest("pk"), "withdraw"))


def approve(browser: Client) -> None:
    account = make_account()
    make_member(account)
    invitation = invite_person(
        account=account, email="new@x.example", role=Role.OWNER, invited_by=make_staff()
    )
    browser.post(url(invitation, "approve"))


def key_page(name: str) -> Callable[[Client], None]:
    def carry_out(browser: Client) -> None:
        client = make_merchant().client
        address = url(client, name) if name != "revoke" else revoke_address(client)
        question = browser.get(address)
        answer = browser.post(address, hidden(question) | {"overlap_hours": "1", "note": ""})
        assert answer.status_code in (200, 302)

    return carry_out


def revoke_address(client: ApiClient) -> str:
    key = client.keys.latest("pk")
    return reverse("admin:accounts_apiclient_revoke_key", args=[client.pk, key.pk])


def claim_next_order(browser: Client) -> None:
    open_topup()
    browser.post("/admin/topups/fulfilment/next/")


def claim_on_the_page(browser: Client) -> None:
    row = open_topup()
    address = reverse("admin:topups_fulfilment_move", args=[row.pk, "claim"])
    browser.post(address, hidden(browser.get(url(row))))


def deliver_on_the_page(browser: Client) -> None:
    row = open_topup()
    claimed = reverse("admin:topups_fulfilment_move", args=[row.pk, "claim"])
    browser.post(claimed, hidden(browser.get(url(row))))
    Fulfilment.objects.filter(pk=row.pk).update(claimed_at=timezone.now() - timedelta(seconds=2))
    delivered = reverse("admin:topups_fulfilment_deliver_next", args=[row.pk])
    browser.post(delivered, hidden(browser.get(url(row))))


def upload_file(browser: Client) -> None:
    file = SimpleUploadedFile("catalogue.json", b"{}")
    address = reverse("admin:imports_fileimport_upload", args=["catalogue"])
    answer = browser.post(address, {"file": file, "form": str(uuid4())})
    assert answer.status_code == 302


def upload_parts(browser: Client) -> None:
    upload = uuid4()
    part = {"upload": upload, "number": 0, "file": SimpleUploadedFile("part", b"code\n")}
    address = reverse("admin:imports_fileimport_part")
    assert browser.post(address, part).status_code == 204
    about = {"upload": upload, "upload_name": "codes.csv", "upload_size": 5}
    address = reverse("admin:imports_fileimport_upload", args=["codes"])
    answer = browser.post(address, {"shelf": own_shelf(make_product()).pk, **about})
    assert answer.status_code == 302


def export_the_catalogue(browser: Client) -> None:
    assert browser.get(reverse("admin:imports_fileimport_export", args=["csv"])).status_code == 200


def confirm_import(browser: Client) -> None:
    row = FileImport.objects.latest("pk")
    jobs.run_import(pk=row.pk)
    row.refresh_from_db()
    address = reverse("admin:imports_fileimport_step", args=[row.pk, "confirm"])
    assert browser.post(address, {"seen": row.version}).status_code == 302


# Every action of a list or a page, what carries it out, and the record it leaves.
ACTIONS: dict[str, tuple[Callable[[Client], None], str]] = {
    "auth.user end_access": (of_staff("end_access"), "audit"),
    "auth.user end_sessions": (of_staff("end_sessions"), "audit"),
    "auth.user remove_second_factor": (of_staff("remove_second_factor"), "audit"),
    "auth.user send_link": (send_link, "audit"),
    "auth.user unlock_sign_in": (of_staff("unlock_sign_in"), "audit"),
    "merchants.membership block": (of_member("block"), "audit"),
    "merchants.membership end_sessions": (of_member("end_sessions"), "audit"),
    "merchants.membership remove_second_factor": (of_member("remove_second_factor"), "audit"),
    "merchants.membership unblock": (unblock, "audit"),
    "merchants.membership unlock_sign_in": (of_member("unlock_sign_in"), "audit"),
    "accounts.account book": (book_for_an_account, "audit"),
    "accounts.account choose_list": (choose_list, "audit"),
    "accounts.account company": (change_company, "audit"),
    "accounts.account decide_company": (decide_company, "audit"),
    "accounts.account switch_off": (switch_off, "audit"),
    "accounts.account switch_on": (switch_on, "audit"),
    "accounts.apiclient issue": (key_page("issue"), "audit"),
    "accounts.apiclient rotate": (key_page("rotate"), "audit"),
    "accounts.apiclient switch_off": (switch_client_off, "audit"),
    "accounts.apiclient switch_on": (switch_client_on, "audit"),
    "accounts.apiclient revoke_key": (key_page("revoke"), "audit"),
    "cases.case answer": (case_page("answer", text="Hello."), "audit"),
    "cases.case assign": (assign_case, "audit"),
    "cases.case credit": (case_page("credit", amount="1", note="Sorry"), "audit"),
    "cases.case decline": (decline_proposal, "audit"),
    "cases.case propose": (case_page("propose"), "audit"),
    "cases.case reject": (case_page("reject", text="No."), "audit"),
    "cases.case replace": (case_page("replace"), "audit"),
    "catalogue.batch hold": (hold_batch, "audit"),
    "catalogue.batch recall_file": (download_buyers, "audit"),
    "catalogue.batch release": (end_hold_of_batch("release"), "audit"),
    "catalogue.batch take_back": (take_back, "audit"),
    "catalogue.batch void": (end_hold_of_batch("void"), "audit"),
    "catalogue.codehold release": (end_hold("release"), "audit"),
    "catalogue.codehold void": (end_hold("void"), "audit"),
    "catalogue.pricelist add_price": (add_price, "audit"),
    "catalogue.pricelist set_prices": (set_prices_of_list, "audit"),
    "catalogue.pricelistentry end": (end_price, "audit"),
    "catalogue.shelf new_prices": (change_prices(make_shelf), "audit"),
    "catalogue.shelf withdraw_price": (withdraw_price(make_shelf), "audit"),
    "topups.topupproduct new_prices": (change_prices(make_topup_product), "audit"),
    "topups.topupproduct withdraw_price": (withdraw_price(make_topup_product), "audit"),
    "catalogue.vouchercode hold": (hold_code, "audit"),
    "catalogue.vouchercode hold_selected": (hold_selected_codes, "audit"),
    "catalogue.vouchercode release": (end_hold_of_code("release"), "audit"),
    "catalogue.vouchercode release_selected": (end_hold_of_selected("release"), "audit"),
    "catalogue.vouchercode reveal": (reveal_code, "audit"),
    "catalogue.vouchercode void": (end_hold_of_code("void"), "audit"),
    "catalogue.vouchercode void_selected": (end_hold_of_selected("void"), "audit"),
    "merchants.invitation approve": (approve, "audit"),
    "merchants.invitation withdraw": (withdraw, "audit"),
    "telegram.announcement announce_again_selected": (announce_again, "audit"),
    "imports.fileimport export": (export_the_catalogue, "audit"),
    "imports.fileimport part": (upload_parts, "audit"),
    "imports.fileimport step": (confirm_import, "audit"),
    "imports.fileimport upload": (upload_file, "audit"),
    "orders.lostpurchase settle": (settle, "audit"),
    "orders.lostpurchase settle_all": (settle_all, "audit"),
    "orders.order credit": (credit, "audit"),
    "orders.order open_case": (open_case, "audit"),
    "orders.order reveal": (reveal_order, "audit"),
    "upkeep.reconcilerun run_now": (run_reconcile, "audit"),
    "wallets.announcedtransfer close": (close_transfer, "audit"),
    "wallets.bookingapproval approve": (decide("approve"), "audit"),
    "wallets.bookingapproval reject": (decide("reject"), "audit"),
    "wallets.ledgerentry reverse": (reverse_entry, "audit"),
    "wallets.wallet book": (book, "audit"),
    **{
        f"topups.fulfilment {name}": (move(name), "history")
        for name in ("claim_selected", "release_selected", "review_selected")
    },
    **{
        f"topups.fulfilment {name}": (move(name), "audit")
        for name in ("complete_selected", "reject_selected", "reject_unrefunded_selected")
    },
    "topups.fulfilment add_proof": (add_proof, "audit"),
    "topups.fulfilment deliver_next": (deliver_on_the_page, "audit"),
    "topups.fulfilment next": (claim_next_order, "history"),
    "topups.fulfilment move": (claim_on_the_page, "history"),
}
# Pages that only read.
READING = {f"topups.fulfilment {name}" for name in ("strip", "glance", "dashboard", "report")}
READING |= {
    f"imports.fileimport {name}"
    for name in ("progress", "problems", "changes", "new_codes", "new_catalogue")
}
READING |= {"imports.fileimport new_prices", "imports.fileimport new_rates"}
READING |= {"catalogue.pricelist import_prices", "catalogue.pricelist import_prices_of_list"}
READING |= {"catalogue.pricelist compare", "catalogue.pricelist compare_list"}
READING |= {"figures.exchangerate import_rates"}
READING |= {
    f"{label} {name}"
    for label in ("catalogue.shelf", "topups.topupproduct")
    for name in ("change_price", "change_prices")
}
READING |= {"wallets.announcedtransfer confirm", "upkeep.reconcilerun progress"}
READING |= {"wallets.announcedtransfer confirm", "cases.case file"}
READING |= {"topups.fulfilment proof_file", "topups.fulfilment viewers"}
READING |= {"wallets.wallet statement"}  # tests/wallets/test_daily_closes.py
READING |= {"catalogue.batch recall"}
READING |= {"catalogue.shelf import_codes", "catalogue.vouchercode import_codes"}
READING |= {"catalogue.product import_catalogue", "accounts.account prices"}
BUILT_IN = {"changelist", "add", "history", "delete", "change", "autocomplete", "password_change"}
BUILT_IN |= {"list_file"}  # test_exports.py


def test_the_table_names_every_action() -> None:
    found = set()
    for model, page in admin.site._registry.items():
        label = model._meta.label_lower
        found |= {f"{label} {name}" for name in page.actions or ()}
        for address in page.get_urls():
            prefix = label.replace(".", "_") + "_"
            name = str(address.name or "")
            if name.startswith(prefix) and name.removeprefix(prefix) not in BUILT_IN:
                found.add(f"{label} {name.removeprefix(prefix)}")
    assert found - READING == set(ACTIONS)


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_each_action_is_recorded(name: str, browser: Client, world: None) -> None:
    carry_out, kind = ACTIONS[name]
    watch = Watch()

    carry_out(browser)

    assert watch.added(kind) != []
