"""Replies to an order's message: each becomes a note in the order's timeline.

After a rejection or a doubt, the operator replies to the message and says why. The merchant never
sees it.
"""

from dataclasses import dataclass
from html import escape

from django.db import transaction
from django.db.models import Q
from structlog.contextvars import bound_contextvars

from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from core.database.columns import NOTE_LENGTH
from operators.models import Announcement
from operators.telegram.handled_presses import note_handled, was_handled
from operators.telegram.staff_links import NotAnOperator, operator_of, record_refusal
from topups.fulfilments import Operator


@dataclass(frozen=True)
class Replied:
    """A reply as Telegram delivers it. `to` is the message that it answers."""

    telegram_user_id: int
    chat_id: int
    message_id: int
    to: int
    text: str


def keep_note(replied: Replied) -> str | None:
    """Keeps the text as a note of the order, and returns the answer in HTML.

    None for a reply to a message of no order, and for a reply that was handled before: the bot
    answers neither.
    """
    named = Q(message_id=replied.to) | Q(former_message_id=replied.to)
    row = Announcement.objects.filter(named, chat_id=replied.chat_id).first()
    handled = f"reply-{replied.chat_id}-{replied.message_id}"
    if row is None or was_handled(handled):
        return None
    fulfilment = row.fulfilment
    try:
        operator = operator_of(replied.telegram_user_id)
    except NotAnOperator as refused:
        record_refusal(
            telegram_user_id=replied.telegram_user_id,
            on=fulfilment,
            reference=fulfilment.order_reference,
            note="replied to an order's message",
        )
        return escape(str(refused))
    note = replied.text.replace("\x00", "").strip()
    if len(note) > NOTE_LENGTH:
        return f"The note was not kept: it has more than {NOTE_LENGTH} characters."
    _keep_once(replied, row, operator, note)
    if not note_handled(handled):
        return None
    return f"Note kept for {fulfilment.order_reference}. The merchant does not see it."


def _keep_once(replied: Replied, row: Announcement, operator: Operator, note: str) -> None:
    """Adds the note, unless a process that crashed before its answer has added it already.

    The note carries the name of its reply as its request id. Under the announcement's lock, only
    one process at a time looks for it.
    """
    name = f"telegram-{replied.chat_id}-{replied.message_id}"
    fulfilment = row.fulfilment
    with transaction.atomic(), bound_contextvars(request_id=name):
        Announcement.objects.select_for_update(no_key=True).get(pk=row.pk)
        if not AuditEntry.objects.filter(action=AuditAction.NOTE_ADDED, request_id=name).exists():
            record_action(
                actor=operator.user,
                action=AuditAction.NOTE_ADDED,
                on=fulfilment,
                reference=fulfilment.order_reference,
                note=note,
            )
