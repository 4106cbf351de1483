"""The database refuses to change what was bought, how it ended, and a refund."""

import pytest
from django.db import DatabaseError, connection, transaction

from tests.factories import make_account, make_topup_product
from topups.models import Fulfilment

pytestmark = pytest.mark.django_db

BOUGHT = {
    "order_reference": "'X'",
    "account_id": "%(account)s",
    "product_id": "%(product)s",
    "player_id": "'9'",
    "fields": """'[{"id": 1}]'""",
    "amount": "amount + 1",
    "currency": "'EUR'",
    "takes_stock": "NOT takes_stock",
}
ENDED = {
    "status": "'pending'",
    "failure_reason": "'wrong_id'",
    "closed_at": "closed_at + interval '1 s'",
    "refund_due_at": "now() + interval '1 s'",
}


def change(fulfilment: Fulfilment, column: str, value: str) -> None:
    names = {
        "pk": fulfilment.pk,
        "account": make_account().pk,
        "product": make_topup_product().pk,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE topups_fulfilment SET {column} = {value} WHERE id = %(pk)s",
            names,
        )


def refuses(fulfilment: Fulfilment, column: str, value: str) -> None:
    with pytest.raises(DatabaseError) as refused:
        change(fulfilment, column, value)
    assert "this change is not allowed" in str(refused.value), column


@pytest.mark.parametrize("status", ["pending", "processing", "pending_review", "completed"])
def test_what_was_bought_never_changes(status: str) -> None:
    for column, value in BOUGHT.items():
        refuses(Fulfilment.objects.get(status=status), column, value)


@pytest.mark.parametrize("refunded", [True, False])
def test_a_failed_order_stays_as_it_ended(refunded: bool) -> None:
    failed = Fulfilment.objects.get(status="failed", refunded_at__isnull=not refunded)
    for column, value in ENDED.items():
        refuses(failed, column, value)


def test_a_delivered_order_stays_as_it_ended() -> None:
    for column, value in ENDED.items():
        refuses(Fulfilment.objects.get(status="completed"), column, value)


@pytest.mark.parametrize("value", ["NULL", "refunded_at + interval '1 s'"])
def test_a_refund_is_never_undone(value: str) -> None:
    refuses(Fulfilment.objects.get(refunded_at__isnull=False), "refunded_at", value)


def test_control_an_order_in_progress_moves_on() -> None:
    pending = Fulfilment.objects.get(status="pending")

    change(pending, "status", "'pending_review'")

    pending.refresh_from_db()
    assert pending.status == "pending_review"
