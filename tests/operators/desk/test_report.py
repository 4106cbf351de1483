"""The report of a shift: how long top-ups waited, and what missed its promised time."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from operators.desk.report import MISSED, TIMES, missed_since, times_since
from tests.factories import Merchant, buy_topup, make_operator, make_topup_product, move_now
from tests.operators.back_office import make_staff, signed_in
from topups.fulfilment.fulfilments import Operator
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment, FulfilmentEvent, TopUpProduct

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

PAGE = reverse("admin:topups_fulfilment_report")


def before(**ago: int) -> Any:
    return timezone.now() - timedelta(**ago)


def rewrite(reference: str, **values: Any) -> None:
    """Changes columns that triggers keep."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        Fulfilment.objects.filter(order_reference=reference).update(**values)
        cursor.execute("SET LOCAL session_replication_role = origin")


def ended(
    merchant: Merchant,
    operator: Operator,
    product: TopUpProduct,
    *,
    claim: int | None,
    end: int,
    move: Move = Move.COMPLETE,
) -> str:
    """An order that was claimed and ended so many minutes after its purchase."""
    reference = buy_topup(merchant, product)
    if claim is not None:
        move_now(reference=reference, move=Move.CLAIM, operator=operator)
    move_now(reference=reference, move=move, operator=operator)
    now = timezone.now()
    bought = now - timedelta(minutes=end)
    rewrite(reference, created_at=bought, closed_at=now)
    if claim is not None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            events = FulfilmentEvent.objects.filter(
                fulfilment__order_reference=reference, move=Move.CLAIM
            )
            events.update(created_at=bought + timedelta(minutes=claim))
            cursor.execute("SET LOCAL session_replication_role = origin")
    return reference


def test_the_waits_are_those_of_each_operator_and_product(merchant: Merchant) -> None:
    anna, ben = make_operator(username="anna"), make_operator(username="ben")
    gems, coins = make_topup_product(name="Gems"), make_topup_product(name="Coins")
    TopUpProduct.objects.filter(pk=coins.pk).update(promised_minutes=60)
    ended(merchant, anna, gems, claim=1, end=3)
    ended(merchant, anna, gems, claim=2, end=5)
    ended(merchant, anna, coins, claim=10, end=90)
    ended(merchant, ben, coins, claim=None, end=7)
    rejected = ended(merchant, ben, coins, claim=None, end=200, move=Move.REJECT)
    assert carry_out_refund(Fulfilment.objects.get(order_reference=rejected).pk)

    rows = times_since(before(hours=8))

    assert rows["all"] == [("All", 4, 1, 2, "2 min", "10 min", "5 min", "1 h 30")]
    assert rows["operator"] == [
        ("anna", 3, 0, 1, "2 min", "10 min", "5 min", "1 h 30"),
        ("ben", 1, 1, 1, "-", "-", "7 min", "7 min"),
    ]
    assert [row[:4] for row in rows["product"]] == [("Coins", 2, 1, 2), ("Gems", 2, 0, 0)]
    assert sum(row[1] for row in rows["hour"]) == 4


def test_orders_later_than_promised_are_listed_open_ones_first(merchant: Merchant) -> None:
    anna, product = make_operator(), make_topup_product(name="Gems")
    TopUpProduct.objects.filter(pk=product.pk).update(promised_minutes=30)
    late = ended(merchant, anna, product, claim=1, end=31)
    ended(merchant, anna, product, claim=1, end=29)
    ended(merchant, anna, make_topup_product(), claim=1, end=600)  # promises nothing
    waiting, fresh = buy_topup(merchant, product), buy_topup(merchant, product)
    rewrite(waiting, created_at=before(minutes=46))

    missed = missed_since(before(hours=8))

    assert [(one["reference"], one["promised"], one["took"]) for one in missed] == [
        (waiting, "30 min", "45 min"),
        (late, "30 min", "31 min"),
    ]
    assert fresh not in str(missed)


def test_the_page_shows_the_span_of_its_address_and_what_is_held(merchant: Merchant) -> None:
    anna = make_operator(username="anna")
    old = ended(merchant, anna, make_topup_product(name="Old gems"), claim=1, end=3)
    rewrite(old, closed_at=before(hours=9))
    held = buy_topup(merchant)
    move_now(reference=held, move=Move.CLAIM, operator=anna)
    browser = signed_in(make_staff("topups.view_fulfilment"))

    page = browser.get(PAGE).content.decode()
    assert "Old gems" not in page
    assert "Claimed and not finished" in page
    assert held in page
    assert "Old gems" in browser.get(PAGE, {"hours": "24"}).content.decode()
    assert "Last 8 hours" in browser.get(PAGE, {"hours": "9\x00"}).content.decode()


def test_the_report_reads_a_range_of_an_index(merchant: Merchant) -> None:
    """Not the whole table: PostgreSQL may not scan it, and finds a way."""
    values = {"since": before(hours=8), "zone": "UTC", "most": 100, "shown": 5}
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for sql in (TIMES, MISSED):
            cursor.execute(f"EXPLAIN {sql}", values)
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "topups_fulfilment_ended" in plan
            assert "Seq Scan on topups_fulfilment" not in plan
