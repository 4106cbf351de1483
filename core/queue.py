"""Queues Celery tasks without depending on the broker: sweeps find work that was not queued.

A merchant or an operator waits while a task is queued, so each step of talking to the broker has a
short timeout. After a failure the process does not contact the broker for a few seconds.
"""

import threading
import time
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from celery import Celery
    from kombu.pools import ProducerPool

logger = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 0.5  # for each step of talking to the broker
PAUSE_SECONDS = 5.0  # after a failure
# The one immediate retry replaces a connection that a restart of RabbitMQ left stale.
RETRY_ONCE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
# Redis and Valkey read the first two options, RabbitMQ the other two.
TIMEOUTS = {
    "socket_connect_timeout": TIMEOUT_SECONDS,
    "socket_timeout": TIMEOUT_SECONDS,
    "read_timeout": TIMEOUT_SECONDS,
    "write_timeout": TIMEOUT_SECONDS,
}


class Pause:
    """A pause of this process from contacting the broker; true while it lasts."""

    def __init__(self) -> None:
        self._until = 0.0
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            self._until = time.monotonic() + PAUSE_SECONDS

    def __bool__(self) -> bool:
        with self._lock:
            return time.monotonic() < self._until


pause = Pause()


def enqueue(task: str, *arguments: int) -> None:
    """Queues the task of this name for a Celery worker. A broker failure is logged, never raised.

    Call it after the commit. `arguments` are ids.
    """
    if pause:
        logger.error("task_not_queued", task=task, cause="the broker failed a moment ago")
        return
    try:
        app = task_application()
        with _producers(app).acquire(block=True, timeout=TIMEOUT_SECONDS) as producer:
            app.send_task(
                task,
                arguments,
                producer=producer,
                retry=True,
                retry_policy=RETRY_ONCE,
                ignore_result=True,
            )
    except Exception as error:
        # The caller's work is already committed, so no error of the broker may reach the caller.
        pause.begin()
        logger.error("task_not_queued", task=task, cause=type(error).__name__)


def task_application() -> "Celery":
    """The Celery application. To load it takes a second, and most commands queue no task."""
    application: Celery = import_string(settings.TASK_APPLICATION)
    return application


def _producers(app: "Celery") -> "ProducerPool":
    """The pool that kombu keeps for this process, broker and set of options."""
    from kombu.pools import producers  # noqa: PLC0415

    connection = app.connection_for_write(
        connect_timeout=TIMEOUT_SECONDS, transport_options=TIMEOUTS
    )
    pool: ProducerPool = producers[connection]
    return pool
