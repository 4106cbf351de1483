"""WSGI entry point: `granian --interface wsgi config.wsgi:application`."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

import config.celery  # noqa: F401  before the first request, which would wait for it
from accounts.usage import start_writing
from config.checks import refuse_unsafe_start
from config.http.body_limits import buffer_chunked_bodies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = buffer_chunked_bodies(get_wsgi_application())
refuse_unsafe_start()
start_writing()

# Load the URLs before the first request, then freeze every loaded object: the garbage collector
# would otherwise scan these permanent objects again and again during requests.
_ = get_resolver().url_patterns
gc.collect()
gc.freeze()
