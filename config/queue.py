"""Handing work to Celery without depending on it: the database already knows what is due."""

from typing import Any

import structlog
from celery import Task
from kombu.exceptions import OperationalError

logger = structlog.get_logger(__name__)


def enqueue(task: "Task[Any, Any]", *arguments: int) -> None:
    """Asks Celery to run the task soon. A lost broker is logged; a sweep does the work later.

    Call it after the commit, with ids only.
    """
    try:
        task.apply_async(arguments, retry=False)
    except (OperationalError, OSError) as error:
        logger.error("task_not_queued", task=task.name, cause=type(error).__name__)
