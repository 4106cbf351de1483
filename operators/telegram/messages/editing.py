"""Editing an order's message until it shows the order as it is now.

The row keeps the last event that its message shows. One process at a time edits a message, and
checks for newer events after the edit. A process that finds the row busy can therefore leave: the
process that holds it makes the last edit.
"""

from contextlib import suppress
from typing import Any

from django.db.models import Case, F, Q, QuerySet, Value, When
from django.utils import timezone

from operators.telegram import bot_api, chats
from operators.telegram.announcements import LEASE, free, give_up, load_fulfilment
from operators.telegram.chats import Platform
from operators.telegram.messages.message import Message, next_age_at, render, retired
from operators.telegram.models import Announcement, AnnouncementState
from topups.fulfilment.transitions import OPEN
from topups.fulfilment.versions import latest_event
from topups.models import Fulfilment

# Edits of one message in one run; the next sweep continues.
ROUNDS = 5

LATEST = latest_event("fulfilment", "pk")  # the order's version
ANNOUNCED, ENDED = AnnouncementState.ANNOUNCED, AnnouncementState.ENDED
# A row with a refund that is due stays `announced`: its message is edited again after the refund.
REFUND_DUE = Q(fulfilment__refund_due_at__isnull=False, fulfilment__refunded_at=None)


def refresh_message(*, fulfilment_id: int, platform: Platform) -> bool:
    """Edits the order's message until it is up to date; returns whether it edited anything."""
    edited = False
    for _ in range(ROUNDS):
        row = _take(fulfilment_id)
        if row is None or not _edit(row, platform):
            break
        edited = True
    return edited


def resume_edits(fulfilment_id: int) -> None:
    """Allows one more edit of a message that was left as it is.

    - That of a given-up order, after each new event: the cause may be over, or may have concerned
      posting only.
    - That of an order that failed without a refund, and was credited in full later.
    """
    given_up = Announcement.objects.filter(
        fulfilment_id=fulfilment_id, state=AnnouncementState.GIVEN_UP, message_id__isnull=False
    )
    stale = given_up.annotate(latest=LATEST).exclude(message_version=F("latest"))
    stale.update(state=ANNOUNCED)
    Announcement.objects.filter(
        fulfilment_id=fulfilment_id,
        state=ENDED,
        fulfilment__refund_due_at=None,
        fulfilment__refunded_at__isnull=False,
    ).update(state=ANNOUNCED)


def stale_messages() -> QuerySet[Announcement]:
    """Rows that no process holds and whose message may not show the order as it is now."""
    return _editable().filter(_is_stale()).order_by("pk")


def aged_messages() -> QuerySet[Announcement]:
    """Rows that no process holds and whose message shows an old age, the longest due first."""
    return _editable().filter(_has_aged()).order_by("age_at")


def _editable() -> QuerySet[Announcement]:
    return Announcement.objects.filter(free(), state=ANNOUNCED).annotate(latest=LATEST)


def _is_stale() -> Q:
    return (
        Q(message_version=None)
        | ~Q(message_version=F("latest"))
        | Q(restore_at__lte=timezone.now())
        | Q(former_message_id__isnull=False)
        | (~Q(fulfilment__status__in=OPEN) & ~REFUND_DUE)
    )


def _has_aged() -> Q:
    """Matches messages that show an old age, except those with a question: they keep it."""
    return Q(age_at__lte=timezone.now(), restore_at=None)


def _take(fulfilment_id: int) -> Announcement | None:
    """The row, held until its lease ends; None if there is nothing to edit now."""
    due = _editable().filter(_is_stale() | _has_aged())
    row = due.filter(fulfilment_id=fulfilment_id).first()
    if row is None or row.chat_id is None or chats.is_paused(row.chat_id):
        return None
    lease = timezone.now() + LEASE
    taken = Announcement.objects.filter(free(), pk=row.pk, state=ANNOUNCED).update(busy_until=lease)
    return Announcement.objects.filter(pk=row.pk, busy_until=lease).first() if taken else None


