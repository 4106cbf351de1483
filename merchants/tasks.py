"""What Celery runs for this app; each is safe to run twice."""

from celery import shared_task
from django.contrib.sessions.backends.db import SessionStore

from merchants.email import sending
from merchants.money import balance_alerts


@shared_task
def send_email(email_id: int) -> bool:
    """Sends one letter; where that fails the sweep tries again."""
    return sending.send_email(email_id=email_id)


@shared_task
def sweep_emails() -> dict[str, int]:
    """Sends what was missed or had to wait."""
    return sending.sweep_emails()


@shared_task
def clear_sessions() -> None:
    """Forgets the sessions that have expired, of members and staff, and where they were seen."""
    SessionStore.clear_expired()


@shared_task
def sweep_balance_alerts() -> dict[str, int]:
    """Writes to the owners of accounts whose balance fell below their level."""
    return balance_alerts.sweep_balance_alerts()
