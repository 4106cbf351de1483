"""A client spends at most its limit in a day and in a month; beyond it, a purchase is refused."""

from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from audit.models import AuditAction, AuditEntry
from merchants.api_access.spending_limits import sweep_spending_limits
from merchants.models import Email, Role
from operators.upkeep.reconcile import reconcile
from orders.models import ClientCounter, Order, SpendingLimit
from orders.spending_limits import Limits, set_spending_limits, spending_of
from tests.concurrency.racing import (
    execute,
    outcome,
    race,
    weakened_sql,
    with_own_http,
)
from tests.factories import Merchant, make_merchant, make_product, make_topup_product
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours

pytestmark = pytest.mark.django_db(transaction=True)


def limited(per_day: str | None = None, per_month: str | None = None) -> Merchant:
    merchant = make_merchant(balance="1000.00")
    limit(merchant, per_day, per_month)
    return merchant


def limit(merchant: Merchant, per_day: str | None, per_month: str | None = None) -> None:
    set_spending_limits(
        client=merchant.client,
        limits=Limits(
            Decimal(per_day) if per_day else None, Decimal(per_month) if per_month else None
        ),
    )


def buy(merchant: Merchant, quantity: int = 1, price: str = "10.00", **more: Any) -> str:
    """The outcome of a purchase of that many codes."""
    product = make_product(price=price, codes=quantity)
    return outcome(merchant.buy(product_id=product.pk, quantity=quantity, **more))


def balance(merchant: Merchant) -> str:
    return str(merchant.get("/balance").json()["data"]["balance"])


@pytest.mark.parametrize("limits", [("25.00", None), (None, "25.00"), ("25.00", "99.00")])
def test_a_purchase_beyond_the_limit_is_refused(limits: tuple[str | None, str | None]) -> None:
    merchant = limited(*limits)

    assert [buy(merchant) for _ in range(3)] == ["bought", "bought", "insufficient_balance"]

    assert buy(merchant, price="5.00") == "bought"  # exactly the limit
    assert buy(merchant, price="0.0001") == "insufficient_balance"
    assert balance(merchant) == "975.0"
    assert reconcile()["findings"] == []


def test_a_refusal_by_the_limit_names_it() -> None:
    """The wallet has money: "add money" would be wrong."""
    merchant, product = limited("5.00"), make_product(price="10.00", codes=1)
    error = merchant.buy(product_id=product.pk, quantity=1).json()["error"]

    assert error["reason"] == "insufficient_balance"
    assert "spending limit" in error["message"]
    assert "add money" not in error["message"]


def test_a_top_up_counts_too() -> None:
    merchant = limited("7.00")
    product = make_topup_product(price="4.00")
    body: Any = {"delivery_type": "top_up", "system_product_id": product.pk, "player_id": "1"}

    assert [outcome(merchant.buy(**body)) for _ in range(2)] == ["bought", "insufficient_balance"]
    assert balance(merchant) == "996.0"


def test_a_refused_purchase_can_be_sent_again_after_the_limit_is_raised() -> None:
    merchant = limited("5.00")
    product = make_product(price="10.00", codes=1)
    send = partial(merchant.buy, "my-order-1", product_id=product.pk, quantity=1)

    assert outcome(send()) == "insufficient_balance"
    limit(merchant, "10.00")

    assert outcome(send()) == "bought"
    assert Order.objects.latest("pk").idempotency_key == "my-order-1"


def test_other_clients_and_earlier_purchases_do_not_count() -> None:
    merchant = make_merchant(balance="1000.00")
    buy(merchant)
    limit(merchant, "10.00")

    assert buy(make_merchant()) == "bought"
    assert buy(merchant) == "bought"
    assert buy(merchant) == "insufficient_balance"
    assert reconcile()["findings"] == []


@pytest.mark.parametrize(("days", "limits"), [(1, ("10.00", None)), (32, (None, "10.00"))])
def test_a_new_day_and_month_begin_at_zero(
    days: int, limits: tuple[str | None, str | None]
) -> None:
    merchant = limited(*limits)
    buy(merchant)
    assert buy(merchant) == "insufficient_balance"

    execute(
        f"UPDATE orders_spendinglimit SET day = day - {days},"
        f" month = date_trunc('month', (month - {days})::timestamp)"
    )
    assert spending_of(merchant.client).today == 0  # type: ignore[union-attr]
    assert buy(merchant) == "bought"


def test_a_limit_of_a_month_outlives_the_day() -> None:
    merchant = limited("10.00", "15.00")
    buy(merchant)
    execute("UPDATE orders_spendinglimit SET day = day - 1")

    assert buy(merchant) == "insufficient_balance"


