"""Celery tasks of warnings. Each may safely run twice."""

from celery import shared_task

from operators.warnings import raising


@shared_task
def sweep_warnings() -> dict[str, int]:
    """Raises and ends warnings, and stores their emails and messages."""
    return raising.sweep_warnings()


@shared_task
def post_warnings() -> int:
    """Sends warnings to staff in Telegram."""
    from operators.warnings import posting  # noqa: PLC0415  as in operators/telegram/tasks.py

    return posting.post_warnings()
