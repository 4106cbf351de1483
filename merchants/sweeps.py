"""What beat asks of this app that writes letters; merchants/tasks.py, which writing a letter needs,
cannot import it. Named in settings, CELERY_IMPORTS."""

from celery import shared_task

from merchants.money import balance_alerts


@shared_task
def sweep_balance_alerts() -> dict[str, int]:
    """Writes to the owners of accounts whose balance fell below their level."""
    return balance_alerts.sweep_balance_alerts()
