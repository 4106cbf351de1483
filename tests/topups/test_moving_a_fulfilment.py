"""Every allowed move of a fulfilment happens once and is recorded. Other moves are refused."""

from itertools import product as pairs
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, models, transaction

from audit.models import AuditEntry
from tests.factories import Merchant, buy_topup, make_operator, make_topup_product, move_now
from tests.neighbour import ours
from topups.fulfilment.fulfilments import MoveRefused, Operator
from topups.fulfilment.transitions import RULES, Move
from topups.models import Channel, Fulfilment, FulfilmentStatus, RejectReason

pytestmark = pytest.mark.django_db

ROUTES: dict[str, list[Move]] = {
    "pending": [],
    "processing": [Move.CLAIM],
    "pending_review": [Move.CLAIM, Move.REVIEW],
    "completed": [Move.COMPLETE],
    "failed": [Move.REJECT],
}

# (from, move) → to: the whole table, written out by hand so that the code's table is tested.
LEGAL = {
    ("pending", "claim"): "processing",
    ("processing", "release"): "pending",
    ("pending", "complete"): "completed",
    ("processing", "complete"): "completed",
    ("pending_review", "complete"): "completed",
    ("pending", "reject"): "failed",
    ("processing", "reject"): "failed",
    ("pending_review", "reject"): "failed",
    ("processing", "review"): "pending_review",
    ("pending_review", "reject_unrefunded"): "failed",
}


def bring(merchant: Merchant, status: str, operator: Operator, **product: Any) -> str:
    """A bought top-up, moved to this state."""
    reference = buy_topup(merchant, make_topup_product(**product))
    for move in ROUTES[status]:
        move_now(reference=reference, move=move, operator=operator)
    return reference


@pytest.mark.parametrize(("start", "move"), list(pairs(FulfilmentStatus.values, Move.values)))
def test_each_move_from_each_state(merchant: Merchant, start: str, move: str) -> None:
    senior = make_operator(senior=True)
    reference = bring(merchant, start, senior)
    before = ours(Fulfilment).values().get()
    events = list(ours(Fulfilment).get().events.values())
    target = LEGAL.get((start, move))
    trail = AuditEntry.objects.filter(reference=reference)
    entries = trail.count()

    if target is None:
        with pytest.raises(MoveRefused, match=FulfilmentStatus(start).label.lower()):
            move_now(reference=reference, move=Move(move), operator=senior)
        assert ours(Fulfilment).values().get() == before
        assert list(ours(Fulfilment).get().events.values()) == events
        assert trail.count() == entries
    else:
        moved = move_now(reference=reference, move=Move(move), operator=senior, note="because")
        event = moved.events.last()
        assert moved.status == target
        assert event is not None
        assert (event.from_status, event.to_status, event.move) == (start, target, move)
        assert (event.actor, event.channel) == (senior.user.username, "admin")
        assert "because" in event.note
        assert trail.count() - entries == (target in ("completed", "failed"))


def test_the_merchant_reads_the_derived_status(merchant: Merchant) -> None:
    seen = {}
    for status in FulfilmentStatus.values:
        reference = bring(merchant, status, make_operator(senior=True))
        seen[status] = merchant.get(f"/orders/{reference}").json()["data"]["status"]

    assert seen == {
        "pending": "pending",
        "processing": "pending",
        "pending_review": "pending",
        "completed": "completed",
        "failed": "failed",
    }


@pytest.mark.parametrize(
    ("channel", "reason", "shown"),
    [
        (Channel.TELEGRAM, RejectReason.WRONG_ID, "wrong_id"),
        (Channel.TELEGRAM, RejectReason.NO_STOCK, "no_stock"),
        (Channel.TELEGRAM, RejectReason.OTHER, "fulfilment_failed"),
        (Channel.ADMIN, RejectReason.WRONG_ID, "fulfilment_failed"),
        (Channel.COMMAND, RejectReason.NO_STOCK, "fulfilment_failed"),
    ],
)
def test_the_failure_reason_depends_on_the_channel(
    merchant: Merchant, channel: Channel, reason: RejectReason, shown: str
) -> None:
    reference = buy_topup(merchant)
    operator = make_operator(channel=channel)

    move_now(reference=reference, move=Move.REJECT, operator=operator, reason=reason)

    assert merchant.get(f"/orders/{reference}").json()["data"]["failure_reason"] == shown


class NewReason(models.TextChoices):
    """A reason that v1 of the contract does not have."""

    DUPLICATE = "duplicate", "Ordered twice"


