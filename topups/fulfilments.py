"""Moving fulfilments: the one service behind the desk, the command and the Telegram bot."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models import F
from django.utils import timezone

from config.database.columns import NOTE_LENGTH
from config.queue import enqueue
from topups.models import (
    Channel,
    FailureReason,
    Fulfilment,
    FulfilmentEvent,
    FulfilmentStatus,
    TopUpProduct,
)
from topups.refunds import settle
from topups.signals import fulfilment_moved
from topups.transitions import DECIDE_REVIEW, FULFIL, PROCESSING, RULES, Move, needs_senior


class RejectReason(models.TextChoices):
    """Why an operator rejects an order."""

    WRONG_ID = "wrong_id"
    NO_STOCK = "no_stock"
    OTHER = "other"


class MoveRefused(Exception):
    """The move did not happen. The message tells the operator why."""


class Overtaken(MoveRefused):
    """The order is no longer in a state that the move starts from: somebody was faster."""


@dataclass(frozen=True)
class Operator:
    """A member of staff, and the channel they act through."""

    user: User
    channel: Channel

    @property
    def is_senior(self) -> bool:
        return self.user.has_perm(DECIDE_REVIEW)


def move_fulfilment(
    *,
    reference: str,
    move: Move,
    operator: Operator,
    reason: RejectReason = RejectReason.OTHER,
    note: str = "",
) -> Fulfilment:
    """Carries out one move and records its event, in one transaction; returns the moved fulfilment.

    The UPDATE names the state it starts from. If two operators act at once, one succeeds and the
    other gets Overtaken. In the same transaction, a rejection makes the refund due and returns
    counted stock, except for the reason `no_stock`. An order that fails without a refund, and was
    credited in full before, becomes refunded.

    Raises MoveRefused if the order is unknown, the operator may not make the move, or the present
    state does not allow it (Overtaken).
    """
    with transaction.atomic():
        before = _find(reference)
        _check(before, move, operator)
        changes = _changes(before, move, operator, reason)
        updated = Fulfilment.objects.filter(
            pk=before.pk, status=before.status, claimed_by=before.claimed_by_id
        ).update(**changes)
        if not updated:
            raise Overtaken(_present(_find(reference)))
        FulfilmentEvent.objects.create(
            fulfilment=before,
            move=move,
            from_status=before.status,
            to_status=RULES[move].target,
            actor=operator.user.get_username(),
            channel=operator.channel,
            note=_note(note, move, reason),
        )
        if RULES[move].refund:  # nothing was delivered
            _return_stock(before, reason)
        elif RULES[move].target == FulfilmentStatus.FAILED:
            settle(_find(reference), actor=operator.user.get_username(), channel=operator.channel)
        _act_on_commit(before.pk, refund=RULES[move].refund)
    return _find(reference)


def claim_next(*, operator: Operator) -> Fulfilment | None:
    """Claims the oldest pending order; returns None if no order is pending.

    An order that somebody else claims in the meantime is skipped, so operators who ask at the same
    moment get different orders. Raises MoveRefused if the operator may not claim at all.
    """
    for reference in _waiting():
        try:
            return move_fulfilment(reference=reference, move=Move.CLAIM, operator=operator)
        except Overtaken:
            continue
    return None


def _waiting() -> Iterator[str]:
    """Yields the oldest pending order reference that was not yielded before."""
    tried: list[str] = []
    while True:
        waiting = Fulfilment.objects.filter(status=FulfilmentStatus.PENDING)
        oldest = waiting.exclude(order_reference__in=tried).order_by("created_at", "pk").first()
        if oldest is None:
            return
        tried.append(oldest.order_reference)
        yield oldest.order_reference


def may_move(fulfilment: Fulfilment, move: Move, operator: Operator) -> bool:
    """Whether the move would be accepted now. The desk and the bot offer only such moves."""
    try:
        _check(fulfilment, move, operator)
    except MoveRefused:
        return False
    return True


def _find(reference: str) -> Fulfilment:
    found = (
        Fulfilment.objects.select_related("claimed_by", "product", "account")
        .filter(order_reference=reference)
        .first()
    )
    if found is None:
        raise MoveRefused("There is no top-up order with this reference.")
    return found


def _check(fulfilment: Fulfilment, move: Move, operator: Operator) -> None:
    user = operator.user
    if not (user.is_active and user.is_staff and user.has_perm(FULFIL)):
        raise MoveRefused("You may not work on top-up orders.")
    if fulfilment.status not in RULES[move].sources:
        raise Overtaken(_present(fulfilment))
    if needs_senior(move, FulfilmentStatus(fulfilment.status)) and not operator.is_senior:
        raise MoveRefused("This order is in review: only a senior operator may fail it.")
    held_by_other = fulfilment.claimed_by is not None and fulfilment.claimed_by != user
    if held_by_other and not operator.is_senior:
        raise MoveRefused(_present(fulfilment))


def _changes(
    fulfilment: Fulfilment, move: Move, operator: Operator, reason: RejectReason
) -> dict[str, Any]:
    rule = RULES[move]
    now = timezone.now()
    claimed = rule.target == PROCESSING
    changes: dict[str, Any] = {
        "status": rule.target,
        "claimed_by": operator.user if claimed else None,
        "claimed_at": now if claimed else None,
    }
    if rule.target == FulfilmentStatus.COMPLETED:
        changes |= {"closed_at": now}
    if rule.target == FulfilmentStatus.FAILED:
        changes |= {"closed_at": now, "failure_reason": failure_reason(reason, operator.channel)}
    if rule.refund:
        changes |= {"refund_due_at": now}
    return changes


def failure_reason(reason: RejectReason, channel: Channel) -> FailureReason:
    """What the merchant reads: `wrong_id` and `no_stock` only for rejections on the messaging
    platform (contract, "Top-up order")."""
    if channel == Channel.TELEGRAM and reason != RejectReason.OTHER:
        return FailureReason(reason.value)
    return FailureReason.FULFILMENT_FAILED


def _return_stock(fulfilment: Fulfilment, reason: RejectReason) -> None:
    if fulfilment.takes_stock and reason != RejectReason.NO_STOCK:
        # NULL + 1 is NULL: a stock that is no longer counted stays so.
        TopUpProduct.objects.filter(pk=fulfilment.product_id).update(
            available_stock=F("available_stock") + 1
        )


def _act_on_commit(fulfilment_id: int, *, refund: bool) -> None:
    """Queues the refund and sends the signal after the commit."""
    if refund:
        transaction.on_commit(partial(enqueue, "topups.tasks.refund_fulfilment", fulfilment_id))
    transaction.on_commit(
        partial(fulfilment_moved.send_robust, sender=Fulfilment, fulfilment_id=fulfilment_id)
    )


def _note(note: str, move: Move, reason: RejectReason) -> str:
    why = reason.value if move in (Move.REJECT, Move.REJECT_UNREFUNDED) else ""
    return ": ".join(part for part in (why, note.strip()) if part)[:NOTE_LENGTH]


def _present(fulfilment: Fulfilment) -> str:
    """The present state of an order that was not moved, for the operator who tried."""
    holder = f", claimed by {fulfilment.claimed_by}" if fulfilment.claimed_by else ""
    last = fulfilment.events.last()
    by = f" ({last.move} by {last.actor})" if last else ""
    return f"Nothing was changed: this order is {fulfilment.status}{holder}{by}."
