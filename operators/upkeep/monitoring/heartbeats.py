"""Signs of life of the scheduler and the workers, written to the database by themselves.

A worker counts as alive while it is connected to its broker, and the scheduler while it can queue
tasks. operators/upkeep/tasks.py imports this module, so both processes load it.
"""

import socket
import threading
import time
from datetime import timedelta
from typing import Any

import structlog
from celery import current_app
from celery.signals import after_task_publish, beat_init, heartbeat_sent
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from operators.upkeep.copies import note_marks
from operators.upkeep.models import Heartbeat, HeartbeatKind

logger = structlog.get_logger(__name__)

EVERY_SECONDS = 15
FORGOTTEN_AFTER = timedelta(days=1)  # a host that is gone
QUEUES = {HeartbeatKind.WORKER: "celery", HeartbeatKind.IMPORTS: "imports"}

_next: dict[HeartbeatKind, float] = {}


def note_life(kind: HeartbeatKind) -> None:
    """Writes that this process is alive, if its last heartbeat is older than EVERY_SECONDS.

    A thread writes, so a slow database does not delay the scheduler or the worker's main process.
    """
    if time.monotonic() >= _next.get(kind, 0):
        _next[kind] = time.monotonic() + EVERY_SECONDS
        threading.Thread(target=_write, args=[kind], name="heartbeat", daemon=True).start()


def _write(kind: HeartbeatKind) -> None:
    host = socket.gethostname()
    try:
        if not Heartbeat.objects.filter(kind=kind, host=host).update(beat_at=Now()):
            Heartbeat.objects.bulk_create([Heartbeat(kind=kind, host=host)], ignore_conflicts=True)
            Heartbeat.objects.filter(beat_at__lt=timezone.now() - FORGOTTEN_AFTER).delete()
        if kind is HeartbeatKind.WORKER:
            note_marks()
    except Exception as error:  # the next one may succeed
        logger.warning("heartbeat_not_written", kind=kind.value, cause=type(error).__name__)
    finally:
        connection.close()  # it belongs to this thread


@heartbeat_sent.connect
def _note_worker(**kwargs: Any) -> None:
    """Celery sends this signal every two seconds while a worker is connected to its broker."""
    for kind, queue in QUEUES.items():
        if queue in current_app.amqp.queues.consume_from:
            note_life(kind)


@beat_init.connect
def _watch_beat(**kwargs: Any) -> None:
    after_task_publish.connect(_note_beat)


def _note_beat(**kwargs: Any) -> None:
    """The scheduler has queued a task, as it does every few seconds."""
    note_life(HeartbeatKind.BEAT)
