"""Celery tasks of this app. Each may safely run twice."""

from celery import shared_task
from django.contrib.sessions.backends.db import SessionStore

from accounts.sign_in.limits import forget_old_addresses
from merchants.api_access import spending_limits
from merchants.email import case_notices, reports, sending, transfer_notices
from merchants.frame import prepared_files
from merchants.money import balance_alerts
from merchants.people.password_resets import forget_strangers


@shared_task
def send_email(email_id: int) -> bool:
    """Sends one email. If that fails, `sweep_emails` tries again later."""
    return sending.send_email(email_id=email_id)


@shared_task
def sweep_emails() -> dict[str, int]:
    """Sends the emails whose task was lost or whose pause after a failure is over."""
    return sending.sweep_emails()


# The message is confirmed before the task begins: a large file takes longer than the broker waits.
@shared_task(acks_late=False, soft_time_limit=3600, time_limit=3630)
def build_file(prepared_file_id: int) -> None:
    """Builds a file that was too large for a request."""
    prepared_files.build_file(pk=prepared_file_id)


@shared_task
def sweep_files() -> dict[str, int]:
    """Continues files that a worker did not finish, and deletes old ones."""
    return prepared_files.sweep_files()


@shared_task
def sweep_reports() -> int:
    """Writes the emails of reports whose period has ended."""
    return reports.sweep_reports()


@shared_task
def sweep_balance_alerts() -> dict[str, int]:
    """Emails the owners of accounts whose balance fell below the level of their alert."""
    return balance_alerts.sweep_balance_alerts()


@shared_task
def sweep_spending_limits() -> int:
    """Emails the owners of clients whose spending limit refused a purchase."""
    return spending_limits.sweep_spending_limits()


@shared_task
def sweep_cases() -> int:
    """Emails the members whose cases staff have answered or closed."""
    return case_notices.sweep_cases()


@shared_task
def sweep_transfers() -> int:
    """Emails the owners whose announced transfers were booked."""
    return transfer_notices.sweep_transfers()


@shared_task
def clear_sessions() -> None:
    """Deletes expired sessions, and old records of sign-ins and of requests for passwords."""
    SessionStore.clear_expired()
    forget_old_addresses()
    forget_strangers()
