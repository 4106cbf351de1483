"""Requests to change what Telegram shows of an order.

Each request marks the order's row, so that the sweep finds it, and queues the task that does the
work at once.
"""

from datetime import timedelta
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, Q, QuerySet, Value, When
from django.db.models.functions import Least
from django.utils import timezone

from audit.models import AuditAction
from audit.services import record_action
from operators.models import Announcement, AnnouncementState
from operators.telegram.order_tasks import queue_order
from topups.models import FulfilmentStatus

QUESTION_STAYS = timedelta(minutes=2)
SHOWN = [AnnouncementState.ANNOUNCED, AnnouncementState.ENDED]


def request_refresh(*, fulfilment_id: int, by: str = "") -> None:
    """Asks for an edit: the message may show an outdated text or the wrong buttons.

    While the message asks somebody to confirm, it keeps the question, unless it asks `by`. A
    question about an older version of the order goes in any case.
    """
    _shown(fulfilment_id).filter(_asks_nobody_but(by)).update(
        state=AnnouncementState.ANNOUNCED, restore_at=timezone.now()
    )
    queue_order(fulfilment_id=fulfilment_id)


def note_question(*, fulfilment_id: int, name: str) -> str:
    """Records that the message asks this operator to confirm; it gets its buttons back after a
    while. Returns the name of a colleague whom it asks already; empty if there is none.
    """
    shown = _shown(fulfilment_id)
    noted = shown.filter(_asks_nobody_but(name)).update(
        state=AnnouncementState.ANNOUNCED, restore_at=timezone.now() + QUESTION_STAYS, asked=name
    )
    return "" if noted else shown.values_list("asked", flat=True).first() or ""


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
        strays.filter(state__in=SHOWN, former_message_id=None).exclude(
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
        asked = Announcement.objects.filter(
            Q(state__in=[AnnouncementState.GIVEN_UP, AnnouncementState.ANNOUNCED]),
            pk=announcement.pk,
        ).update(
            state=Case(
                When(message_id=None, then=Value(AnnouncementState.WAITING)),
                default=Value(AnnouncementState.ANNOUNCED),
            ),
            lost_answers=Least("lost_answers", Value(1)),  # there may still be a second message
            repeat_asked=True,
        )
        if not asked:
            return False
        record_action(
            actor=actor,
            action=AuditAction.ANNOUNCEMENT_RESUMED,
            on=announcement,
            reference=announcement.fulfilment.order_reference,
        )
        transaction.on_commit(partial(queue_order, fulfilment_id=announcement.fulfilment_id))
    return True


def _shown(fulfilment_id: int) -> QuerySet[Announcement]:
    """The order's row, if the order has a message."""
    given_up = Q(state=AnnouncementState.GIVEN_UP, message_id__isnull=False)
    return Announcement.objects.filter(Q(state__in=SHOWN) | given_up, fulfilment_id=fulfilment_id)


def _asks_nobody_but(name: str) -> Q:
    """Matches messages that do not ask anybody else to confirm."""
    return Q(restore_at=None) | Q(restore_at__lte=timezone.now()) | Q(asked=name)
