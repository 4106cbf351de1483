"""A second factor at log-in, for those who enrol one: a code from an app, or a backup code.

Whoever has enrolled sees nothing of the back office, or of the merchants' page, until this session
has shown a code. Wrong codes are throttled by the devices themselves, longer each time. The pages
here are those of staff; members have theirs in merchants/views/account.py.
"""

from __future__ import annotations

import textwrap
from base64 import b32encode
from collections.abc import Callable

import segno
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django_otp import devices_for_user, login, match_token, user_has_device
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.widgets import UnfoldAdminTextInputWidget

BACKUP_CODES = 10

# Where a second factor is asked for: by which page, and which others open without it.
ASKED_BY = {
    "/admin/": ("two_factor", {"admin:login", "admin:logout"}),
    "/merchant/": (
        "merchants:two_factor",
        {f"merchants:{name}" for name in ("sign_in", "sign_out", "join", "ask_reset", "reset")},
    ),
}


class CodeForm(forms.Form):
    """One code, typed by hand."""

    code = forms.CharField(
        max_length=20,
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "one-time-code", "autofocus": True, "inputmode": "text"}
        ),
        help_text="From your app, or one of your backup codes.",
    )

    def clean_code(self) -> str:
        return str(self.cleaned_data["code"]).replace(" ", "").lower()


class TwoFactorMiddleware:
    """Sends those who have a second factor to show it before any other page for people."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        page = _page_that_asks(request)
        return HttpResponseRedirect(reverse(page)) if page else None


def _page_that_asks(request: HttpRequest) -> str | None:
    name = request.resolver_match and request.resolver_match.view_name
    for prefix, (page, open_pages) in ASKED_BY.items():
        if request.path_info.startswith(prefix):  # wherever the service is mounted
            opens = name == page or name in open_pages
            return None if opens or not must_show_factor(request) else page
    return None


def must_show_factor(request: HttpRequest) -> bool:
    """Whether this person has a second factor that this session has not shown."""
    user = request.user
    return user.is_authenticated and not is_verified(request) and user_has_device(user)


def check(request: HttpRequest) -> HttpResponse:
    """Asks for the second factor of this session."""
    if not must_show_factor(request):
        return HttpResponseRedirect(reverse("admin:index"))
    form = CodeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        device = match_token(request.user, form.cleaned_data["code"])
        if device is not None:
            login(request, device)
            return HttpResponseRedirect(reverse("admin:index"))
        form.add_error("code", "This is not the code. After a few wrong ones, wait a moment.")
    return _page(
        request,
        "admin/confirm.html",
        title="Second factor",
        question="Show your second factor to go on.",
        form=form,
        button="Go on",
        back=reverse("admin:login"),
    )


def enrol(request: HttpRequest) -> HttpResponse:
    """Shows a QR code to scan; the first right code confirms it and gives backup codes, once."""
    if user_has_device(request.user):
        messages.info(request, "You have a second factor. To change it, ask an administrator.")
        return HttpResponseRedirect(reverse("admin:index"))
    device = waiting_device(user_of(request))
    form = CodeForm(request.POST if request.method == "POST" else None)
    form.fields["code"].help_text = "The six digits that your app shows now."
    if form.is_valid():
        if device.verify_token(form.cleaned_data["code"]):
            codes = confirm_device(device)
            login(request, device)
            return _page(
                request,
                "admin/secret.html",
                title="Backup codes",
                warning="Your second factor is on. These codes are shown only now: keep them.",
                groups=[{"title": "", "parts": {f"Code {n}": c for n, c in enumerate(codes, 1)}}],
                back=reverse("admin:index"),
            )
        form.add_error("code", "This is not the code that the app shows now.")
    return _page(
        request,
        "admin/two_factor_enrol.html",
        title="Enrol a second factor",
        question="Scan this with an authenticator app, then type the code it shows.",
        qr=qr_code(device),
        key=typed_key(device),
        form=form,
        button="Turn on",
        back=reverse("admin:index"),
    )


def forget_second_factors(*, user: User) -> int:
    """For somebody who lost theirs: they log in by password again. Returns how many went."""
    devices = list(devices_for_user(user, confirmed=None))
    for device in devices:
        device.delete()
    return len(devices)


def is_verified(request: HttpRequest) -> bool:
    """Whether this session has shown a second factor."""
    return bool(request.user.is_verified())  # type: ignore[union-attr]  # added by OTPMiddleware


def user_of(request: HttpRequest) -> User:
    """Who is signed in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def waiting_device(user: User) -> TOTPDevice:
    """The one that waits for its first code: a page shown again shows the same key."""
    waiting = TOTPDevice.objects.filter(user=user, confirmed=False).order_by("pk")
    return waiting.first() or TOTPDevice.objects.create(user=user, confirmed=False, name="app")


def qr_code(device: TOTPDevice) -> str:
    """What an app scans, as a data URI."""
    uri: str = segno.make(device.config_url).svg_data_uri(scale=5, border=2, light="#ffffff")
    return uri


def typed_key(device: TOTPDevice) -> str:
    """The same for typing, in groups of four."""
    return " ".join(textwrap.wrap(b32encode(device.bin_key).decode(), 4))


@transaction.atomic
def confirm_device(device: TOTPDevice) -> list[str]:
    """Turns the factor on; returns the backup codes, which are shown once."""
    device.confirmed = True
    device.save()
    backup = StaticDevice.objects.create(user=device.user, name="backup")
    codes = [StaticToken.random_token() for _ in range(BACKUP_CODES)]
    StaticToken.objects.bulk_create(StaticToken(device=backup, token=code) for code in codes)
    return codes


def _page(request: HttpRequest, template: str, **context: object) -> TemplateResponse:
    request.current_app = admin.site.name
    return TemplateResponse(
        request,
        template,
        {**admin.site.each_context(request), **context},
        headers={"Cache-Control": "no-store"},
    )
