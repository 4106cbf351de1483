"""WSGI entry point: `granian --interface wsgi config.wsgi:application`."""

import gc
import os
from multiprocessing.util import Finalize

from core.http.stopping import close_while_draining, stop_on_signals

stop_on_signals()

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from core.checks import (
    refuse_start_without_static_files,
    refuse_unsafe_start,
    refuse_wrong_keys,
)

refuse_unsafe_start()
refuse_start_without_static_files()
refuse_wrong_keys()

# Everything a request needs is loaded before the first one: Celery, which queues tasks, and the
# URLs with their views. Then every loaded object is frozen: the garbage collector would otherwise
# scan these permanent objects again and again during requests.
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

import config.celery  # noqa: F401
from accounts.api_access import request_records, usage
from core.background import repeat
from core.http.body_limits import lazy_chunked_bodies
from core.http.receivers import drop_idle_receivers
from core.telemetry.metrics import keep_in_files
from core.version import log_start
from idempotency.lost_attempts import TRIED_EVERY_SECONDS, end_lost_attempts
from orders.recovery.purchase_log import LIFE_SECONDS, log_life

drop_idle_receivers()
application = close_while_draining(lazy_chunked_bodies(get_wsgi_application()))
repeat(usage.write_use, seconds=settings.USE_WRITTEN_EVERY_SECONDS, name="usage")
repeat(request_records.write_records, seconds=request_records.WRITTEN_EVERY_SECONDS, name="records")
repeat(end_lost_attempts, seconds=TRIED_EVERY_SECONDS, name="lost attempts")
repeat(log_life, seconds=LIFE_SECONDS, name="purchase log")
Finalize(None, log_life, kwargs={"stops": True}, exitpriority=0)  # when the process stops
keep_in_files(settings.METRICS_DIR)
log_start("web")
_ = get_resolver().url_patterns
gc.collect()
gc.freeze()
