"""The row of an order's announcement, and the requests to change what Telegram shows.

A request marks the order's row, so that the sweep finds it, and queues the task that does the work
at once.

Conditional UPDATEs on announcements name only columns of the row itself. After waiting for a row
lock, PostgreSQL re-checks the row's own columns but does not read other tables again.
"""

from datetime import timedelta
from functools import partial

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, Q, QuerySet, Value, When
from django.db.models.functions import Least
from django.utils import timezone

from audit.models import AuditAction
from audit.services import record_action
from operators.telegram.apps import queue_order
from operators.telegram.models import Announcement, AnnouncementState
from topups.models import Fulfilment, FulfilmentStatus

logger = structlog.get_logger(__name__)

# How long a process may hold a row: longer than any task may run.
LEASE = timedelta(seconds=60)
QUESTION_STAYS = timedelta(minutes=2)
WITH_A_MESSAGE = [AnnouncementState.ANNOUNCED, AnnouncementState.ENDED]


def free() -> Q:
    """Matches the rows that no process holds."""
    return Q(busy_until=None) | Q(busy_until__lte=timezone.now())


def load_fulfilment(fulfilment_id: int) -> Fulfilment:
    """The order with what its message needs. Raises DoesNotExist."""
    return Fulfilment.objects.select_related("product__category").get(pk=fulfilment_id)


def give_up(row: Announcement, error: str) -> None:
    """Leaves the order to the desk, which shows a mark; the audit trail gets an entry."""
    reference = row.fulfilment.order_reference
    with transaction.atomic():
        unmarked = Announcement.objects.filter(pk=row.pk).exclude(state=AnnouncementState.GIVEN_UP)
        if not unmarked.update(
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


def request_refresh(*, fulfilment_id: int, by: str = "") -> None:
    """Asks for an edit: the message may show an outdated text or the wrong buttons.

    While the message asks an operator to confirm, it keeps the question, unless it asks `by`. A
    question about an older version of the order goes in any case.
    """
    _with_a_message(fulfilment_id).filter(_asks_no_colleague_of(by)).update(
        state=AnnouncementState.ANNOUNCED, restore_at=timezone.now()
    )
    queue_order(fulfilment_id=fulfilment_id)


def note_question(*, fulfilment_id: int, name: str) -> str:
    """Records that the message asks this operator to confirm; it gets its buttons back after a
    while. Returns the name of a colleague whom it asks already; empty if there is none.
    """
    rows = _with_a_message(fulfilment_id)
    noted = rows.filter(_asks_no_colleague_of(name)).update(
        state=AnnouncementState.ANNOUNCED, restore_at=timezone.now() + QUESTION_STAYS, asks=name
    )
    return "" if noted else rows.values_list("asks", flat=True).first() or ""


def note_stray(*, fulfilment_id: int, chat_id: int, message_id: int) -> None:
    """Records a message that the row does not name: it was posted, but the answer was lost.

    It becomes the order's message. If the order has another one, this one is retired.
    """
    strays = Announcement.objects.filter(fulfilment_id=fulfilment_id, chat_id=chat_id)
    unknown = strays.filter(
        state__in=[AnnouncementState.WAITING, AnnouncementState.GIVEN_UP],
        message_id=None,
        lost_answers__gt=0,
    )
    now = timezone.now()
    adopted = unknown.update(
        state=AnnouncementState.ANNOUNCED, message_id=message_id, announced_at=now, restore_at=now
    )
    if not adopted:
        strays.filter(state__in=WITH_A_MESSAGE, former_message_id=None).exclude(
            message_id=message_id
        ).update(state=AnnouncementState.ANNOUNCED, former_message_id=message_id)
    queue_order(fulfilment_id=fulfilment_id)


def announce_again(*, announcement: Announcement, actor: User) -> bool:
    """Announces an order again at the request of staff, also one that was given up.

    Returns False if the order is not waiting to be claimed, or is being posted now.
    """
    if announcement.fulfilment.status != FulfilmentStatus.PENDING:
        return False
    with transaction.atomic():
        marked = Announcement.objects.filter(
            Q(state__in=[AnnouncementState.GIVEN_UP, AnnouncementState.ANNOUNCED]),
            pk=announcement.pk,
        ).update(
            state=Case(
                When(message_id=None, then=Value(AnnouncementState.WAITING)),
                default=Value(AnnouncementState.ANNOUNCED),
            ),
            lost_answers=Least("lost_answers", Value(1)),  # there may still be a second message
            repeat_requested=True,
        )
        if not marked:
            return False
        record_action(
            actor=actor,
            action=AuditAction.ANNOUNCEMENT_RESUMED,
            on=announcement,
            reference=announcement.fulfilment.order_reference,
        )
        transaction.on_commit(partial(queue_order, fulfilment_id=announcement.fulfilment_id))
    return True


def _with_a_message(fulfilment_id: int) -> QuerySet[Announcement]:
    """The order's row, if the order has a message."""
    given_up = Q(state=AnnouncementState.GIVEN_UP, message_id__isnull=False)
    return Announcement.objects.filter(
        Q(state__in=WITH_A_MESSAGE) | given_up, fulfilment_id=fulfilment_id
    )


def _asks_no_colleague_of(name: str) -> Q:
    """Matches messages that ask no other operator to confirm."""
    return Q(restore_at=None) | Q(restore_at__lte=timezone.now()) | Q(asks=name)