def _edit(row: Announcement, platform: Platform) -> bool:
    fulfilment = load_fulfilment(row.fulfilment_id)  # read after the row was taken
    now = timezone.now()
    message = render(
        fulfilment,
        now=now,
        zone=platform.zone,
        doubtful=row.lost_answers > 0,
        repeats=row.repeats,
    )
    assert row.chat_id is not None and row.message_id is not None  # noqa: S101, PT018  a constraint
    try:
        if row.former_message_id is not None:
            with suppress(bot_api.MessageGone, bot_api.Refused):
                bot_api.edit(
                    chat_id=row.chat_id,
                    message_id=row.former_message_id,
                    message=retired(fulfilment),
                )
        if _keeps_question(row, fulfilment, message):
            _own_row(row).update(busy_until=None, former_message_id=None, last_error="")
            return True
        bot_api.edit(chat_id=row.chat_id, message_id=row.message_id, message=message)
    except bot_api.Trouble as trouble:
        _handle_failed_edit(row, fulfilment, trouble)
        return False
    chats.note_success(row.chat_id)
    untouched = Q(restore_at=row.restore_at) if row.restore_at else Q(restore_at=None)
    state = ENDED if _is_settled(fulfilment) else ANNOUNCED
    held = _own_row(row).update(
        busy_until=None,
        message_version=message.version,
        age_at=next_age_at(fulfilment, now),
        former_message_id=None,
        # If the buttons were changed during the edit, another round follows.
        restore_at=Case(When(untouched, then=Value(None)), default=F("restore_at")),
        state=Case(When(untouched, then=Value(state)), default=Value(ANNOUNCED)),
        last_error="",
    )
    if not held:
        _edit_again(row)
    return True


def _keeps_question(row: Announcement, fulfilment: Fulfilment, message: Message) -> bool:
    """Whether only the former message needed an edit: the present one shows the order as it is, and
    asks an operator to confirm."""
    return (
        row.former_message_id is not None
        and row.restore_at is not None
        and row.restore_at > timezone.now()
        and row.message_version == message.version
        and fulfilment.status in OPEN
    )


def _is_settled(fulfilment: Fulfilment) -> bool:
    """Whether nothing more will happen to the order: it has ended, and no refund is due."""
    refund_due = fulfilment.refund_due_at is not None and not fulfilment.refunded
    return fulfilment.status not in OPEN and not refund_due


def _edit_again(row: Announcement) -> None:
    """Asks for another edit: one made after its lease may have overwritten a newer one."""
    same_message = Announcement.objects.filter(
        pk=row.pk, message_id=row.message_id, state__in=[ANNOUNCED, ENDED]
    )
    same_message.update(state=ANNOUNCED, restore_at=timezone.now())


def _handle_failed_edit(
    row: Announcement, fulfilment: Fulfilment, trouble: bot_api.Trouble
) -> None:
    """Updates the row. A lost answer needs no special care: the same edit can be made twice."""
    assert row.chat_id is not None  # noqa: S101  a constraint
    error = str(trouble)[:200]
    match trouble:
        case bot_api.MessageGone():
            _drop_message(row, fulfilment, error)
        case bot_api.ChatMoved():
            chats.follow_chat(row.chat_id, trouble.chat_id)
            _drop_message(row, fulfilment, error)
        case bot_api.Refused():
            give_up(row, error)
        case _:
            wait = trouble.wait if isinstance(trouble, bot_api.NotNow) else None
            chats.pause(row.chat_id, error=error, wait=wait)
            if not _own_row(row).update(busy_until=None, last_error=error):
                _edit_again(row)


def _drop_message(row: Announcement, fulfilment: Fulfilment, error: str) -> None:
    """Forgets a message that is gone. An open order is announced again."""
    if fulfilment.status in OPEN:
        changes: dict[str, Any] = {
            "state": AnnouncementState.WAITING,
            "message_id": None,
            "message_version": None,
        }
    else:
        changes = {"state": ENDED}
    _own_row(row).update(
        busy_until=None, former_message_id=None, restore_at=None, last_error=error, **changes
    )


def _own_row(row: Announcement) -> QuerySet[Announcement]:
    """The row, unless another process has taken it over."""
    return Announcement.objects.filter(pk=row.pk, busy_until=row.busy_until)
