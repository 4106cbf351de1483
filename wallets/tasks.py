"""The scheduled tasks of this app. Each is safe to run twice, also at the same time."""

from celery import shared_task

from core.database.functions import database_now
from wallets import approvals
from wallets.evidence import closes, roots

LONGEST_SECONDS = 3600


# It may take longer than the broker's visibility_timeout, so its message is acknowledged before it
# runs.
@shared_task(acks_late=False, soft_time_limit=LONGEST_SECONDS, time_limit=LONGEST_SECONDS + 30)
def sign_ledger() -> None:
    """Signs the ledger if a root is due (`DUE_AFTER` in wallets/evidence/roots.py)."""
    roots.sign_if_due(database_now())


@shared_task
def expire_approvals() -> int:
    """Ends the bookings that nobody approved in time."""
    return approvals.expire_approvals()


# The first one on an old ledger closes many days.
@shared_task(acks_late=False, soft_time_limit=LONGEST_SECONDS, time_limit=LONGEST_SECONDS + 30)
def close_days() -> None:
    """Closes the days that have ended."""
    closes.close_days()