def test_a_reason_of_the_staff_alone_reads_as_a_failure(merchant: Merchant) -> None:
    reference = buy_topup(merchant)
    reason: Any = NewReason.DUPLICATE

    moved = move_now(
        reference=reference,
        move=Move.REJECT,
        operator=make_operator(channel=Channel.TELEGRAM),
        reason=reason,
    )

    order = merchant.get(f"/orders/{reference}").json()["data"]
    assert order["failure_reason"] == "fulfilment_failed"
    event = moved.events.last()
    assert event is not None
    assert event.note == "duplicate"


@pytest.mark.parametrize(
    ("move", "reason", "stock"),
    [
        (Move.REJECT, RejectReason.OTHER, 2),
        (Move.REJECT, RejectReason.WRONG_ID, 2),
        (Move.REJECT, RejectReason.NO_STOCK, 1),
        (Move.COMPLETE, RejectReason.OTHER, 1),
    ],
)
def test_counted_stock_returns_except_after_no_stock(
    merchant: Merchant, move: Move, reason: RejectReason, stock: int
) -> None:
    product, other = (make_topup_product(available_stock=2) for _ in range(2))
    reference = buy_topup(merchant, product)

    move_now(reference=reference, move=move, operator=make_operator(), reason=reason)

    product.refresh_from_db()
    assert product.available_stock == stock
    other.refresh_from_db()
    assert other.available_stock == 2


def test_an_operator_cannot_act_on_anothers_claim(merchant: Merchant) -> None:
    anna = make_operator(username="anna")
    reference = bring(merchant, "processing", anna)

    for move in (Move.COMPLETE, Move.REJECT, Move.RELEASE, Move.REVIEW):
        with pytest.raises(MoveRefused, match="claimed by anna"):
            move_now(reference=reference, move=move, operator=make_operator())


def test_a_senior_can_act_on_anothers_claim(merchant: Merchant) -> None:
    reference = bring(merchant, "processing", make_operator())

    moved = move_now(reference=reference, move=Move.RELEASE, operator=make_operator(senior=True))

    assert (moved.status, moved.claimed_by) == ("pending", None)


@pytest.mark.parametrize("move", [Move.REJECT, Move.REJECT_UNREFUNDED])
def test_only_a_senior_can_fail_an_order_in_review(merchant: Merchant, move: Move) -> None:
    operator = make_operator()
    reference = bring(merchant, "pending_review", operator)

    with pytest.raises(MoveRefused, match="senior"):
        move_now(reference=reference, move=move, operator=operator)

    assert ours(Fulfilment).get().refund_due_at is None


@pytest.mark.parametrize("lacking", ["is_staff", "is_active"])
def test_only_active_staff_can_move_orders(merchant: Merchant, lacking: str) -> None:
    reference = buy_topup(merchant)
    fields: dict[str, Any] = {lacking: False}

    with pytest.raises(MoveRefused, match="may not"):
        move_now(reference=reference, move=Move.CLAIM, operator=make_operator(**fields))


def test_staff_without_the_permission_cannot_move_orders(merchant: Merchant) -> None:
    reference = buy_topup(merchant)
    user = User.objects.create_user("clerk", is_staff=True)

    with pytest.raises(MoveRefused, match="may not"):
        move_now(
            reference=reference,
            move=Move.CLAIM,
            operator=Operator(user=user, channel=Channel.ADMIN),
        )


def test_unknown_reference_is_reported(db: None) -> None:
    with pytest.raises(MoveRefused, match="no top-up order"):
        move_now(reference="nope", move=Move.CLAIM, operator=make_operator())


def test_every_move_is_tested() -> None:
    assert {move for _, move in LEGAL} == set(Move.values) == set(RULES)


@pytest.mark.parametrize(
    "change",
    [
        "status = 'pending', closed_at = NULL",
        "status = 'failed', failure_reason = 'no_stock'",
        "refund_due_at = now()",
        "player_id = 'another'",
        "amount = 1",
        "status = 'processing'",
        "failure_reason = 'wrong_id'",
    ],
)
def test_database_refuses_to_change_an_ended_order(merchant: Merchant, change: str) -> None:
    bring(merchant, "completed", make_operator())

    with (
        pytest.raises(DatabaseError),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"UPDATE topups_fulfilment SET {change}")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("statement", ["UPDATE {} SET note = 'x'", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_history_is_append_only(merchant: Merchant, statement: str) -> None:
    buy_topup(merchant)

    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement.format("topups_fulfilmentevent"))


@pytest.mark.django_db
def test_the_database_refuses_to_delete_an_order(merchant: Merchant) -> None:
    bring(merchant, "completed", make_operator())

    with (
        pytest.raises(DatabaseError, match="this change is not allowed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM topups_fulfilment")
