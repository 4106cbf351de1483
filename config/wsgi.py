"""WSGI entry point: `granian --interface wsgi config.wsgi:application`."""

import os

from django.core.wsgi import get_wsgi_application

from config.bodies import measured_bodies
from config.checks import refuse_unsafe_start

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = measured_bodies(get_wsgi_application())
refuse_unsafe_start()
