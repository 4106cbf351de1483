"""Carries out a press of a button, and words the answer.

Safe to run twice with the same press. A button names the version of the order that its message
showed: a repeated press is recognised, and a late one changes nothing. The order's signal updates
the message after every move, from any channel.
"""

from dataclasses import dataclass, field

from django.db.models import Q

from operators.telegram.announcements import note_question, note_stray, request_refresh
from operators.telegram.messages.buttons import (
    BUTTON_MOVES,
    REJECTIONS,
    Action,
    Forged,
    Press,
    Rows,
    confirmation,
    decisions,
    decode,
    in_sentence,
)
from operators.telegram.models import Announcement, PlatformSettings
from operators.telegram.staff_links import NotAnOperator, operator_of, record_refusal
from operators.telegram.updates.bot_cache import note_handled, was_handled
from topups.fulfilment.fulfilments import (
    AlreadyDone,
    MoveRefused,
    Operator,
    Overtaken,
    check_move,
    move_fulfilment,
)
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import last_event, version_of
from topups.models import Fulfilment, FulfilmentEvent, FulfilmentStatus

DONE = {
    Action.CLAIM: "Claimed. The order is assigned to you.",
    Action.DONE: "Marked as delivered.",
    Action.FAILED: "Rejected. The merchant is refunded. To say why, reply to the order's message.",
    Action.UNREFUNDED: "Failed, not refunded. To say why, reply to the order's message.",
    Action.UNSURE: "Sent to review. To say why, reply to the order's message.",
    Action.RELEASE: "Released. Other operators can claim the order.",
}
DONE |= {
    action: f"Rejected: {in_sentence(BUTTON_MOVES[action].reason.label)}. The merchant is refunded."
    for action in REJECTIONS
}
STATES = {
    FulfilmentStatus.PENDING: "waiting, released by {}",
    FulfilmentStatus.PROCESSING: "claimed by {}",
    FulfilmentStatus.PENDING_REVIEW: "in review, sent by {}",
    FulfilmentStatus.COMPLETED: "delivered by {}",
    FulfilmentStatus.FAILED: "marked as failed by {}",
}


@dataclass(frozen=True)
class Query:
    """A press as Telegram delivers it. `chat_id` and `message_id` name the message query.

    Telegram delivers a press more than once with the same `query_id`.
    """

    query_id: str
    telegram_user_id: int
    data: str | None
    chat_id: int | None
    message_id: int | None


@dataclass(frozen=True)
class Verdict:
    """The answer to a press.

    `alert` shows it in a dialog. `name` is the operator's username, empty for strangers. With
    `ask`, the message asks this operator, with the buttons of `rows`.
    """

    text: str
    alert: bool = False
    name: str = ""
    ask: Press | None = None
    rows: Rows = field(default_factory=list)


def carry_out(query: Query) -> Verdict | None:
    """Does what the button says, if the operator may and the order has not changed since.

    None if this press was handled before: it needs no other answer.
    """
    if was_handled(query.query_id):
        return None
    verdict = _decide(query)
    return verdict if note_handled(query.query_id) else None


def _decide(query: Query) -> Verdict:
    try:
        press = decode(query.data)
    except Forged:
        _refuse(query, None, "pressed an invalid button")
        return Verdict("This button no longer works. Find the order with /queue.", True)
    fulfilment = Fulfilment.objects.filter(pk=press.fulfilment_id).first()
    if fulfilment is None:
        return Verdict("This order does not exist.", True)
    try:
        operator = operator_of(query.telegram_user_id)
    except NotAnOperator as refused:
        _refuse(query, fulfilment, f"pressed {press.action.name.lower()}")
        return Verdict(str(refused), True)
    _note_where(query, fulfilment)
    return _move(fulfilment, press, operator)


def follow_up_question(press: Press, name: str, *, is_visible: bool) -> None:
    """Call it after the edit that shows a question. `is_visible` is whether Telegram accepted it.

    The message gets its own buttons back after a while. It gets them back at once if
    Telegram did not accept the edit, or if the order has moved since the press.
    """
    note_question(fulfilment_id=press.fulfilment_id, name=name)  # an edit may have cleared it
    fulfilment = Fulfilment.objects.get(pk=press.fulfilment_id)
    if not is_visible or version_of(fulfilment) != press.version:
        request_refresh(fulfilment_id=press.fulfilment_id, by=name)


