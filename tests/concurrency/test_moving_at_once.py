"""Of operators who act on one version of an order, exactly one moves it."""

from collections.abc import Callable

import pytest
from django.db.models import QuerySet

from tests.concurrency.racing import holding_locks, in_background, race, wait_for_waiting
from tests.factories import buy_topup, make_merchant, make_operator, move_now
from tests.neighbour import ours
from topups.fulfilment import fulfilments
from topups.fulfilment.fulfilments import MoveRefused, Overtaken, move_fulfilment
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import Fulfilment

pytestmark = pytest.mark.django_db(transaction=True)


def no_version_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a move asks only whether the present state allows it."""
    monkeypatch.setattr(
        fulfilments,
        "check_move",
        lambda *, fulfilment, move, operator, **_: fulfilments._check_state(
            fulfilment, move, operator
        ),
    )


def no_row_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: the order is read without a lock."""
    monkeypatch.setattr(QuerySet, "select_for_update", lambda rows, **options: rows)


CONTROLS = {"guarded": None, "no version check": no_version_check, "no row lock": no_row_lock}


@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_an_order_sent_to_review_meanwhile_is_not_refunded(
    monkeypatch: pytest.MonkeyPatch, control: Callable[[pytest.MonkeyPatch], None] | None
) -> None:
    if control:
        control(monkeypatch)
    senior = make_operator(senior=True)
    reference = buy_topup(make_merchant())
    move_now(reference=reference, move=Move.CLAIM, operator=make_operator(username="anna"))
    fulfilment = ours(Fulfilment).get()
    version = version_of(fulfilment)

    def reject() -> str:
        try:
            move_fulfilment(reference=reference, version=version, move=Move.REJECT, operator=senior)
        except Overtaken as overtaken:
            return str(overtaken)
        return "rejected"

    reviewing = (
        "UPDATE topups_fulfilment SET status = 'pending_review', claimed_by_id = NULL,"
        " claimed_at = NULL WHERE id = %s"
    )
    with holding_locks(reviewing, fulfilment.pk) as review:
        review.execute(
            b"INSERT INTO topups_fulfilmentevent"
            b" (fulfilment_id, move, from_status, to_status, actor, channel, note) VALUES"
            b" (%s, 'review', 'processing', 'pending_review', 'anna', 'admin', '')",
            [fulfilment.pk],
        )
        with in_background(reject) as rejecting:
            wait_for_waiting()
            review.commit()

    fulfilment.refresh_from_db()
    if control:
        assert rejecting.result() == "rejected"
        assert fulfilment.refund_due_at is not None
    else:
        assert "review by anna" in rejecting.result()
        assert (fulfilment.status, fulfilment.refund_due_at) == ("pending_review", None)


def test_operators_who_press_together_make_one_move() -> None:
    reference = buy_topup(make_merchant())
    version = version_of(ours(Fulfilment).get())
    operators = [make_operator() for _ in range(6)]
    moves = [Move.CLAIM, Move.COMPLETE, Move.REJECT] * 2

    def press(number: int) -> bool:
        try:
            move_fulfilment(
                reference=reference,
                version=version,
                move=moves[number],
                operator=operators[number],
            )
        except MoveRefused:
            return False
        return True

    moved = race([lambda number=number: press(number) for number in range(6)])  # type: ignore[misc]

    assert moved.count(True) == 1
    assert ours(Fulfilment).get().events.count() == 2


def test_an_operator_who_waited_for_a_claim_reads_who_claimed_the_order() -> None:
    reference = buy_topup(make_merchant())
    fulfilment = ours(Fulfilment).get()
    version = version_of(fulfilment)
    anna, ben = make_operator(username="anna"), make_operator(username="ben")

    def claim() -> str:
        try:
            move_fulfilment(reference=reference, version=version, move=Move.CLAIM, operator=ben)
        except Overtaken as overtaken:
            return str(overtaken)
        return "claimed"

    claiming = (
        "UPDATE topups_fulfilment SET status = 'processing', claimed_by_id = %s,"
        " claimed_at = now() WHERE id = %s"
    )
    with holding_locks(claiming, anna.user.pk, fulfilment.pk) as first:
        first.execute(
            b"INSERT INTO topups_fulfilmentevent"
            b" (fulfilment_id, move, from_status, to_status, actor, channel, note) VALUES"
            b" (%s, 'claim', 'pending', 'processing', 'anna', 'admin', '')",
            [fulfilment.pk],
        )
        with in_background(claim) as second:
            wait_for_waiting()
            first.commit()

    assert "It is now processing, claimed by anna." in second.result()
