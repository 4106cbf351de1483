"""Middleware that only browsers need. API requests skip it.

API clients have no session, cookies or forms, and no static file is under /api/, so API responses
do not depend on these classes. Skipping them saves a tenth of the time of a small request. Django's
own CommonMiddleware, CsrfViewMiddleware and SecurityMiddleware stay: system checks look for their
names.
"""

from typing import Any

from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest
from django.middleware import gzip
from django_otp import middleware as otp
from whitenoise import middleware as whitenoise

from config.api.paths import API_PREFIX


class OutsideApi:
    """A mixin in front of a middleware class, which API requests then skip."""

    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        if request.path_info.startswith(API_PREFIX):
            return self.get_response(request)
        return super().__call__(request)  # type: ignore[misc]


class WhiteNoiseMiddleware(OutsideApi, whitenoise.WhiteNoiseMiddleware):
    """Serves static files."""


class GZipMiddleware(OutsideApi, gzip.GZipMiddleware):
    """Compresses pages. Against BREACH, Django adds a random number of bytes, and masks the CSRF
    token differently in each response."""


class SessionMiddleware(OutsideApi, sessions.SessionMiddleware):
    """Sets `request.session`."""


class AuthenticationMiddleware(OutsideApi, auth.AuthenticationMiddleware):
    """Sets `request.user`. The API sets the client of the key instead."""


class OTPMiddleware(OutsideApi, otp.OTPMiddleware):
    """Adds `request.user.is_verified()`."""


class MessageMiddleware(OutsideApi, messages.MessageMiddleware):
    """Stores messages for the next page."""
