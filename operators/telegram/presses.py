"""Carries out a press of a button, and words the answer.

Safe to run twice with the same press. A button names the version of the order that its message
showed: a repeated press is recognised, and a late one changes nothing. The order's signal updates
the message after every move, from any channel.
"""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from operators.models import Announcement, PlatformSettings
from operators.telegram.announcement_requests import note_question, note_stray, request_refresh
from operators.telegram.buttons import BUTTON_MOVES, Action, Forged, Press, decode
from operators.telegram.message import Rows, last_event, question
from operators.telegram.staff_links import NotAnOperator, operator_of, record_refusal
from topups.fulfilments import MoveRefused, Operator, may_move, move_fulfilment
from topups.models import Channel, Fulfilment, FulfilmentEvent, FulfilmentStatus

DONE = {
    Action.CLAIM: "Claimed. The order is assigned to you.",
    Action.DONE: "Marked as delivered.",
    Action.WRONG_ID: "Rejected: wrong player ID. The merchant is refunded.",
    Action.NO_STOCK: "Rejected: no stock. The merchant is refunded.",
    Action.FAILED: "Rejected. The merchant is refunded.",
    Action.UNREFUNDED: "Failed. The merchant is not refunded.",
    Action.UNSURE: "Sent to review.",
    Action.RELEASE: "Released. Other operators can claim the order.",
}
STATES = {
    FulfilmentStatus.PENDING: "waiting, released by {}",
    FulfilmentStatus.PROCESSING: "claimed by {}",
    FulfilmentStatus.PENDING_REVIEW: "in review, sent by {}",
    FulfilmentStatus.COMPLETED: "delivered by {}",
    FulfilmentStatus.FAILED: "rejected by {}",
}


@dataclass(frozen=True)
class Pressed:
    """A press as Telegram delivers it. `chat_id` and `message_id` name the message pressed."""

    telegram_user_id: int
    data: str | None
    chat_id: int | None
    message_id: int | None


@dataclass(frozen=True)
class Verdict:
    """The answer to a press.

    `alert` shows it in a dialog. `name` is the person's username, empty for strangers. With `ask`,
    the message asks for confirmation with the buttons of `rows`.
    """

    text: str
    alert: bool = False
    name: str = ""
    ask: Press | None = None

    @property
    def rows(self) -> Rows:
        return question(self.ask) if self.ask else []


def carry_out(pressed: Pressed) -> Verdict:
    """Does what the button says, if the person may and the order has not changed since."""
    try:
        press = decode(pressed.data)
    except Forged:
        _refuse(pressed, None, "pressed an invalid button")
        return Verdict("This button no longer works. Find the order with /queue.", True)
    fulfilment = Fulfilment.objects.filter(pk=press.fulfilment_id).first()
    if fulfilment is None:
        return Verdict("This order does not exist.", True)
    try:
        operator = operator_of(pressed.telegram_user_id)
    except NotAnOperator as refused:
        _refuse(pressed, fulfilment, f"pressed {press.action.name.lower()}")
        return Verdict(str(refused), True)
    _note_where(pressed, fulfilment)
    return _move(fulfilment, press, operator)


def ask(press: Press) -> None:
    """Records that the message asks for confirmation; called after it was edited.

    If the order has moved since then, the message is refreshed.
    """
    note_question(fulfilment_id=press.fulfilment_id)
    fulfilment = Fulfilment.objects.get(pk=press.fulfilment_id)
    if last_event(fulfilment).pk != press.version:
        request_refresh(fulfilment_id=press.fulfilment_id)


def _move(fulfilment: Fulfilment, press: Press, operator: Operator) -> Verdict:
    name = operator.user.get_username()
    if press.action == Action.BACK:
        request_refresh(fulfilment_id=fulfilment.pk)
        return Verdict("Nothing was changed.", name=name)
    if last_event(fulfilment).pk != press.version:
        return _too_late(fulfilment, press, operator)
    button_move = BUTTON_MOVES[press.action]
    if button_move.asks and not press.sure:
        if not may_move(fulfilment, button_move.move, operator):
            return Verdict(_why_not(fulfilment), True, name)
        return Verdict(f"{button_move.label}? Please confirm.", name=name, ask=press)
    try:
        moved = _move_as_shown(fulfilment, press, operator)
    except MoveRefused as refused:
        return Verdict(str(refused), True, name)
    if not moved:
        fulfilment.refresh_from_db()
        return _too_late(fulfilment, press, operator)
    return Verdict(DONE[press.action], name=name)


def _move_as_shown(fulfilment: Fulfilment, press: Press, operator: Operator) -> bool:
    """Makes the move; False if the order has another version by now.

    The row stays locked from the check to the move. Otherwise the order could be released in
    between, and be delivered without a claim.
    """
    button_move = BUTTON_MOVES[press.action]
    with transaction.atomic():
        Fulfilment.objects.select_for_update(no_key=True).get(pk=fulfilment.pk)
        if last_event(fulfilment).pk != press.version:
            return False
        move_fulfilment(
            reference=fulfilment.order_reference,
            move=button_move.move,
            operator=operator,
            reason=button_move.reason,
        )
    return True


def _too_late(fulfilment: Fulfilment, press: Press, operator: Operator) -> Verdict:
    """The answer for an order that moved since the message was read; refreshes the message."""
    request_refresh(fulfilment_id=fulfilment.pk)
    name = operator.user.get_username()
    after = fulfilment.events.filter(pk__gt=press.version).first()
    present = _present(fulfilment, last_event(fulfilment), name)
    if after is not None and _is_of(after, press, operator):
        return Verdict(f"You have already done this. The order is {present}.", name=name)
    return Verdict(f"Nothing was changed: the order is {present}.", True, name)


def _is_of(event: FulfilmentEvent, press: Press, operator: Operator) -> bool:
    """Whether this same press caused the event, and was delivered twice."""
    button_move = BUTTON_MOVES[press.action]
    asked_only = button_move.asks and not press.sure
    return (
        not asked_only
        and event.move == button_move.move
        and event.channel == Channel.TELEGRAM
        and event.actor == operator.user.get_username()
    )


def _present(fulfilment: Fulfilment, event: FulfilmentEvent, name: str) -> str:
    if event.from_status is None:
        return "waiting"
    who = "you" if event.actor == name else event.actor
    return STATES[FulfilmentStatus(fulfilment.status)].format(who)


def _why_not(fulfilment: Fulfilment) -> str:
    if fulfilment.claimed_by is not None:
        return f"Nothing was changed: the order is claimed by {fulfilment.claimed_by}."
    return "Nothing was changed: only a senior operator may do this now."


def _note_where(pressed: Pressed, fulfilment: Fulfilment) -> None:
    """Reports an unknown message to the announcement.

    A button names its order, but it need not be on that order's message. A message that is known,
    of any order, is left as it is.
    """
    chat_id, message_id = pressed.chat_id, pressed.message_id
    if chat_id is None or message_id is None:
        return
    named = Q(message_id=message_id) | Q(former_message_id=message_id)
    if not Announcement.objects.filter(named, chat_id=chat_id).exists():
        note_stray(fulfilment_id=fulfilment.pk, chat_id=chat_id, message_id=message_id)


def _refuse(pressed: Pressed, fulfilment: Fulfilment | None, note: str) -> None:
    record_refusal(
        telegram_user_id=pressed.telegram_user_id,
        on=fulfilment or PlatformSettings(),
        reference=fulfilment.order_reference if fulfilment else "",
        note=note,
    )
