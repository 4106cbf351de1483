"""An order's message in Telegram: text in Telegram's HTML, and the buttons its state allows.

The text shows nothing about the merchant: neither the name nor any amount. The buttons are for
every operator; what only seniors may do is behind one button.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from html import escape

from operators.frame.desk_summary import age_in_words
from operators.telegram.messages.buttons import Rows, in_sentence, state_buttons
from topups.fulfilment.transitions import OPEN
from topups.fulfilment.versions import last_event, version_of
from topups.models import FailureReason, Fulfilment, FulfilmentEvent, FulfilmentStatus

MAX_LENGTH = 4096  # UTF-16 units; the Bot API's limit for a message's text
ROOM = 900  # UTF-16 units reserved for the lines below the fields
LONGEST_VALUE = 255
# A younger order is fresh: its message does not show an age. An older one is edited at these ages,
# then every hour, and after two days once a day.
AGES = [timedelta(minutes=minutes) for minutes in (10, 20, 30, 60)]
FRESH = AGES[0]


@dataclass(frozen=True)
class Message:
    """A message as the Bot API takes it (parse mode HTML). `version` is the last event of the
    order that it shows."""

    text: str
    rows: Rows
    version: int


def render(
    fulfilment: Fulfilment, *, now: datetime, zone: tzinfo, doubtful: bool = False, repeats: int = 0
) -> Message:
    """The message of the order as it is now, never longer than Telegram allows.

    `doubtful` adds that the order may be in the chat twice. `repeats` above 0 adds that it is
    announced again. Reads the order's events from the database.
    """
    last = last_event(fulfilment)
    head = [
        f"<b>{_state(fulfilment, last, zone)}</b>",
        f"<b>{_text(fulfilment.product.name)}</b>",
        *([_text(fulfilment.product.category.name)] if fulfilment.product.category else []),
        f"Player ID: <code>{_text(fulfilment.player_id)}</code>",
    ]
    foot = [
        "",
        f"Order <code>{_text(fulfilment.order_reference)}</code>",
        _time_of_order(fulfilment, now, zone),
    ]
    if fulfilment.status == FulfilmentStatus.PENDING and repeats:
        foot.append("Announced again: nobody has claimed this order yet.")
    if fulfilment.status in OPEN and doubtful:
        foot.append("This order may be in the chat twice. Deliver it only once.")
    room = MAX_LENGTH - ROOM - _units(head)
    lines = [*head, *_fit(_fields(fulfilment), room), *foot]
    return Message("\n".join(lines), state_buttons(fulfilment, last.pk), last.pk)


def retired(fulfilment: Fulfilment) -> Message:
    """The text of a message once another one shows its order."""
    return Message(
        f"Order <code>{_text(fulfilment.order_reference)}</code>: another message shows it now.",
        [],
        version_of(fulfilment),
    )


def next_age_at(fulfilment: Fulfilment, now: datetime) -> datetime | None:
    """When the age in the order's message must be edited next; None once the order has ended."""
    if fulfilment.status not in OPEN:
        return None
    begun = fulfilment.created_at
    age = now - begun
    for step in AGES:
        if age < step:
            return begun + step
    every = timedelta(hours=1) if age < timedelta(days=2) else timedelta(days=1)
    return begun + (age // every + 1) * every


def _time_of_order(fulfilment: Fulfilment, now: datetime, zone: tzinfo) -> str:
    """The time of the order. If it is not fresh, also its age, and when that age was right."""
    at = fulfilment.created_at.astimezone(zone)
    ordered = f"Ordered {at:%d %b %H:%M} ({zone})"
    age = now - fulfilment.created_at
    if fulfilment.status not in OPEN or age < FRESH:
        return ordered
    return f"{ordered}, {age_in_words(age)} old at {now.astimezone(zone):%H:%M}"


def _state(fulfilment: Fulfilment, last: FulfilmentEvent, zone: tzinfo) -> str:
    by = f"by {_text(last.actor)}, {last.created_at.astimezone(zone):%d %b %H:%M}"
    match FulfilmentStatus(fulfilment.status):
        case FulfilmentStatus.PENDING:
            return "🟡 Waiting" if last.from_status is None else f"🟡 Waiting: released {by}"
        case FulfilmentStatus.PROCESSING:
            return f"🔵 Claimed {by}"
        case FulfilmentStatus.PENDING_REVIEW:
            return f"🟠 In review: sent {by}"
        case FulfilmentStatus.COMPLETED:
            return f"✅ Delivered {by}"
        case FulfilmentStatus.FAILED:
            word = "Rejected" if fulfilment.refund_due_at else "Failed"
            return f"❌ {word} ({_reason(fulfilment)}{_refund(fulfilment)}) {by}"


def _reason(fulfilment: Fulfilment) -> str:
    """The reason that the merchant reads. The timeline has the reasons of other channels."""
    reason = FailureReason(str(fulfilment.failure_reason))
    return "" if reason == FailureReason.FULFILMENT_FAILED else f"{in_sentence(reason.label)}, "


def _refund(fulfilment: Fulfilment) -> str:
    if fulfilment.refunded:
        return "refund credited"
    return "refund due" if fulfilment.refund_due_at else "not refunded"


def _fields(fulfilment: Fulfilment) -> Iterator[str]:
    for each in fulfilment.fields:
        value = f"<code>{_text(each['value'])}</code>"
        label = each.get("value_label")
        text = f"{_text(label)} ({value})" if label and label != each["value"] else value
        yield f"{_text(each['label'])}: {text}"


def _fit(lines: Iterable[str], room: int) -> Iterator[str]:
    """The lines that fit. The desk shows all of them."""
    rest = list(lines)
    while rest and _units(rest[:1]) <= room:
        line = rest.pop(0)
        room -= _units([line])
        yield line
    if rest:
        yield f"<i>… and {len(rest)} more. See the desk.</i>"


def _units(lines: list[str]) -> int:
    """The length in UTF-16 units. It includes tags and escapes, so Telegram never counts more."""
    return sum(len(line.encode("utf-16-le")) // 2 + 1 for line in lines)


def _text(value: object) -> str:
    """The value as escaped text on one line, cut to a bounded length."""
    line = re.sub(r"\s+", " ", str(value)).encode("utf-8", "replace").decode()
    return escape(line[:LONGEST_VALUE], quote=False)
