"""The Celery application: `celery -A config worker` and `celery -A config beat`."""

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, celeryd_init, setup_logging
from django_structlog.celery.receivers import CeleryReceiver
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.transport.redis import Channel, Transport
from redis.exceptions import ConnectionError

from config.checks import refuse_unsafe_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("config")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)
# Kept, because Celery's signals hold their receivers weakly.
_request_ids = CeleryReceiver()
_request_ids.connect_signals()


class SurvivingChannel(Channel):
    """A channel of Redis or Valkey whose worker outlives its broker.

    A worker that has a task in hand when its broker dies hands the message back, and later confirms
    it, over a connection that is closed. Kombu meets a None there and the worker ends by an
    AttributeError; as an error of the connection it is logged, and the worker goes on. The broker
    gives the message out again by itself, so nothing is handed back.
    """

    do_restore = False

    def _connparams(self, asynchronous: bool = False) -> Any:
        if self.connection is None:
            raise ConnectionError("The connection to the broker was lost.")
        return super()._connparams(asynchronous)  # type: ignore[misc]  # not in the stubs


Transport.Channel = SurvivingChannel


@celeryd_init.connect
@beat_init.connect
def refuse(**kwargs: object) -> None:
    """A worker or scheduler starts under the same conditions as the web server."""
    refuse_unsafe_start()


@setup_logging.connect
def keep_our_logs(**kwargs: object) -> None:
    """Celery would add handlers of its own, and lines that are not JSON.

    That somebody listens keeps it from that: config/logs.py has set up everything.
    """
