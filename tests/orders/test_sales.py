"""Sales are counted once each after the purchase, and read by period, product and account."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection, transaction

from catalogue.models import Product
from operators.upkeep.reconcile import reconcile
from orders import sales, sales_counting
from orders.models import CountedSales, DailySales, Order
from orders.sales import Figures, sales_by_period, sales_by_thing, today
from orders.sales_counting import count_sales
from tests.concurrency.racing import holding_locks
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]


def buy(merchant: Merchant, product: Product, times: int = 1) -> None:
    for _ in range(times):
        assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201


def totals() -> tuple[int, Decimal]:
    rows = DailySales.objects.values_list("orders", "amount")
    return sum(orders for orders, _ in rows), sum((amount for _, amount in rows), Decimal(0))


def test_each_order_is_counted_once(merchant: Merchant) -> None:
    product = make_product(price="2.50", codes=5)
    buy(merchant, product, 3)
    assert count_sales() == 3
    assert count_sales() == 0
    buy(merchant, product, 2)
    buy_topup(merchant, make_topup_product(price="4.99"))

    assert count_sales() == 3

    assert totals() == (6, Decimal("17.49"))
    assert CountedSales.objects.get().orders == 6


def test_runs_are_bounded_and_the_next_one_goes_on(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sales_counting, "ORDERS", 2)
    monkeypatch.setattr(sales_counting, "SECONDS", 0.0)
    buy(merchant, make_product(price="1", codes=5), 5)

    assert [count_sales() for _ in range(4)] == [2, 2, 1, 0]

    assert totals() == (5, Decimal(5))


def test_orders_of_a_day_are_one_row_for_each_account_and_thing(merchant: Merchant) -> None:
    product = make_product(price="1", codes=4)
    shelf = make_variation(product, price="3", codes=4).shelf
    other = make_merchant()
    second = Merchant(make_client(merchant.account))
    for buyer in (merchant, second, other):
        buy(buyer, product)
    merchant.buy(product_id=product.pk, variation_id=shelf.variation_id, quantity=2)
    count_sales()

    rows = DailySales.objects.order_by("account", "shelf")
    mine, theirs = merchant.account.pk, other.account.pk
    assert [(row.account_id, row.orders, row.quantity, row.amount) for row in rows] == [
        (mine, 2, 2, Decimal(2)),
        (mine, 1, 2, Decimal(6)),
        (theirs, 1, 1, Decimal(1)),
    ]
    assert {row.day for row in rows} == {today()}


@pytest.mark.django_db(transaction=True)
def test_one_run_at_a_time(merchant: Merchant) -> None:
    buy(merchant, make_product(price="1", codes=1))
    with holding_locks(f"SELECT pg_advisory_xact_lock({sales_counting.LOCK})"):
        assert count_sales() == 0

    assert count_sales() == 1
    assert reconcile()["findings"] == []


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_killed_counts_nothing(merchant: Merchant) -> None:
    buy(merchant, make_product(price="1", codes=2), 2)
    with transaction.atomic():
        assert count_sales() == 2
        transaction.set_rollback(True)

    assert count_sales() == 2
    assert totals() == (2, Decimal(2))


def move_back(order: Order, days: int) -> None:
    """Changes the day of an order, which the triggers forbid."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            "UPDATE orders_order SET created_at = created_at - make_interval(days => %s)"
            " WHERE id = %s",
            [days, order.pk],
        )
        cursor.execute("SET session_replication_role = origin")


def test_periods_end_today_and_are_compared_with_those_before(merchant: Merchant) -> None:
    ages = [0, 1, 6, 7, 13, 14, 29, 30, 59, 60]
    buy(merchant, make_product(price="1", codes=len(ages)), len(ages))
    for order, age in zip(Order.objects.order_by("pk"), ages, strict=True):
        move_back(order, age)
    count_sales()

    assert sales_by_period(day=today()) == {
        "USD": {
            1: Figures(1, Decimal(1), Decimal(1)),
            7: Figures(3, Decimal(3), Decimal(2)),
            30: Figures(7, Decimal(7), Decimal(2)),
        }
    }
    lines = sales_by_thing(day=today(), days=7)
    assert [line.figures for line in lines] == [Figures(3, Decimal(3), Decimal(2))] * 2


def test_lines_are_by_product_and_account_and_currency(merchant: Merchant) -> None:
    product = make_product(price="1", codes=2)
    variation = make_variation(product, price="3", codes=1)
    topup_product = make_topup_product(price="4.99")
    euro = make_product(price="7", codes=1, currency="EUR")
    other = Merchant(make_client(make_account(currency="EUR")))
    buy(merchant, product)
    merchant.buy(product_id=product.pk, variation_id=variation.pk, quantity=1)
    buy_topup(merchant, topup_product)
    buy(other, euro)
    count_sales()

    lines = {
        (line.kind.value, line.pk, line.currency): line.figures.amount
        for line in sales_by_thing(day=today(), days=1)
    }

    assert lines == {
        ("product", product.pk, "USD"): Decimal(4),
        ("topup", topup_product.pk, "USD"): Decimal("4.99"),
        ("product", euro.pk, "EUR"): Decimal(7),
        ("account", merchant.account.pk, "USD"): Decimal("8.99"),
        ("account", other.account.pk, "EUR"): Decimal(7),
    }
    periods = sales_by_period(day=today(), account=other.account)
    assert {currency: figures[1].amount for currency, figures in periods.items()} == {"EUR": 7}


def test_figures_read_only_the_days_they_show(merchant: Merchant) -> None:
    """Years of history cost nothing: the plan is a range of the index, and reads no order."""
    buy(merchant, make_product(price="1", codes=1))
    count_sales()
    row = DailySales.objects.get()
    old = [
        DailySales(
            day=today() - timedelta(days=61 + number),
            account_id=row.account_id,
            shelf_id=row.shelf_id,
            orders=1,
            quantity=1,
            amount=1,
        )
        for number in range(3000)
    ]
    DailySales.objects.bulk_create(old)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE orders_dailytotal")
        values = {"since": today() - timedelta(days=59), "today": today(), "account": None}
        values["middle"] = today() - timedelta(days=29)
        for sql in (sales.BY_DAY.format(account="IS NULL"), sales.BY_THING):
            cursor.execute(f"EXPLAIN {sql}", values)
            plan = "\n".join(line for (line,) in cursor)
            assert "orders_daily_total_" in plan, plan
            assert "orders_order " not in plan
            assert "orders_dailysales" not in plan


def test_a_new_day_begins_at_midnight_utc(merchant: Merchant) -> None:
    buy(merchant, make_product(price="1", codes=1))
    late = datetime.fromisoformat("2026-03-01T23:59:59.9+00:00")
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE orders_order SET created_at = %s", [late])
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("SET LOCAL TIME ZONE 'Asia/Tokyo'")

    assert count_sales() == 1

    assert DailySales.objects.get().day == date(2026, 3, 1)


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO orders_dailysales (day, account_id, shelf_id, orders, quantity, amount)"
        " SELECT day, account_id, shelf_id, 1, 1, 1 FROM orders_dailysales",
        "UPDATE orders_dailysales SET shelf_id = NULL",
        "UPDATE orders_dailysales SET topup_product_id = 1",
    ],
)
def test_the_database_refuses_sales_of_nothing_or_twice(change: str, merchant: Merchant) -> None:
    buy(merchant, make_product(price="1", codes=1))
    count_sales()

    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute(change)
