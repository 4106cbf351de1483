"""Moving fulfilments: the one service behind the desk, the command and the Telegram bot."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.actor import acting_name
from audit.models import AuditAction
from audit.services import record_action
from core.database.columns import NOTE_LENGTH
from core.queue import enqueue
from core.texts import inside_sentence
from topups.fulfilment.refunds import ACTOR as SYSTEM
from topups.fulfilment.refunds import settle
from topups.fulfilment.transitions import (
    DECIDE_REVIEW,
    FULFIL,
    PROCESSING,
    RULES,
    Move,
    needs_senior,
)
from topups.fulfilment.versions import latest_event, state_events
from topups.models import (
    Channel,
    FailureReason,
    Fulfilment,
    FulfilmentEvent,
    FulfilmentStatus,
    RejectReason,
    TopUpProduct,
)
from topups.signals import fulfilment_moved

# The moves of people that are in the audit trail: those that end a fulfilment.
RECORDED = {
    Move.COMPLETE: AuditAction.TOPUP_DELIVERED,
    Move.REJECT: AuditAction.TOPUP_REJECTED,
    Move.REJECT_UNREFUNDED: AuditAction.TOPUP_UNREFUNDED,
}
RUN_BY = gettext_noop("run by").replace(" ", "_")  # in an audit entry: who ran the command


class MoveRefused(Exception):
    """The move did not happen. The message tells the operator why."""


class Overtaken(MoveRefused):
    """The order has moved since the operator saw it, or its state does not allow the move."""


class AlreadyDone(Overtaken):
    """The operator made this same move on the version they saw, for example by a double click."""


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
    version: int,
    move: Move,
    operator: Operator,
    reason: RejectReason = RejectReason.OTHER,
    note: str = "",
    message: str = "",
) -> Fulfilment:
    """Carries out one move and records its event, in one transaction; returns the moved fulfilment.
    A move that ends the fulfilment is in the audit trail, too.

    `version` is what the operator saw (topups/fulfilment/versions.py). The row is locked from the
    comparison of versions to the move: of two operators who act on the same version, one succeeds
    and the other gets Overtaken. In the same transaction, a rejection makes the refund due, and
    also returns counted stock unless the reason is `no_stock`. If a move fails an order without a
    refund, and credits had paid back its whole price before, the order becomes refunded. The
    merchant reads the `message` of a rejection on their page, and only staff read the note.

    Raises MoveRefused if the order is unknown or the operator may not make the move; Overtaken if
    the order has another version by now, or its state does not allow the move; AlreadyDone if the
    operator has made this same move on this version. None of these changes anything.
    """
    note = _note(note, move, reason)
    with transaction.atomic():
        before = _find_locked(reference)
        check_move(fulfilment=before, version=version, move=move, operator=operator, note=note)
        _carry_out(
            before,
            move,
            user=operator.user,
            channel=operator.channel,
            reason=reason,
            note=note,
            message=message,
        )
    return _find(reference)


def check_move(
    *, fulfilment: Fulfilment, version: int, move: Move, operator: Operator, note: str = ""
) -> None:
    """Raises MoveRefused, Overtaken or AlreadyDone if the move would be refused now.

    `note` is the note as the history would keep it.
    """
    check_operator(operator)
    events = list(state_events().filter(fulfilment=fulfilment, pk__gte=version).order_by("pk"))
    if not events or events[0].pk != version:
        raise Overtaken(_explain_version(fulfilment))
    if later := events[1:]:
        last_move = (later[0].move, later[0].actor, later[0].channel, later[0].note)
        if last_move == (move, operator.user.get_username(), operator.channel, note):
            state = describe_state(fulfilment)
            raise AlreadyDone(
                _("You have already done this: the order is %(state)s.") % {"state": state}
            )
        raise Overtaken(_explain_moves(fulfilment, later))
    _check_state(fulfilment, move, operator)


def release_claims_of_leavers() -> int:
    """Returns to the queue what people hold who may no longer work on orders, for example because
    they were switched off; returns how many orders. A sweep: nobody needs to remember the claims.
    """
    held = Fulfilment.objects.filter(status=PROCESSING).select_related("claimed_by").order_by("pk")
    return sum(_release(each) for each in held if not _may_work(each.claimed_by))


def escalate_stale_claims() -> int:
    """Sends orders to review whose holder has not finished them in time; returns how many.

    They do not go back to the queue: the holder may have delivered them, and another operator would
    deliver them again.
    """
    before = timezone.now() - timedelta(minutes=settings.DESK_CLAIM_MINUTES)
    stale = Fulfilment.objects.filter(status=PROCESSING, claimed_at__lt=before)
    return sum(_escalate(each) for each in stale.select_related("claimed_by").order_by("pk"))


def _escalate(fulfilment: Fulfilment) -> bool:
    """Sends the order to review if it is still the same claim."""
    with transaction.atomic():
        before = _find_locked(fulfilment.order_reference)
        if before.status != PROCESSING or before.claimed_at != fulfilment.claimed_at:
            return False
        minutes = settings.DESK_CLAIM_MINUTES
        note = f"{before.claimed_by} claimed it more than {minutes} minutes ago. Ask them."
        _carry_out(before, Move.REVIEW, user=None, channel=Channel.SYSTEM, note=note)
    return True


def _release(fulfilment: Fulfilment) -> bool:
    """Releases the order if the same person still holds it."""
    with transaction.atomic():
        before = _find_locked(fulfilment.order_reference)
        if before.status != PROCESSING or before.claimed_by != fulfilment.claimed_by:
            return False
        note = f"{before.claimed_by} may no longer work on orders."
        _carry_out(before, Move.RELEASE, user=None, channel=Channel.SYSTEM, note=note)
    return True


def claim_next(*, operator: Operator) -> Fulfilment | None:
    """Claims the oldest pending order; returns None if no order is pending.

    An order that another operator claims in the meantime is skipped, so operators who ask at the
    same moment get different orders. Raises MoveRefused if the operator may not claim at all.
    """
    for reference, version in _pending_orders():
        try:
            return move_fulfilment(
                reference=reference, version=version, move=Move.CLAIM, operator=operator
            )
        except Overtaken:
            continue
    return None


def last_claimed(*, operator: Operator) -> Fulfilment | None:
    """The order that the operator holds and claimed last; None if they hold none."""
    held = Fulfilment.objects.filter(status=PROCESSING, claimed_by=operator.user)
    return held.order_by("-claimed_at", "-pk").first()


def _pending_orders() -> Iterator[tuple[str, int]]:
    """Yields reference and version of the oldest pending order that was not yielded before."""
    tried: list[str] = []
    while True:
        waiting = Fulfilment.objects.filter(status=FulfilmentStatus.PENDING)
        untried = waiting.exclude(order_reference__in=tried).order_by("created_at", "pk")
        oldest = untried.values_list("order_reference", latest_event("pk", "pk")).first()
        if oldest is None:
            return
        tried.append(oldest[0])
        yield oldest


def may_move(fulfilment: Fulfilment, move: Move, operator: Operator) -> bool:
    """Whether the present state allows the move. The desk and the bot offer only such moves."""
    try:
        check_operator(operator)
        _check_state(fulfilment, move, operator)
    except MoveRefused:
        return False
    return True


def describe_state(fulfilment: Fulfilment) -> str:
    """The state in words, such as `processing, claimed by anna`."""
    state = inside_sentence(fulfilment.get_status_display())
    if fulfilment.claimed_by is None:
        return state
    return _("%(state)s, claimed by %(holder)s") % {
        "state": state,
        "holder": fulfilment.claimed_by,
    }


def _find_locked(reference: str) -> Fulfilment:
    """Locks the order's row, then reads the order.

    A single statement that waits for the lock would return the operator who held the order before
    the wait.
    """
    rows = Fulfilment.objects.select_for_update(no_key=True).filter(order_reference=reference)
    rows.values_list("pk").first()
    return _find(reference)


def _find(reference: str) -> Fulfilment:
    rows = Fulfilment.objects.select_related("claimed_by", "product", "account")
    fulfilment = rows.filter(order_reference=reference).first()
    if fulfilment is None:
        raise MoveRefused(_("There is no top-up order with this reference."))
    return fulfilment


def _may_work(user: User | None) -> bool:
    return bool(user and user.is_active and user.is_staff and user.has_perm(FULFIL))


def check_operator(operator: Operator) -> None:
    """Raises MoveRefused if this person may not work on orders."""
    if not _may_work(operator.user):
        raise MoveRefused(_("You may not work on top-up orders."))


def _check_state(fulfilment: Fulfilment, move: Move, operator: Operator) -> None:
    if fulfilment.status not in RULES[move].sources:
        raise Overtaken(_explain_state(fulfilment))
    if needs_senior(move, FulfilmentStatus(fulfilment.status)) and not operator.is_senior:
        raise MoveRefused(_("This order is in review: only a senior operator may fail it."))
    held_by_other = fulfilment.claimed_by is not None and fulfilment.claimed_by != operator.user
    if held_by_other and not operator.is_senior:
        raise MoveRefused(_explain_state(fulfilment))


def _carry_out(
    before: Fulfilment,
    move: Move,
    *,
    user: User | None,
    channel: Channel,
    reason: RejectReason = RejectReason.OTHER,
    note: str = "",
    message: str = "",
) -> None:
    """Makes a move of a locked order. Without a user, the service itself makes it."""
    actor = user.get_username() if user else SYSTEM
    changes = _changes(move, user, channel, reason, message)
    Fulfilment.objects.filter(pk=before.pk).update(**changes)
    FulfilmentEvent.objects.create(
        fulfilment=before,
        move=move,
        from_status=before.status,
        to_status=RULES[move].target,
        actor=actor,
        channel=channel,
        note=note,
    )
    if user and move in RECORDED:
        _record_end(before, move, user=user, channel=channel, reason=reason, note=note)
    if RULES[move].refund:  # nothing was delivered
        _return_stock(before, reason)
    elif RULES[move].target == FulfilmentStatus.FAILED:
        settle(_find(before.order_reference), actor=actor, channel=channel)
    _act_on_commit(before.pk, refund=RULES[move].refund)


def _record_end(
    before: Fulfilment,
    move: Move,
    *,
    user: User,
    channel: Channel,
    reason: RejectReason,
    note: str,
) -> None:
    """Adds the audit entry of a move that ends a fulfilment. The player and the message for the
    merchant are not in it: the audit trail is kept for ever."""
    changes: dict[str, tuple[str | None, str]] = {"status": (before.status, RULES[move].target)}
    if RULES[move].target == FulfilmentStatus.FAILED:
        changes["reject_reason"] = (None, reason)
        note = note.removeprefix(reason).removeprefix(": ")
    if channel == Channel.COMMAND:  # it names the operator; another person may have run it
        changes[RUN_BY] = (None, acting_name())
    record_action(
        actor=user,
        action=RECORDED[move],
        on=before,
        reference=before.order_reference,
        note=note,
        changes=changes,
    )


def _changes(
    move: Move, user: User | None, channel: Channel, reason: RejectReason, message: str
) -> dict[str, Any]:
    rule = RULES[move]
    now = timezone.now()
    claimed = rule.target == PROCESSING
    changes: dict[str, Any] = {
        "status": rule.target,
        "claimed_by": user if claimed else None,
        "claimed_at": now if claimed else None,
    }
    if rule.target == FulfilmentStatus.COMPLETED:
        changes |= {"closed_at": now}
    if rule.target == FulfilmentStatus.FAILED:
        changes |= {
            "closed_at": now,
            "failure_reason": failure_reason(reason, channel),
            "reject_reason": reason,
            "message": message.strip()[:NOTE_LENGTH],
        }
    if rule.refund:
        changes |= {"refund_due_at": now}
    return changes


def failure_reason(reason: RejectReason, channel: Channel) -> FailureReason:
    """The reason for the merchant: `wrong_id` and `no_stock` only for rejections on the messaging
    platform (contract, "Top-up order")."""
    if channel == Channel.TELEGRAM and reason.value in FailureReason.values:
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


def _explain_state(fulfilment: Fulfilment) -> str:
    """For the operator whose move the present state does not allow."""
    last = fulfilment.events.last()
    by = f" ({_describe_event(last)})" if last else ""
    return _("Nothing was changed: this order is %(describe_state)s%(by)s.") % {
        "describe_state": describe_state(fulfilment),
        "by": by,
    }


def _describe_event(event: FulfilmentEvent) -> str:
    """For example `claim by anna`."""
    name = Move(event.move).label if event.move in Move.values else event.move.replace("_", " ")
    return _("%(move)s by %(person)s") % {"move": inside_sentence(name), "person": event.actor}


def _explain_moves(fulfilment: Fulfilment, later: list[FulfilmentEvent]) -> str:
    """For the operator who decided on an older version: what happened, and what to do."""
    happened = ", ".join(map(_describe_event, later))
    return _(
        "Nothing was changed: the order has moved since you saw it (%(happened)s)."
        " It is now %(describe_state)s. Look at it again, then decide."
    ) % {"happened": happened, "describe_state": describe_state(fulfilment)}


def _explain_version(fulfilment: Fulfilment) -> str:
    """For a request with a version that the order never had."""
    return _(
        "Nothing was changed: the request does not name a version of this order."
        " It is now %(describe_state)s. Look at it again, then decide."
    ) % {"describe_state": describe_state(fulfilment)}
