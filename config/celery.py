"""The Celery application: `celery -A config worker` and `celery -A config beat`."""

import os

from celery import Celery
from celery.signals import beat_init, celeryd_init, setup_logging
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.transport.redis import Channel

from config.checks import refuse_unsafe_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("config")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)

# Or a worker that has a task in hand when its Redis or Valkey dies tries to hand it back over the
# dead connection, and ends by the error. The broker gives it out again by itself.
Channel.do_restore = False


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
