"""Handing work to Celery without depending on it: the database already knows what is due.

Somebody waits while a task is queued: a merchant whose purchase is committed, an operator whose
decision is. So a broker gets half a second, and after a failure the process leaves it alone for a
while. What was not queued is found by a sweep.
"""

import threading
import time
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from kombu.pools import ProducerPool

logger = structlog.get_logger(__name__)

PATIENCE = 0.5  # seconds for each step of talking to the broker
REST = 5.0  # seconds without another attempt after a failure
# A connection that a restart of RabbitMQ left stale is made anew, once and at once.
RETRY_ONCE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
# Each transport takes the names it knows: the first two Redis and Valkey, the others RabbitMQ.
TIMEOUTS = {
    "socket_connect_timeout": PATIENCE,
    "socket_timeout": PATIENCE,
    "read_timeout": PATIENCE,
    "write_timeout": PATIENCE,
}


class Rest:
    """Since when, in this process, the broker is not bothered."""

    def __init__(self) -> None:
        self._until = 0.0
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            self._until = time.monotonic() + REST

    def __bool__(self) -> bool:
        with self._lock:
            return time.monotonic() < self._until


resting = Rest()


def enqueue(task: str, *arguments: int) -> None:
    """Asks Celery to run the task of this name soon. Any failure of the broker is only logged.

    Call it after the commit, with ids only.
    """
    if resting:
        logger.error("task_not_queued", task=task, cause="the broker failed a moment ago")
        return
    # Loaded at the first use: Celery takes a second, and most commands never queue a task.
    from config.celery import app  # noqa: PLC0415

    try:
        with _producers().acquire(block=True, timeout=PATIENCE) as producer:
            app.send_task(
                task,
                arguments,
                producer=producer,
                retry=True,
                retry_policy=RETRY_ONCE,
                ignore_result=True,
            )
    except Exception as error:
        # Any kind: the caller's work is committed, and must not seem to have failed.
        resting.begin()
        logger.error("task_not_queued", task=task, cause=type(error).__name__)


def _producers() -> "ProducerPool":
    """Kept by kombu for each process, broker and set of options."""
    from kombu.pools import producers  # noqa: PLC0415

    from config.celery import app  # noqa: PLC0415

    connection = app.connection_for_write(connect_timeout=PATIENCE, transport_options=TIMEOUTS)
    kept: ProducerPool = producers[connection]
    return kept
