"""The optional second factor at sign-in: a code from an app, or a backup code.

django-otp stores the devices and throttles wrong codes. Each site has its own pages; this module
holds what both share.
"""

from __future__ import annotations

import textwrap
from base64 import b32encode
from collections.abc import Callable
from typing import ClassVar

import segno
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django_otp import devices_for_user, user_has_device
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

BACKUP_CODES = 10
WRONG_CODE = "This code is wrong. Enter the current one. After several wrong codes, wait a moment."


class SecondFactorMiddleware:
    """Redirects users who must still show their second factor to the page that asks for it.

    Each site subclasses this and names its views.
    """

    prefix: ClassVar[str]  # of the site's paths
    page: ClassVar[str]  # the view that asks for the second factor
    open_views: ClassVar[frozenset[str]]  # views that do not require it

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        if not request.path_info.startswith(self.prefix):  # path_info has no mount prefix
            return None
        name = request.resolver_match and request.resolver_match.view_name
        if name == self.page or name in self.open_views or not must_show_factor(request):
            return None
        return HttpResponseRedirect(reverse(self.page))


def must_show_factor(request: HttpRequest) -> bool:
    """Whether the user has a second factor that this session has not shown."""
    user = request.user
    return user.is_authenticated and not is_verified(request) and user_has_device(user)


def is_verified(request: HttpRequest) -> bool:
    """Whether this session has shown a second factor."""
    return bool(request.user.is_verified())  # type: ignore[union-attr]  # added by OTPMiddleware


def forget_second_factors(*, user: User) -> int:
    """Deletes the user's devices, so that a password is enough again. Returns how many."""
    devices = list(devices_for_user(user, confirmed=None))
    for device in devices:
        device.delete()
    return len(devices)


def waiting_device(user: User) -> TOTPDevice:
    """The device that waits for its first code. A reloaded page gets the same device."""
    waiting = TOTPDevice.objects.filter(user=user, confirmed=False).order_by("pk")
    return waiting.first() or TOTPDevice.objects.create(user=user, confirmed=False, name="app")


def qr_code(device: TOTPDevice) -> str:
    """The QR code that an app scans, as a data URI."""
    uri: str = segno.make(device.config_url).svg_data_uri(scale=5, border=2, light="#ffffff")
    return uri


def typed_key(device: TOTPDevice) -> str:
    """The key of the QR code for typing, in groups of four characters."""
    return " ".join(textwrap.wrap(b32encode(device.bin_key).decode(), 4))


@transaction.atomic
def confirm_device(device: TOTPDevice) -> list[str]:
    """Turns the second factor on. Returns the backup codes, which cannot be shown again."""
    device.confirmed = True
    device.save()
    backup = StaticDevice.objects.create(user=device.user, name="backup")
    codes = [StaticToken.random_token() for _ in range(BACKUP_CODES)]
    StaticToken.objects.bulk_create(StaticToken(device=backup, token=code) for code in codes)
    return codes
