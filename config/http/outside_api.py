"""Middleware for browsers, which requests of the API pass by.

A program that buys has no session, no cookies and no forms, and no static file is under /api/. What
the API answers does not depend on any of these; passing them took a tenth of a small request.
Django's checks look for the others by their names, so those stay as they are.
"""

from typing import Any

from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest
from django_otp import middleware as otp
from whitenoise import middleware as whitenoise

from config.api.envelope import API_PREFIX


class OutsideApi:
    """Goes before a middleware class, whose work is left out for requests of the API."""

    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        if request.path_info.startswith(API_PREFIX):
            return self.get_response(request)
        return super().__call__(request)  # type: ignore[misc]


class WhiteNoiseMiddleware(OutsideApi, whitenoise.WhiteNoiseMiddleware):
    """Static files."""


class SessionMiddleware(OutsideApi, sessions.SessionMiddleware):
    """`request.session`"""


class AuthenticationMiddleware(OutsideApi, auth.AuthenticationMiddleware):
    """`request.user`; the API sets its own, the client of the key."""


class OTPMiddleware(OutsideApi, otp.OTPMiddleware):
    """`request.user.is_verified()`"""


class MessageMiddleware(OutsideApi, messages.MessageMiddleware):
    """What the next page says about the last action."""
