"""The page of an account shows what belongs to a merchant, and leads to what staff do for it."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Account
from audit.models import AuditAction, AuditEntry
from catalogue.models import PriceList
from core.backoffice.staff_roles import StaffRole
from figures.sales_counting import count_sales
from merchants.email.outbox import write_email
from merchants.models import EmailKind, Role
from merchants.people.invitations import invite_person
from operators.merchants import account_hub
from orders.models import Order
from tests.factories import (
    Merchant,
    buy_topup,
    link,
    make_account,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    make_variation,
    move_now,
    own_shelf,
)
from tests.merchants.people import make_member
from tests.operators.back_office import list_url, make_staff, signed_in, url
from tests.operators.pages.test_overview import of_role, rejected, text_of
from topups.fulfilment.transitions import Move
from topups.models import TopUpProduct
from wallets.models import LedgerEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def account(merchant: Merchant) -> Account:
    return merchant.account


def action(account: Account, name: str) -> str:
    return url(account).replace("change/", f"{name}/")


def test_one_page_shows_all_of_a_merchant(
    browser: Client, merchant: Merchant, account: Account
) -> None:
    product = make_product(price="9.99", codes=1, name="Their card")
    link(account, "their-own-name", own_shelf(product))
    assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    count_sales()
    reference = buy_topup(merchant, make_topup_product())
    move_now(reference=reference, move=Move.REJECT, operator=make_operator())
    member = make_member(account)
    invite_person(
        account=account, email="asked@shop.example", role=Role.VIEWER, invited_by=make_staff()
    )
    write_email(kind=EmailKind.CHANGE, to=member.user.email, facts={})

    page = text_of(browser, url(account))

    for shown in (
        "85.02 USD",  # the balance
        "Purchase -9.99",
        "Today 9.99 USD 1 order",
        "Their card",
        "0 open top-ups",
        "1 refund due",
        merchant.client.name,
        "anywhere",
        member.user.email,
        "asked@shop.example",
        "their-own-name",
        f"{member.user.email} waiting",
    ):
        assert shown in page, shown


def test_an_order_has_the_state_that_its_own_page_shows(
    browser: Client, merchant: Merchant, account: Account
) -> None:
    product = make_topup_product()
    claimed, failed = buy_topup(merchant, product), buy_topup(merchant, product)
    move_now(reference=claimed, move=Move.CLAIM, operator=make_operator())
    move_now(reference=failed, move=Move.REJECT, operator=make_operator())

    page = text_of(browser, url(account))

    assert "Processing" in page
    assert "Failed, refund due" in page
    orders = list_url(Order, client__account__id__exact=account.pk)
    assert f'"{orders}">All orders' in browser.get(url(account)).content.decode()


def test_nothing_of_another_merchant_is_shown(browser: Client, account: Account) -> None:
    other = make_merchant()
    member = make_member(other.account)
    write_email(kind=EmailKind.CHANGE, to=member.user.email, facts={})
    product = make_product(codes=1)
    link(other.account, "not-theirs", own_shelf(product))
    other.buy(product_id=product.pk, quantity=1)

    page = text_of(browser, url(account))

    assert member.user.email not in page
    assert "not-theirs" not in page
    assert f"{other.client.name} " not in page
    assert "No orders yet." in page


SECTIONS = {"money", "sales", "orders", "clients", "people", "prices", "company", "emails"}


@pytest.mark.parametrize(
    ("role", "hidden"),
    [
        (StaffRole.FINANCE, {"people", "emails"}),
        (StaffRole.ADMINISTRATOR, {"money", "sales", "orders", "clients", "people"}),
        (StaffRole.MERCHANT_MANAGER, {"money"}),
        (StaffRole.SUPPORT, {"money", "sales"}),
        (StaffRole.AUDITOR, set()),
    ],
)
def test_each_role_sees_its_sections(role: StaffRole, hidden: set[str], account: Account) -> None:
    page = of_role(role).get(url(account))

    assert set(page.context["hub"]) & SECTIONS == SECTIONS - hidden
    shown = set(re.findall(r'class="hub-section" id="(\w+)"', page.content.decode()))
    assert shown == SECTIONS - hidden


def test_due_refunds_are_counted_up_to_a_limit(
    browser: Client, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While refunds stand still, the page does not read all of them."""
    for _ in range(3):
        rejected(make_merchant())
    assert "0 refunds due" in text_of(browser, url(account))

    monkeypatch.setattr(account_hub, "MOST_REFUNDS", 2)

    assert "0+ refunds due" in text_of(browser, url(account))


def test_money_is_booked_from_the_page(browser: Client, account: Account) -> None:
    form = {"kind": "deposit", "amount": "5", "reason": "paid in", "form_id": str(uuid4())}
    form["reference"] = "bank 4711"
    assert action(account, "book") in browser.get(url(account)).content.decode()

    answer = browser.post(action(account, "book"), {**form, "confirmed": "1"})

    assert answer["Location"] == url(account)
    account.wallet.refresh_from_db()
    assert account.wallet.balance == 105
    assert LedgerEntry.objects.filter(wallet=account.pk).latest("pk").note == "paid in"


