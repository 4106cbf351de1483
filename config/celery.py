"""The Celery application: `celery -A config worker` and `celery -A config beat`."""

import os

from celery import Celery
from celery.signals import beat_init, celeryd_init
from django_structlog.celery.steps import DjangoStructLogInitStep

from config.checks import refuse_unsafe_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("config")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)


@celeryd_init.connect
@beat_init.connect
def refuse(**kwargs: object) -> None:
    """A worker or scheduler starts under the same conditions as the web server."""
    refuse_unsafe_start()
