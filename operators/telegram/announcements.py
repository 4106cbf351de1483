"""Announcing orders in Telegram, and keeping each message true to its order.

Telegram cannot be asked what it has posted, so a row says what we know. It is claimed before a
message is sent, by an UPDATE that names its state, and committed: of two processes one sends.
Where the answer is lost (a timeout, a 5xx, a killed worker), the order is announced once more,
openly: the second message says that there may be two. Buttons act on the order as it is, so either
may be used, and the first press on the one that we do not know of tells us its id.

Conditional UPDATEs here name columns of the row itself and nothing of other tables: PostgreSQL
would not look at those again after it has waited for the row.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Any

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from audit.models import AuditAction
from audit.services import record_action
from operators.models import Announcement, AnnouncementState
from operators.telegram import api, chats
from operators.telegram.message import Message, render, retired
from operators.telegram.selectors import Platform, Target, read_platform
from topups.models import Fulfilment, FulfilmentEvent, FulfilmentStatus
from topups.transitions import OPEN

logger = structlog.get_logger(__name__)

# How long a process may be busy with one row: longer than any task may run.
LEASE = timedelta(seconds=60)
# After so many lost answers nothing is posted any more: there may be as many messages already.
MAX_LOST_ANSWERS = 3
# One run begins nothing after this, and so ends before CELERY_TASK_SOFT_TIME_LIMIT.
SECONDS = 8.0
ROUNDS = 5

WAITING, SENDING = AnnouncementState.WAITING, AnnouncementState.SENDING
ANNOUNCED, ENDED = AnnouncementState.ANNOUNCED, AnnouncementState.ENDED


class Outcome(Enum):
    """What became of an attempt to post."""

    SENT = auto()
    SKIPPED = auto()
    CHAT_CLOSED = auto()  # nothing more goes there for now


@dataclass(frozen=True)
class Due:
    """An order to post, where, and what its row must still say when it is claimed: so that of two
    processes that found it, the second does not take it for due once more."""

    fulfilment_id: int
    target: Target
    still: Q


@dataclass(frozen=True)
class Claim:
    """The right to post one order once; `row` is as it was before."""

    row: Announcement
    fulfilment: Fulfilment
    target: Target
    attempt: int
    message: Message


def show_order(*, fulfilment_id: int) -> None:
    """Makes Telegram show the order as it is: edits its message, or announces what waits."""
    if not settings.TELEGRAM_BOT_TOKEN:
        return
    platform = read_platform()
    _try_anew(fulfilment_id)
    refresh(fulfilment_id=fulfilment_id, platform=platform)
    if Fulfilment.objects.filter(pk=fulfilment_id, status=FulfilmentStatus.PENDING).exists():
        announce_due(platform, end=time.monotonic() + SECONDS)


def sweep_announcements() -> dict[str, int]:
    """Does all that is due, whatever became of its task; returns how much of what."""
    if not settings.TELEGRAM_BOT_TOKEN:
        return {"edited": 0, "announced": 0, "repeated": 0}
    platform, end = read_platform(), time.monotonic() + SECONDS
    _give_back_lost()
    edited = 0
    stale = _stale().exclude(chat_id__in=chats.paused_chats())
    for fulfilment_id in list(stale.values_list("fulfilment_id", flat=True)):
        if time.monotonic() >= end:
            break
        with _logging_failure(fulfilment_id):
            edited += refresh(fulfilment_id=fulfilment_id, platform=platform)
    announced = announce_due(platform, end=end)
    return {"edited": edited, "announced": announced, "repeated": repeat_due(platform, end=end)}


# Announcing.


def announce_due(platform: Platform, *, end: float) -> int:
    """Posts the orders that nobody was told of, the longest waiting first, until `end` of the
    monotonic clock; returns how many."""
    if not platform.announces(timezone.now()):
        return 0
    return _post_each(_not_announced(platform), platform, end=end)


def repeat_due(platform: Platform, *, end: float) -> int:
    """Posts again what nobody has claimed for as long as the settings say; returns how many."""
    if not platform.announces(timezone.now()):
        return 0
    return _post_each(_not_claimed(platform), platform, end=end)


def _post_each(orders: Iterator[Due], platform: Platform, *, end: float) -> int:
    """One that fails is logged and holds up no other."""
    closed = set(chats.paused_chats())
    sent = 0
    for due in orders:
        if time.monotonic() >= end:
            break
        if due.target.chat_id in closed:
            continue
        with _logging_failure(due.fulfilment_id):
            outcome = _post(due, platform)
            sent += outcome == Outcome.SENT
            if outcome == Outcome.CHAT_CLOSED:
                closed.add(due.target.chat_id)
    return sent


def _not_announced(platform: Platform) -> Iterator[Due]:
    untold = Q(announcement=None) | Q(announcement__state=WAITING)
    lost_its_message = Q(announcement__state=WAITING, announcement__announced_at__isnull=False)
    waiting = (
        Fulfilment.objects.filter(
            Q(untold, status=FulfilmentStatus.PENDING, product__announce=True)
            | Q(lost_its_message, status__in=OPEN)
        )
        .order_by("created_at", "pk")
        .values_list("pk", "product_id", "product__category_id")
    )
    for pk, product_id, category_id in waiting:
        target = platform.target_of(product_id=product_id, category_id=category_id)
        if target is not None:
            yield Due(pk, target, Q(state=WAITING))


def _not_claimed(platform: Platform) -> Iterator[Due]:
    times, minutes = platform.settings.repeat_times, platform.settings.repeat_minutes
    wanted = Q(repeat_asked=True)
    if minutes is not None:
        long_ago = timezone.now() - timedelta(minutes=minutes)
        wanted |= Q(repeats__lt=times, unclaimed_since__lte=long_ago)
    rows = (
        Announcement.objects.filter(
            _may_be_posted(), state=ANNOUNCED, fulfilment__status=FulfilmentStatus.PENDING
        )
        .annotate(
            unclaimed_since=Greatest(
                Coalesce("repeated_at", "announced_at"), _latest_event("created_at")
            )
        )
        .filter(wanted)
        .order_by("fulfilment__created_at", "pk")
    )
    for row in rows:
        yield Due(row.fulfilment_id, _where_it_is(row), Q(state=ANNOUNCED, attempts=row.attempts))


def _post(due: Due, platform: Platform) -> Outcome:
    """Claims, posts, and keeps what came of it. Where the process dies on the way, the row says
    `sending` until its lease is over, and the answer counts as lost."""
    claim = _claim(due, platform)
    if not isinstance(claim, Claim):
        return claim
    target, row, message = due.target, claim.row, claim.message
    try:
        message_id = api.send(target=target, message=message, reply_to=row.message_id)
    except api.Trouble as trouble:
        _take_back(claim, trouble)
        return Outcome.CHAT_CLOSED
    chats.note_success(target.chat_id)
    if not _keep_message(claim, message_id, message.version):
        # We were so slow that somebody else took over: theirs is the message.
        with suppress(api.Trouble):
            api.edit(
                chat_id=target.chat_id, message_id=message_id, message=retired(claim.fulfilment)
            )
        return Outcome.SKIPPED
    refresh(fulfilment_id=due.fulfilment_id, platform=platform)
    return Outcome.SENT


def _claim(due: Due, platform: Platform) -> Claim | Outcome:
    """The claim is committed when this returns; one that cannot be rendered is not made."""
    with transaction.atomic():
        row, _ = Announcement.objects.get_or_create(fulfilment_id=due.fulfilment_id)
        unchanged = Q(pk=row.pk, state=row.state, attempts=row.attempts)
        claimed = Announcement.objects.filter(due.still, unchanged, _may_be_posted()).update(
            state=SENDING,
            attempts=F("attempts") + 1,
            busy_until=timezone.now() + LEASE,
            chat_id=due.target.chat_id,
            topic_id=due.target.topic_id,
        )
        fulfilment = _load(due.fulfilment_id)
        if not claimed or not _is_to_be_told(fulfilment, row):
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
    return Claim(row, fulfilment, due.target, row.attempts + 1, message)


def _is_to_be_told(fulfilment: Fulfilment, row: Announcement) -> bool:
    """Whoever holds an order needs its buttons, so a message that was lost is made up for."""
    if fulfilment.status == FulfilmentStatus.PENDING:
        return True
    lost_its_message = row.message_id is None and row.announced_at is not None
    return lost_its_message and fulfilment.status in OPEN


def _may_be_posted() -> Q:
    """What a row must still be when it is claimed."""
    return _free() & Q(former_message_id=None, lost_answers__lt=MAX_LOST_ANSWERS)


def _keep_message(claim: Claim, message_id: int, version: int) -> bool:
    now = timezone.now()
    changes: dict[str, Any] = {
        "state": ANNOUNCED,
        "message_id": message_id,
        "shown_event": version,
        "restore_at": None,
        "repeat_asked": False,
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
    return _settle(claim, **changes)


def _take_back(claim: Claim, trouble: api.Trouble) -> None:
    """The row after an attempt that posted nothing, or nobody knows."""
    chat_id, error = claim.target.chat_id, str(trouble)[:200]
    match trouble:
        case api.NotNow():
            chats.pause(chat_id, error=error, wait=trouble.wait)
            _settle(claim, state=claim.row.state, last_error=error)
        case api.Unreachable():
            chats.pause(chat_id, error=error)
            _settle(claim, state=claim.row.state, last_error=error)
        case api.AnswerLost():
            chats.pause(chat_id, error=error)
            _settle(
                claim,
                state=claim.row.state,
                last_error=error,
                lost_answers=F("lost_answers") + 1,
            )
            _give_up_hopeless()
        case api.ChatMoved():
            chats.follow_chat(chat_id, trouble.chat_id)
            _settle(claim, state=WAITING, message_id=None, last_error=error)
        case _:
            _give_up(claim.row, error)


def _settle(claim: Claim, **changes: Any) -> bool:
    """Ends the claim; False where it was over before."""
    mine = Announcement.objects.filter(pk=claim.row.pk, state=SENDING, attempts=claim.attempt)
    return bool(mine.update(busy_until=None, **changes))


def _give_back_lost() -> None:
    """Rows whose process died while it sent: nobody knows whether a message was posted."""
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


def _give_up_hopeless() -> None:
    hopeless = Announcement.objects.filter(
        state=WAITING, message_id=None, lost_answers__gte=MAX_LOST_ANSWERS
    )
    for row in hopeless:
        _give_up(row, f"Telegram's answer was lost {row.lost_answers} times. {row.last_error}")


def _give_up(row: Announcement, error: str) -> None:
    """Leaves the order to the desk, with a mark there and in the audit trail."""
    reference = row.fulfilment.order_reference
    with transaction.atomic():
        left = Announcement.objects.filter(pk=row.pk).exclude(state=AnnouncementState.GIVEN_UP)
        if not left.update(
            state=AnnouncementState.GIVEN_UP, busy_until=None, last_error=error[:200]
        ):
            return
        record_action(
            actor=None,
            action=AuditAction.ANNOUNCEMENT_GIVEN_UP,
            on=row,
            reference=reference,
            note=error[:500],
        )
    logger.warning("announcement_given_up", order=reference, cause=error)


# Keeping messages true.


def refresh(*, fulfilment_id: int, platform: Platform) -> bool:
    """Edits the message until it shows the order as it is; returns whether it edited anything.

    One process at a time edits a message. Whoever finds it busy may go: whoever is busy looks once
    more after the edit, so the last word at Telegram is the present state.
    """
    edited = False
    for _ in range(ROUNDS):
        row = _take_for_edit(fulfilment_id)
        if row is None or not _edit(row, platform):
            break
        edited = True
    return edited


def _try_anew(fulfilment_id: int) -> None:
    """Whatever was given up, a message that is there is edited once for each news of its order:
    what was wrong may be over, or have been about posting only."""
    given_up = Announcement.objects.filter(
        fulfilment_id=fulfilment_id, state=AnnouncementState.GIVEN_UP, message_id__isnull=False
    )
    stale = given_up.annotate(latest=_latest_event("pk")).exclude(shown_event=F("latest"))
    stale.update(state=ANNOUNCED)


def _take_for_edit(fulfilment_id: int) -> Announcement | None:
    """The row, ours for as long as its lease; None where there is nothing to edit, or not now."""
    row = _stale().filter(fulfilment_id=fulfilment_id).first()
    if row is None or row.chat_id is None or chats.is_paused(row.chat_id):
        return None
    lease = timezone.now() + LEASE
    taken = Announcement.objects.filter(_free(), pk=row.pk, state=ANNOUNCED).update(
        busy_until=lease
    )
    return Announcement.objects.filter(pk=row.pk, busy_until=lease).first() if taken else None


def _edit(row: Announcement, platform: Platform) -> bool:
    fulfilment = _load(row.fulfilment_id)  # read after the row is ours
    message = render(
        fulfilment,
        now=timezone.now(),
        zone=platform.zone,
        doubtful=row.lost_answers > 0,
        repeats=row.repeats,
    )
    assert row.chat_id is not None and row.message_id is not None  # noqa: S101, PT018  a constraint
    try:
        if row.former_message_id is not None:
            with suppress(api.MessageGone, api.Refused):
                api.edit(
                    chat_id=row.chat_id,
                    message_id=row.former_message_id,
                    message=retired(fulfilment),
                )
        api.edit(chat_id=row.chat_id, message_id=row.message_id, message=message)
    except api.Trouble as trouble:
        _leave(row, fulfilment, trouble)
        return False
    chats.note_success(row.chat_id)
    untouched = Q(restore_at=row.restore_at) if row.restore_at else Q(restore_at=None)
    ended = ANNOUNCED if fulfilment.status in OPEN else ENDED
    mine = _mine(row).update(
        busy_until=None,
        shown_event=message.version,
        former_message_id=None,
        # Where somebody has changed the buttons meanwhile, another round follows.
        restore_at=Case(When(untouched, then=Value(None)), default=F("restore_at")),
        state=Case(When(untouched, then=Value(ended)), default=Value(ANNOUNCED)),
        last_error="",
    )
    if not mine:
        _distrust(row)
    return True


def _distrust(row: Announcement) -> None:
    """An edit that came after its lease may have undone a newer one: it is made once more."""
    shown = Announcement.objects.filter(
        pk=row.pk, message_id=row.message_id, state__in=[ANNOUNCED, ENDED]
    )
    shown.update(state=ANNOUNCED, restore_at=timezone.now())


def _leave(row: Announcement, fulfilment: Fulfilment, trouble: api.Trouble) -> None:
    """The row after an edit that failed. An edit may be done twice, so a lost answer is no harm."""
    assert row.chat_id is not None  # noqa: S101  a constraint
    error = str(trouble)[:200]
    match trouble:
        case api.MessageGone():
            _let_go(row, fulfilment, error)
        case api.ChatMoved():
            chats.follow_chat(row.chat_id, trouble.chat_id)
            _let_go(row, fulfilment, error)
        case api.Refused():
            _give_up(row, error)
        case _:
            wait = trouble.wait if isinstance(trouble, api.NotNow) else None
            chats.pause(row.chat_id, error=error, wait=wait)
            if not _mine(row).update(busy_until=None, last_error=error):
                _distrust(row)


def _let_go(row: Announcement, fulfilment: Fulfilment, error: str) -> None:
    """The message is gone. An order that is open is announced anew."""
    if fulfilment.status in OPEN:
        changes: dict[str, Any] = {"state": WAITING, "message_id": None, "shown_event": None}
    else:
        changes = {"state": ENDED}
    _mine(row).update(
        busy_until=None, former_message_id=None, restore_at=None, last_error=error, **changes
    )


def _mine(row: Announcement) -> QuerySet[Announcement]:
    """The row as long as nobody else has taken it over."""
    return Announcement.objects.filter(pk=row.pk, busy_until=row.busy_until)


def _stale() -> QuerySet[Announcement]:
    """Rows whose message may not show the order as it is."""
    return (
        Announcement.objects.filter(_free(), state=ANNOUNCED)
        .annotate(latest=_latest_event("pk"))
        .filter(
            Q(shown_event=None)
            | ~Q(shown_event=F("latest"))
            | Q(restore_at__lte=timezone.now())
            | Q(former_message_id__isnull=False)
            | ~Q(fulfilment__status__in=OPEN)
        )
        .order_by("pk")
    )


def _latest_event(column: str) -> Subquery:
    """Of the event that message.last_event finds."""
    events = FulfilmentEvent.objects.filter(fulfilment=OuterRef("fulfilment"))
    return Subquery(events.exclude(move="refund").order_by("-pk").values(column)[:1])


def _free() -> Q:
    return Q(busy_until=None) | Q(busy_until__lte=timezone.now())


def _where_it_is(row: Announcement) -> Target:
    assert row.chat_id is not None  # noqa: S101  a constraint
    return Target(row.chat_id, row.topic_id)


def _load(fulfilment_id: int) -> Fulfilment:
    return Fulfilment.objects.select_related("product__category").get(pk=fulfilment_id)


@contextmanager
def _logging_failure(fulfilment_id: int) -> Iterator[None]:
    """For one of many orders: what fails here is tried again by the next sweep."""
    try:
        yield
    except SoftTimeLimitExceeded:
        raise
    except Exception as error:
        if not connection.is_usable():  # the database is gone, and this order not to blame
            raise
        logger.error("announcement_failed", fulfilment=fulfilment_id, cause=api.describe(error))