def test_removing_the_limit_sells_again() -> None:
    merchant = limited("5.00")
    assert buy(merchant) == "insufficient_balance"

    limit(merchant, None)

    assert buy(merchant) == "bought"
    assert not SpendingLimit.objects.exists()
    assert not ClientCounter.objects.filter(limited=True).exists()
    assert reconcile()["findings"] == []


def test_a_replay_counts_once() -> None:
    merchant = limited("10.00")
    product = make_product(price="10.00", codes=1)
    send = partial(merchant.buy, "k", product_id=product.pk, quantity=1)

    assert [outcome(send()), outcome(send())] == ["bought", "replayed"]


# --- The owners ----------------------------------------------------------------------------------


@pytest.fixture
def refused() -> Merchant:
    merchant = limited("5.00")
    make_member(merchant.account, Role.OWNER)
    buy(merchant)
    return merchant


def test_owners_receive_one_email_a_day(refused: Merchant) -> None:
    assert (sweep_spending_limits(), sweep_spending_limits()) == (1, 0)
    buy(refused)
    assert sweep_spending_limits() == 0
    (email,) = ours(Email)
    assert email.facts["change"] == "Spending limit reached"

    execute("UPDATE orders_spendinglimit SET refused_on = refused_on - 1, reported_on = day - 1")
    buy(refused)
    assert sweep_spending_limits() == 1


def test_simultaneous_sweeps_send_one_email(refused: Merchant) -> None:
    assert sorted(race([sweep_spending_limits] * 4)) == [0, 0, 0, 1]


def test_a_low_balance_is_not_reported_as_the_limit() -> None:
    merchant = make_merchant(balance="1.00")
    limit(merchant, "500.00")

    assert buy(merchant) == "insufficient_balance"
    assert SpendingLimit.objects.get().refused_on is None


def test_an_owner_sets_the_limit_on_the_page_of_the_client() -> None:
    merchant = make_merchant(balance="100.00")
    browser = browser_of(make_member(merchant.account, Role.OWNER).user)
    address = f"/merchant/clients/{merchant.client.pk}/"

    browser.post(f"{address}spending/", {"per_day": "12.50", "per_month": ""})
    buy(merchant)

    page = browser.get(address).content.decode()
    assert "10.00 of 12.50 USD spent today" in page
    assert buy(merchant) == "insufficient_balance"
    entry = AuditEntry.objects.get(action=AuditAction.SPENDING_LIMIT_CHANGED)
    assert entry.changes["per_day"] == ["no limit", "12.50 USD"]
    assert "insufficient_balance" in browser.get(f"{address}spending/").content.decode()
    low = browser.post(f"{address}spending/", {"per_day": "100", "per_month": "99.99"})
    assert "A month must have at least the limit of a day." in low.content.decode()
    browser.post(f"{address}spending/", {"per_day": "-1", "per_month": ""})
    small = browser.post(f"{address}spending/", {"per_day": "0.001", "per_month": "1500,555"})
    assert small.content.decode().count("Enter at most 2 decimals.") == 2
    assert SpendingLimit.objects.get().per_day == Decimal("12.50")


# --- At the same time ----------------------------------------------------------------------------


def buy_at_once(merchant: Merchant, number: int) -> list[str]:
    products = [make_product(price="10.00", codes=1) for _ in range(number)]
    calls = [
        partial(with_own_http(merchant).buy, product_id=product.pk, quantity=1)
        for product in products
    ]
    return sorted(outcome(answer) for answer in race(calls))


def test_simultaneous_purchases_stay_within_the_limit() -> None:
    merchant = limited("35.00")

    told = buy_at_once(merchant, 8)

    assert told == ["bought"] * 3 + ["insufficient_balance"] * 5
    assert balance(merchant) == "970.0"
    assert reconcile()["findings"] == []


def test_control_without_the_condition_purchases_exceed_the_limit() -> None:
    merchant = limited("35.00")
    condition = "+ p_amount <= per_day)"

    with weakened_sql("orders/sql/spend.sql", (condition, "+ p_amount <= per_day OR true)")):
        told = buy_at_once(merchant, 8)

    assert told == ["bought"] * 8


def test_setting_a_limit_waits_for_purchases_and_counts_those_after() -> None:
    merchant = make_merchant(balance="1000.00")
    products = [make_product(price="10.00", codes=1) for _ in range(6)]

    race(
        [
            *(
                partial(with_own_http(merchant).buy, product_id=product.pk, quantity=1)
                for product in products
            ),
            partial(limit, merchant, "500.00"),
        ]
    )

    assert reconcile()["findings"] == []
