"""WSGI entry point: `granian --interface wsgi config.wsgi:application`."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

import config.celery  # noqa: F401  before the first request, which would wait for it
from accounts.usage import write_now_and_then
from config.checks import refuse_unsafe_start
from config.http.body_limits import measured_bodies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = measured_bodies(get_wsgi_application())
refuse_unsafe_start()
write_now_and_then()

# What is loaded stays as long as the process: load it before the first request, and let the garbage
# collector, which would walk all of it again and again in the middle of one, leave it alone.
_ = get_resolver().url_patterns
gc.collect()
gc.freeze()
