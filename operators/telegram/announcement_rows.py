"""What `announce` and `refresh` share about an announcement's row.

Conditional UPDATEs on announcements name only columns of the row itself. After waiting for a row
lock, PostgreSQL re-checks the row's own columns but does not read other tables again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from audit.models import AuditAction
from audit.services import record_action
from operators.models import Announcement, AnnouncementState
from operators.telegram import bot_api
from topups.models import Fulfilment

logger = structlog.get_logger(__name__)

# How long a process may hold a row: longer than any task may run.
LEASE = timedelta(seconds=60)


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


@contextmanager
def log_failure(fulfilment_id: int) -> Iterator[None]:
    """Logs a failure of one order, so that the others go on; the next sweep tries it again.

    Lets SoftTimeLimitExceeded through, and any error while the database is away.
    """
    try:
        yield
    except SoftTimeLimitExceeded:
        raise
    except Exception as error:
        if not connection.is_usable():  # the database is away; the order is not the cause
            raise
        logger.error("announcement_failed", fulfilment=fulfilment_id, cause=bot_api.describe(error))
