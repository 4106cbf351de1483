"""The Celery application: `celery -A config worker` and `celery -A config beat`."""

import os
import time
from typing import Any

from celery import Celery
from celery.signals import (
    beat_init,
    celeryd_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_process_init,
)
from django.conf import settings
from django_structlog.celery.receivers import CeleryReceiver
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.transport.redis import Channel, Transport
from redis.exceptions import ConnectionError

from core.checks import refuse_unsafe_start, refuse_wrong_keys
from core.telemetry.metrics import TASK_SECONDS, keep_in_files
from core.version import log_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("config")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)
# In a module variable, because Celery's signals keep only weak references to receivers.
_request_ids = CeleryReceiver()
_request_ids.connect_signals()


class SurvivingChannel(Channel):
    """A Redis or Valkey channel that keeps its worker running when the broker dies.

    A worker that runs a task while its broker dies returns the message, and later acknowledges it,
    over a closed connection. Kombu then reads `self.connection` as None, and the worker crashes
    with an AttributeError. A ConnectionError is logged instead, and the worker keeps running.
    `do_restore` is off because the broker redelivers an unacknowledged message by itself.
    """

    do_restore = False

    def _connparams(self, asynchronous: bool = False) -> Any:
        if self.connection is None:
            raise ConnectionError("The connection to the broker was lost.")
        return super()._connparams(asynchronous)  # type: ignore[misc]  # not in the stubs


Transport.Channel = SurvivingChannel


@celeryd_init.connect
@beat_init.connect
def check_settings(**kwargs: object) -> None:
    """Applies the startup checks of the web server to a worker or scheduler."""
    refuse_unsafe_start()


@celeryd_init.connect
def log_start_of_worker(**kwargs: object) -> None:
    log_start("worker")


@beat_init.connect
def log_start_of_scheduler(**kwargs: object) -> None:
    log_start("beat")


@celeryd_init.connect
def check_keys(**kwargs: object) -> None:
    """Applies the web server's check of the encryption keys to a worker."""
    refuse_wrong_keys()


@worker_process_init.connect
def keep_metrics(**kwargs: object) -> None:
    """Keeps the metrics of each child process of a worker: the children run the tasks."""
    keep_in_files(settings.METRICS_DIR)


@task_prerun.connect
def begin_task(task: Any, **kwargs: object) -> None:
    task.request.began = time.perf_counter()


@task_postrun.connect
def count_task(task: Any, state: str | None = None, **kwargs: object) -> None:
    """Times the task that has ended. Celery knows no state if it was interrupted."""
    if began := getattr(task.request, "began", None):
        TASK_SECONDS.add(time.perf_counter() - began, task.name, state or "UNKNOWN")


@setup_logging.connect
def keep_our_logs(**kwargs: object) -> None:
    """Keeps the handlers of core/telemetry/logs.py.

    Celery adds its own handlers, whose lines are not JSON, unless this signal has a receiver.
    """
