"""A second factor at log-in, for staff who enrol one: a code from an app, or a backup code.

Whoever has enrolled sees nothing of the back office until this session has shown a code. Wrong
codes are throttled by the devices themselves, longer each time.
"""

from __future__ import annotations

import textwrap
from base64 import b32encode
from collections.abc import Callable

import segno
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django_otp import devices_for_user, login, match_token, user_has_device
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.widgets import UnfoldAdminTextInputWidget

BACKUP_CODES = 10


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
    """Sends those who have a second factor to show it before any other page of the back office."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        return HttpResponseRedirect(reverse("two_factor")) if _must_ask(request) else None


def _must_ask(request: HttpRequest) -> bool:
    if not request.path_info.startswith("/admin/"):  # wherever the service is mounted
        return False
    name = request.resolver_match and request.resolver_match.view_name
    user = request.user
    return (
        name not in ("two_factor", "admin:login", "admin:logout")
        and user.is_authenticated
        and not _is_verified(request)
        and user_has_device(user)
    )


def check(request: HttpRequest) -> HttpResponse:
    """Asks for the second factor of this session."""
    if _is_verified(request) or not user_has_device(request.user):
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
    device = _new_device(request)
    form = CodeForm(request.POST if request.method == "POST" else None)
    form.fields["code"].help_text = "The six digits that your app shows now."
    if form.is_valid():
        if device.verify_token(form.cleaned_data["code"]):
            codes = _confirm(device)
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
        qr=segno.make(device.config_url).svg_data_uri(scale=5, border=2, light="#ffffff"),
        key=" ".join(textwrap.wrap(b32encode(device.bin_key).decode(), 4)),
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


def _is_verified(request: HttpRequest) -> bool:
    return bool(request.user.is_verified())  # type: ignore[union-attr]  # added by OTPMiddleware


def _new_device(request: HttpRequest) -> TOTPDevice:
    """The one that waits for its first code: a page shown again shows the same key."""
    waiting = TOTPDevice.objects.filter(user=request.user, confirmed=False).order_by("pk")
    return waiting.first() or TOTPDevice.objects.create(
        user=request.user, confirmed=False, name="app"
    )


@transaction.atomic
def _confirm(device: TOTPDevice) -> list[str]:
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
