"""Sales are counted once each after the purchase, and read by period, product and account."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from catalogue.models import Product
from figures import sales, sales_counting
from figures.margin_counting import count_margins
from figures.margins import By, Period, add_up, read_lines
from figures.models import CountedSales, DailyMarginSum, DailySales, DailyTotal
from figures.sales import PERIODS, Figures, Kind, sales_by_period, sales_by_thing, today
from figures.sales_counting import count_sales
from operators.catalogue.stock_levels import first_to_run_out
from operators.upkeep.reconcile import reconcile
from operators.warnings.raising import sweep_warnings
from orders.models import Order
from orders.remedies.credits import credit_order
from tests.concurrency.racing import execute, holding_locks
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    make_variation,
    move_now,
    new_booking_reference,
    own_shelf,
)
from tests.performance.plans import nodes, recorded_plans
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from topups.models import Channel
from wallets.models import LedgerEntry
from wallets.services import reverse

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


def test_the_totals_of_a_day_are_the_sums_of_its_sales(merchant: Merchant) -> None:
    """Also of sales that are counted later on the same day."""
    product, topup = make_product(price="2.50", codes=5), make_topup_product(price="4.99")
    buy(merchant, product, 3)
    count_sales()
    buy(merchant, product, 2)
    buy_topup(merchant, topup)
    count_sales()

    rows = DailyTotal.objects.values_list("account", "topup_product", "orders", "amount")
    assert set(rows) == {
        (merchant.client.account_id, None, 6, Decimal("17.49")),
        (None, None, 5, Decimal("12.50")),
        (None, topup.pk, 1, Decimal("4.99")),
        (None, None, 6, Decimal("17.49")),  # of all
    }


def test_runs_are_bounded_and_the_next_one_goes_on(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sales_counting, "ORDERS", 2)
    buy(merchant, make_product(price="1", codes=5), 5)

    assert [count_sales() for _ in range(4)] == [2, 2, 1, 0]

    assert totals() == (5, Decimal(5))


def test_the_clients_with_the_fewest_uncounted_orders_come_first(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sales_counting, "ORDERS", 4)
    product = make_product(price="1", codes=7)
    clients = [merchant, make_merchant(), make_merchant()]
    for client, times in zip(clients, (1, 4, 2), strict=True):
        buy(client, product, times)

    def counted() -> list[int]:
        orders = CountedSales.objects.order_by("client").values_list("orders", flat=True)
        return [count_sales(), *orders.all()]

    assert counted() == [4, 1, 1, 2]
    buy(clients[2], make_product(price="1", codes=1))
    assert counted() == [4, 1, 4, 3]
    assert counted() == [0, 1, 4, 3]
    assert totals() == (8, Decimal(8))


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


def credit(order: Order, amount: str) -> LedgerEntry:
    return credit_order(
        reference=order.reference,
        amount=Decimal(amount),
        note="broken",
        actor="admin:anna",
        channel=Channel.ADMIN,
        booking_reference=new_booking_reference(),
    )


@pytest.mark.django_db(transaction=True)
def test_sales_are_net_of_what_was_paid_back_as_margins_are(merchant: Merchant) -> None:
    other, product = make_merchant(), make_product(price="10", codes=2)
    topup_product = make_topup_product(price="4.99")
    buy(merchant, make_product(price="10", codes=1))
    buy(merchant, product)
    buy(other, product)
    old, new, theirs = Order.objects.order_by("pk")
    move_back(old, 8)  # its credits are of today
    credit(old, "2.5"), credit(theirs, "0.07")
    failed = buy_topup(other, topup_product)
    buy_topup(other, topup_product)
    order = move_now(reference=failed, move=Move.REJECT, operator=make_operator())
    carry_out_refund(order.pk)
    count_margins()
    count_sales()
    credit(old, "3"), credit(new, "1.01")  # more of the same day
    count_margins()

    for days in PERIODS:
        period = Period(today() - timedelta(days=days - 1), today())
        (margins,) = add_up(read_lines(period, by=By.KIND)).values()
        assert sales_by_period(day=today())["USD"][days].amount == margins.net
        lines = sales_by_thing(day=today(), days=days)
        for by, kinds in ((By.PRODUCT, {Kind.PRODUCT, Kind.TOP_UP}), (By.MERCHANT, {Kind.ACCOUNT})):
            assert {line.name: line.figures.amount for line in lines if line.kind in kinds} == {
                line.name: line.net for line in read_lines(period, by=by)
            }
        for account in (merchant.account, other.account):
            one = replace(period, account=account.pk)
            (line,) = read_lines(one, by=By.MERCHANT)
            shown = sales_by_period(day=today(), account=account)["USD"][days]
            assert shown.amount == line.net
    assert sales_by_period(day=today())["USD"] == {
        1: Figures(4, Decimal("18.41"), Decimal(0)),
        7: Figures(4, Decimal("18.41"), Decimal(10)),
        30: Figures(5, Decimal("28.41"), Decimal(0)),
    }
    assert reconcile()["findings"] == []


@pytest.mark.django_db(transaction=True)
def test_a_credit_that_is_reversed_leaves_nothing_paid_back(merchant: Merchant) -> None:
    buy(merchant, make_product(price="10", codes=1))
    entry = credit(Order.objects.get(), "2.5")
    count_margins()
    assert set(DailyMarginSum.objects.values_list("paid_back", flat=True)) == {Decimal("2.5")}
    reverse(entry=entry, actor="admin:anna", note="a mistake")
    count_margins()

    assert reconcile()["findings"] == []
    assert set(DailyMarginSum.objects.values_list("paid_back", flat=True)) == {Decimal(0)}


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
        cursor.execute("ANALYZE figures_dailytotal")
        values: dict[str, Any] = {"since": today() - timedelta(days=59), "today": today()}
        values["account"] = row.account_id
        values["middle"] = today() - timedelta(days=29)
        for sql in (sales.OF_ALL, sales.OF_ONE, sales.BY_THING):
            cursor.execute(f"EXPLAIN {sql}", values)
            plan = "\n".join(line for (line,) in cursor)
            assert "figures_daily_total_" in plan, plan
            assert "orders_order " not in plan
            assert "figures_dailysales" not in plan
            assert "figures_dailymargin " not in plan


def test_the_sales_of_all_read_a_row_for_each_day(merchant: Merchant) -> None:
    """However many things and accounts sell."""
    buy(merchant, make_product(price="1", codes=1))
    count_sales()
    row = DailySales.objects.get()
    shelves = [own_shelf(make_product()).pk for _ in range(50)]
    DailySales.objects.bulk_create(
        DailySales(
            day=today() - timedelta(days=age),
            account_id=row.account_id,
            shelf_id=shelf,
            orders=1,
            quantity=1,
            amount=1,
        )
        for age in range(1, 60)
        for shelf in shelves
    )
    execute("ANALYZE figures_dailytotal")

    with recorded_plans() as plans:
        (figures,) = sales_by_period(day=today()).values()

    assert figures[30] == Figures(29 * 50 + 1, Decimal(29 * 50 + 1), Decimal(30 * 50))
    read = [node for plan in plans for node in nodes(plan["Plan"]) if "Relation Name" in node]
    assert {node["Relation Name"] for node in read} == {
        "figures_dailytotal",
        "figures_dailymarginsum",
    }
    assert sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in read) == 60


def test_the_pace_of_shelves_reads_a_row_for_each_shelf_and_day(merchant: Merchant) -> None:
    """However many accounts buy: of the overview, the stock levels, and the warnings."""
    shelf = own_shelf(make_product(price="1", codes=1))
    DailySales.objects.bulk_create(
        DailySales(
            day=today() - timedelta(days=age),
            account_id=account.pk,
            shelf=shelf,
            orders=1,
            quantity=2,
            amount=2,
        )
        for account in [make_account() for _ in range(30)]
        for age in range(8)
    )
    execute("ANALYZE figures_dailysales, figures_dailytotal")

    with recorded_plans() as plans:
        (level,) = first_to_run_out(datetime.now(UTC))
        sweep_warnings()

    assert level.sold == 8 * 30 * 2
    read = [node for plan in plans for node in nodes(plan["Plan"]) if "Relation Name" in node]
    assert "figures_dailytotal" in {node["Relation Name"] for node in read}
    assert "figures_dailysales" not in {
        node["Relation Name"] for node in read if node["Actual Rows"] * node["Actual Loops"] > 1
    }


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
        "INSERT INTO figures_dailysales (day, account_id, shelf_id, orders, quantity, amount)"
        " SELECT day, account_id, shelf_id, 1, 1, 1 FROM figures_dailysales",
        "UPDATE figures_dailysales SET shelf_id = NULL",
        "UPDATE figures_dailysales SET topup_product_id = 1",
    ],
)
def test_the_database_refuses_sales_of_nothing_or_twice(change: str, merchant: Merchant) -> None:
    buy(merchant, make_product(price="1", codes=1))
    count_sales()

    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute(change)