def test_no_money_is_booked_without_a_wallet_or_the_permission(browser: Client) -> None:
    without = make_account(wallet=False)
    assert action(without, "book") not in browser.get(url(without)).content.decode()
    assert browser.get(action(without, "book")).status_code == 404

    account = make_account()
    reader = signed_in(make_staff("accounts.view_account", "wallets.view_wallet"))
    assert reader.get(action(account, "book")).status_code == 403


def test_links_fill_in_the_account(browser: Client, account: Account) -> None:
    page = browser.get(url(account)).content.decode()
    for name in ("accounts_apiclient", "merchants_invitation"):
        address = reverse(f"admin:{name}_add", query={"account": account.pk})
        assert address in page
        assert f'value="{account.pk}" selected' in browser.get(address).content.decode()


def test_switching_off_asks_for_a_reason_and_records_it(
    browser: Client, merchant: Merchant, account: Account
) -> None:
    question = text_of(browser, action(account, "switch-off"))
    assert "Clients that stop at once: 1." in question
    assert merchant.get("/ping").status_code == 200

    browser.post(action(account, "switch-off"), {"reason": "  "})
    assert merchant.get("/ping").status_code == 200
    browser.post(action(account, "switch-off"), {"reason": "does not pay"})

    assert merchant.get("/ping").json()["error"]["code"] == "client_disabled"
    entry = AuditEntry.objects.filter(action=AuditAction.ACCOUNT_CHANGED).latest("pk")
    assert (entry.note, entry.changes) == ("does not pay", {"enabled": [True, False]})
    assert entry.actor is not None
    assert "This account is switched off." in text_of(browser, url(account))

    browser.post(action(account, "switch-on"), {"reason": "has paid"})
    assert merchant.get("/ping").status_code == 200


def test_a_repeated_press_changes_nothing(browser: Client, account: Account) -> None:
    for _ in range(2):
        answer = browser.post(action(account, "switch-off"), {"reason": "x"})
    assert answer.status_code == 302

    account.refresh_from_db()
    assert account.enabled is False
    assert AuditEntry.objects.filter(action=AuditAction.ACCOUNT_CHANGED).count() == 1
    assert "is already switched off" in text_of(browser, url(account))


def test_the_form_does_not_switch(browser: Client, account: Account) -> None:
    browser.post(url(account), {"name": "Renamed"})

    account.refresh_from_db()
    assert (account.name, account.enabled) == ("Renamed", True)


def test_only_those_who_change_accounts_switch_them(account: Account) -> None:
    reader = of_role(StaffRole.FINANCE)

    assert reader.post(action(account, "switch-off"), {"reason": "x"}).status_code == 403
    assert "Switch off" not in reader.get(url(account)).content.decode()


def test_the_price_list_is_what_the_api_shows(
    browser: Client, merchant: Merchant, account: Account
) -> None:
    product = make_product(price="9.99", name="Listed card")
    make_variation(product, price="19.99", name="Large")
    make_product(price="5", name="Elsewhere", currency="EUR")
    make_product(price="5", name="Hidden card", active=False)
    page = text_of(browser, action(account, "prices"))

    for one in merchant.get("/products").json()["data"]["items"]:
        for shelf in (one, *one["variations"]):
            price = "-" if shelf["price"] is None else f"{shelf['price']} USD"
            name = one["name"] if shelf is one else f"{one['name']} / {shelf['name']}"
            assert f"{name} - {price} 1 0" in page
    assert "Hidden card" not in page
    prices = browser.get(action(account, "prices")).content.decode()
    assert f'href="{list_url(TopUpProduct)}">Top-up products<' in prices
    gold = PriceList.objects.create(name="Gold", currency=account.currency)
    Account.objects.filter(pk=account.pk).update(price_list_id=gold.pk)
    prices = browser.get(action(account, "prices")).content.decode()
    assert f'href="{url(gold)}#dataset-topupproduct">Top-up prices<' in prices
    assert "Large" in text_of(browser, action(account, "prices") + "?q=listed")
    assert "Elsewhere" not in text_of(browser, action(account, "prices") + "?q=listed")
    assert browser.get(action(account, "prices") + "?q=%00&page=9²").status_code == 200
    assert signed_in(make_staff()).get(action(account, "prices")).status_code == 403


@pytest.mark.menu
def test_the_page_costs_the_same_with_more_rows(
    browser: Client, merchant: Merchant, account: Account, django_assert_max_num_queries: Any
) -> None:
    product = make_product(price="0.10", codes=12)
    for _ in range(6):
        make_member(account)
        merchant.buy(product_id=product.pk, quantity=1)
    browser.get(url(account))

    with django_assert_max_num_queries(60):
        browser.get(url(account))