def _move(fulfilment: Fulfilment, press: Press, operator: Operator) -> Verdict:
    name = operator.user.get_username()
    if press.action == Action.BACK:
        return _go_back(fulfilment, press, name)
    try:
        if press.action == Action.DECIDE or (BUTTON_MOVES[press.action].asks and not press.sure):
            return _question(fulfilment, press, operator)
        button_move = BUTTON_MOVES[press.action]
        move_fulfilment(
            reference=fulfilment.order_reference,
            version=press.version,
            move=button_move.move,
            operator=operator,
            reason=button_move.reason,
        )
    except AlreadyDone:
        present = _refresh(fulfilment, name)
        return Verdict(f"You have already done this. The order is {present}.", name=name)
    except Overtaken:
        present = _refresh(fulfilment, name)
        return Verdict(f"Nothing was changed: the order is {present}.", True, name)
    except MoveRefused as refused:
        return Verdict(str(refused), True, name)
    return Verdict(DONE[press.action], name=name)


def _question(fulfilment: Fulfilment, press: Press, operator: Operator) -> Verdict:
    """Asks what to do or for confirmation, unless the message asks a colleague already.

    Raises MoveRefused if the operator may not do it, or if the order has moved.
    """
    name = operator.user.get_username()
    choosing = press.action == Action.DECIDE
    check_move(
        fulfilment=fulfilment,
        version=press.version,
        move=Move.REJECT if choosing else BUTTON_MOVES[press.action].move,
        operator=operator,
    )
    colleague = note_question(fulfilment_id=fulfilment.pk, name=name)
    if colleague:
        return Verdict(
            f"Nothing was changed: the message asks {colleague} to confirm a step of this order."
            " Wait until they decide, or press again in two minutes.",
            True,
            name,
        )
    if choosing:
        text = "Choose how this order ends. You have two minutes."
        return Verdict(text, name=name, ask=press, rows=decisions(press))
    question, rows = confirmation(press, fulfilment, name)
    return Verdict(f"{question} Please confirm.", name=name, ask=press, rows=rows)


def _go_back(fulfilment: Fulfilment, press: Press, name: str) -> Verdict:
    """Withdraws the operator's own question. A late press withdraws none."""
    current = version_of(fulfilment) == press.version
    request_refresh(fulfilment_id=fulfilment.pk, by=name if current else "")
    return Verdict("Nothing was changed.", name=name)


def _refresh(fulfilment: Fulfilment, name: str) -> str:
    """Refreshes the message of an order that moved since it was read; returns the present state."""
    request_refresh(fulfilment_id=fulfilment.pk)
    fulfilment.refresh_from_db()
    return _present(fulfilment, last_event(fulfilment), name)


def _present(fulfilment: Fulfilment, event: FulfilmentEvent, name: str) -> str:
    if event.from_status is None:
        return "waiting"
    who = "you" if event.actor == name else event.actor
    return STATES[FulfilmentStatus(fulfilment.status)].format(who)


def _note_where(query: Query, fulfilment: Fulfilment) -> None:
    """Reports an unknown message to the announcement.

    A button names its order, but it need not be on that order's message. A message that is known,
    of any order, is left as it is.
    """
    chat_id, message_id = query.chat_id, query.message_id
    if chat_id is None or message_id is None:
        return
    named = Q(message_id=message_id) | Q(former_message_id=message_id)
    if not Announcement.objects.filter(named, chat_id=chat_id).exists():
        note_stray(fulfilment_id=fulfilment.pk, chat_id=chat_id, message_id=message_id)


def _refuse(query: Query, fulfilment: Fulfilment | None, note: str) -> None:
    record_refusal(
        telegram_user_id=query.telegram_user_id,
        on=fulfilment or PlatformSettings(),
        reference=fulfilment.order_reference if fulfilment else "",
        note=note,
    )
