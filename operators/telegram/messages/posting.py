"""Posting orders in Telegram: claim the row, post, record the result.

The Bot API has no call that lists what was posted, so the row records what is known. A process
claims the row with a conditional UPDATE and commits it before it sends: of two processes, one
sends. If the answer is lost (a timeout, a 5xx, a killed worker), the order is posted once more, and
the second message says that there may be two. Both messages work, because buttons act on the order.
The first press on the message that the row does not name reveals its id.
"""

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from operators.telegram import bot_api, chats
from operators.telegram.announcements import LEASE, free, give_up, load_fulfilment
from operators.telegram.chats import Platform, Target
from operators.telegram.messages.editing import refresh_message
from operators.telegram.messages.message import Message, next_age_at, render, retired
from operators.telegram.models import Announcement, AnnouncementState
from topups.fulfilment.transitions import OPEN
from topups.models import Fulfilment, FulfilmentStatus

logger = structlog.get_logger(__name__)

# After this many lost answers nothing more is posted: the chat may hold as many messages.
MAX_LOST_ANSWERS = 3

WAITING, SENDING = AnnouncementState.WAITING, AnnouncementState.SENDING
ANNOUNCED = AnnouncementState.ANNOUNCED


class Outcome(Enum):
    """The result of an attempt to post."""

    SENT = auto()
    SKIPPED = auto()
    CHAT_CLOSED = auto()  # nothing more can be posted there for now


@dataclass(frozen=True)
class Due:
    """An order to post, and the chat to post it in.

    `still` is what the row must match when it is claimed. A second process that has the same order
    on its list therefore does not post it again.
    """

    fulfilment_id: int
    target: Target
    still: Q


@dataclass(frozen=True)
class PostingClaim:
    """The right to post one order once; `row` holds the values from before the claim."""

    row: Announcement
    fulfilment: Fulfilment
    target: Target
    attempt: int
    message: Message


def post(due: Due, platform: Platform) -> Outcome:
    """Claims the row, posts, and records the result. If the process dies in between, the row stays
    `sending` until its lease ends; the answer then counts as lost."""
    claim = _claim(due, platform)
    if not isinstance(claim, PostingClaim):
        return claim
    target, row, message = due.target, claim.row, claim.message
    try:
        message_id = bot_api.send(target=target, message=message, reply_to=row.message_id)
    except bot_api.Trouble as trouble:
        _handle_failed_post(claim, trouble)
        return Outcome.CHAT_CLOSED
    chats.note_success(target.chat_id)
    if not _keep_message(claim, message_id, message.version):
        # The lease ended first, and another process took over: the order's message is theirs.
        with suppress(bot_api.Trouble):
            bot_api.edit(
                chat_id=target.chat_id, message_id=message_id, message=retired(claim.fulfilment)
            )
        return Outcome.SKIPPED
    refresh_message(fulfilment_id=due.fulfilment_id, platform=platform)
    return Outcome.SENT


def return_lost() -> None:
    """Releases rows whose process died while sending: whether it posted is unknown."""
    dead = Announcement.objects.filter(state=SENDING, busy_until__lte=timezone.now())
    lost = dead.update(
        state=Case(When(message_id=None, then=Value(WAITING)), default=Value(ANNOUNCED)),
        busy_until=None,
        lost_answers=F("lost_answers") + 1,
        last_error="The process that sent it died.",
    )
    if lost:
        logger.warning("announcement_answers_lost", count=lost)
    _give_up_hopeless()


def may_be_posted() -> Q:
    """The conditions that a row must meet when it is claimed."""
    return free() & Q(former_message_id=None, lost_answers__lt=MAX_LOST_ANSWERS)


def _is_due(fulfilment: Fulfilment, row: Announcement) -> bool:
    """Whether the order needs a post now. The holder of an order needs its buttons, so a lost
    message of any open order is replaced."""
    if fulfilment.status == FulfilmentStatus.PENDING:
        return True
    lost_its_message = row.message_id is None and row.announced_at is not None
    return lost_its_message and fulfilment.status in OPEN


def _claim(due: Due, platform: Platform) -> PostingClaim | Outcome:
    """Claims the row and commits. An order that cannot be rendered is not claimed."""
    with transaction.atomic():
        row, _ = Announcement.objects.get_or_create(fulfilment_id=due.fulfilment_id)
        unchanged = Q(pk=row.pk, state=row.state, attempts=row.attempts)
        claimed = Announcement.objects.filter(due.still, unchanged, may_be_posted()).update(
            state=SENDING,
            attempts=F("attempts") + 1,
            busy_until=timezone.now() + LEASE,
            chat_id=due.target.chat_id,
            topic_id=due.target.topic_id,
        )
        fulfilment = load_fulfilment(due.fulfilment_id)
        if not claimed or not _is_due(fulfilment, row):
            transaction.set_rollback(True)
            return Outcome.SKIPPED
        if not chats.take_slot(due.target.chat_id):
            transaction.set_rollback(True)
            return Outcome.CHAT_CLOSED
        message = render(
            fulfilment,
            now=timezone.now(),
            zone=platform.zone,
            doubtful=row.lost_answers > 0,
            repeats=row.repeats + (row.message_id is not None),
        )
    return PostingClaim(row, fulfilment, due.target, row.attempts + 1, message)


def _keep_message(claim: PostingClaim, message_id: int, version: int) -> bool:
    """Records the posted message; False if the claim has ended."""
    now = timezone.now()
    changes: dict[str, Any] = {
        "state": ANNOUNCED,
        "message_id": message_id,
        "message_version": version,
        "age_at": next_age_at(claim.fulfilment, now),
        "restore_at": None,
        "repeat_requested": False,
        "last_error": "",
    }
    if claim.row.message_id is None:
        changes |= {"announced_at": Coalesce("announced_at", Value(now))}
    else:
        changes |= {
            "former_message_id": claim.row.message_id,
            "repeated_at": now,
            "repeats": F("repeats") + 1,
        }
    return _end_claim(claim, **changes)


def _handle_failed_post(claim: PostingClaim, trouble: bot_api.Trouble) -> None:
    """Updates the row after a post that failed, or whose result is unknown."""
    chat_id, error = claim.target.chat_id, str(trouble)[:200]
    match trouble:
        case bot_api.NotNow():
            chats.pause(chat_id, error=error, wait=trouble.wait)
            _end_claim(claim, state=claim.row.state, last_error=error)
        case bot_api.Unreachable():
            chats.pause(chat_id, error=error)
            _end_claim(claim, state=claim.row.state, last_error=error)
        case bot_api.AnswerLost():
            chats.pause(chat_id, error=error)
            _end_claim(
                claim,
                state=claim.row.state,
                last_error=error,
                lost_answers=F("lost_answers") + 1,
            )
            _give_up_hopeless()
        case bot_api.ChatMoved():
            chats.follow_chat(chat_id, trouble.chat_id)
            _end_claim(claim, state=WAITING, message_id=None, last_error=error)
        case _:
            give_up(claim.row, error)


def _end_claim(claim: PostingClaim, **changes: Any) -> bool:
    """Ends the claim and saves the changes; False if the claim had already ended."""
    held = Announcement.objects.filter(pk=claim.row.pk, state=SENDING, attempts=claim.attempt)
    return bool(held.update(busy_until=None, **changes))


def _give_up_hopeless() -> None:
    hopeless = Announcement.objects.filter(
        state=WAITING, message_id=None, lost_answers__gte=MAX_LOST_ANSWERS
    )
    for row in hopeless:
        give_up(row, f"Telegram's answer was lost {row.lost_answers} times. {row.last_error}")
