"""What becomes of a press of a button: decided here, in the database, and told in one sentence.

Safe to run twice with the same press. A button names the version of the order that its message
showed, so a press that was carried out before is told so, and any other that comes late changes
nothing. The message itself follows from the order's signal, whoever moved it.
"""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from operators.models import Announcement, PlatformSettings
from operators.telegram.announcement_requests import note_question, note_stray, request_refresh
from operators.telegram.buttons import STEPS, Act, Forged, Press, decode
from operators.telegram.message import Rows, last_event, question
from operators.telegram.staff_links import NotAnOperator, operator_of, record_refusal
from topups.fulfilments import MoveRefused, Operator, may_move, move_fulfilment
from topups.models import Channel, Fulfilment, FulfilmentEvent, FulfilmentStatus

DONE = {
    Act.CLAIM: "It is yours.",
    Act.DONE: "Delivered. Thank you.",
    Act.WRONG_ID: "Rejected: wrong player ID. The merchant is refunded.",
    Act.NO_STOCK: "Rejected: no stock. The merchant is refunded.",
    Act.FAILED: "Rejected. The merchant is refunded.",
    Act.UNREFUNDED: "Failed, without a refund.",
    Act.UNSURE: "Sent to review.",
    Act.RELEASE: "Released. Somebody else can claim it.",
}
STATES = {
    FulfilmentStatus.PENDING: "waiting, released by {}",
    FulfilmentStatus.PROCESSING: "claimed by {}",
    FulfilmentStatus.PENDING_REVIEW: "in review, sent there by {}",
    FulfilmentStatus.COMPLETED: "delivered by {}",
    FulfilmentStatus.FAILED: "rejected by {}",
}


@dataclass(frozen=True)
class Pressed:
    """A press as Telegram tells of it; `chat_id` and `message_id` are of the message it was on."""

    telegram_user_id: int
    data: str | None
    chat_id: int | None
    message_id: int | None


@dataclass(frozen=True)
class Verdict:
    """What to tell whoever pressed. `alert`: they must not overlook it. `name` is theirs, empty
    for strangers. `ask` has the message ask once more, with the buttons of `rows`."""

    text: str
    alert: bool = False
    name: str = ""
    ask: Press | None = None

    @property
    def rows(self) -> Rows:
        return question(self.ask) if self.ask else []


def carry_out(pressed: Pressed) -> Verdict:
    """Does what the button says, if whoever pressed it may and the order is as they saw it."""
    try:
        press = decode(pressed.data)
    except Forged:
        _refuse(pressed, None, "pressed a button that is not ours")
        return Verdict("This button does not work any more. Use /queue to find the order.", True)
    fulfilment = Fulfilment.objects.filter(pk=press.fulfilment_id).first()
    if fulfilment is None:
        return Verdict("There is no such order.", True)
    try:
        operator = operator_of(pressed.telegram_user_id)
    except NotAnOperator as refused:
        _refuse(pressed, fulfilment, f"pressed {press.act.name.lower()}")
        return Verdict(str(refused), True)
    _note_where(pressed, fulfilment)
    return _move(fulfilment, press, operator)


def ask(press: Press) -> None:
    """Keeps that a message asks. Called once it does: what has changed in between is put right."""
    note_question(fulfilment_id=press.fulfilment_id)
    fulfilment = Fulfilment.objects.get(pk=press.fulfilment_id)
    if last_event(fulfilment).pk != press.version:
        request_refresh(fulfilment_id=press.fulfilment_id)


def _move(fulfilment: Fulfilment, press: Press, operator: Operator) -> Verdict:
    name = operator.user.get_username()
    if press.act == Act.BACK:
        request_refresh(fulfilment_id=fulfilment.pk)
        return Verdict("Nothing was changed.", name=name)
    if last_event(fulfilment).pk != press.version:
        return _too_late(fulfilment, press, operator)
    step = STEPS[press.act]
    if step.asks and not press.sure:
        if not may_move(fulfilment, step.move, operator):
            return Verdict(_why_not(fulfilment), True, name)
        return Verdict(f"{step.label}? Please confirm.", name=name, ask=press)
    try:
        moved = _move_as_shown(fulfilment, press, operator)
    except MoveRefused as refused:
        return Verdict(str(refused), True, name)
    if not moved:
        fulfilment.refresh_from_db()
        return _too_late(fulfilment, press, operator)
    return Verdict(DONE[press.act], name=name)


def _move_as_shown(fulfilment: Fulfilment, press: Press, operator: Operator) -> bool:
    """Makes the move; False where the order has another version by now. The row is locked, so that
    it cannot be released between the look and the move, and be delivered by nobody's claim."""
    step = STEPS[press.act]
    with transaction.atomic():
        Fulfilment.objects.select_for_update(no_key=True).get(pk=fulfilment.pk)
        if last_event(fulfilment).pk != press.version:
            return False
        move_fulfilment(
            reference=fulfilment.order_reference,
            move=step.move,
            operator=operator,
            reason=step.reason,
        )
    return True


def _too_late(fulfilment: Fulfilment, press: Press, operator: Operator) -> Verdict:
    """The order has moved since the message was read: the truth, and a message that shows it."""
    request_refresh(fulfilment_id=fulfilment.pk)
    name = operator.user.get_username()
    after = fulfilment.events.filter(pk__gt=press.version).first()
    present = _present(fulfilment, last_event(fulfilment), name)
    if after is not None and _is_of(after, press, operator):
        return Verdict(f"Done before. The order is {present}.", name=name)
    return Verdict(f"Nothing was changed: the order is {present}.", True, name)


def _is_of(event: FulfilmentEvent, press: Press, operator: Operator) -> bool:
    """Whether the event came of this press, which was delivered twice."""
    step = STEPS[press.act]
    asked_only = step.asks and not press.sure
    return (
        not asked_only
        and event.move == step.move
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
    return "Nothing was changed: only a senior may do this now."


def _note_where(pressed: Pressed, fulfilment: Fulfilment) -> None:
    """Tells the announcement of a message that it lost sight of. A button names its order, and need
    not come from that order's message: one that is known, of whichever order, stays what it is."""
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
