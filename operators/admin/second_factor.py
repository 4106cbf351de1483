"""The pages on which staff set up their second factor, and enter its code after the log-in."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django_otp import login, match_token, user_has_device
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.form_fields import SecondFactorCodeField, posted
from accounts.second_factor import (
    WRONG_CODE,
    confirm_device,
    must_show_factor,
    qr_code,
    typed_key,
    waiting_device,
)
from operators.admin.base import site_page, staff_of


class CodeForm(forms.Form):
    code = SecondFactorCodeField(
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "one-time-code", "autofocus": True, "inputmode": "text"}
        )
    )


def check(request: HttpRequest) -> HttpResponse:
    """Asks for the second factor, once per session."""
    if not must_show_factor(request):
        return HttpResponseRedirect(reverse("admin:index"))
    form = CodeForm(posted(request))
    if form.is_valid():
        device = match_token(request.user, form.cleaned_data["code"])
        if device is not None:
            login(request, device)
            return HttpResponseRedirect(reverse("admin:index"))
        form.add_error("code", WRONG_CODE)
    return site_page(
        request,
        "admin/confirm.html",
        title="Second factor",
        question="To finish logging in, show your second factor.",
        form=form,
        button="Continue",
        back=reverse("admin:login"),
    )


def enrol(request: HttpRequest) -> HttpResponse:
    """Shows a QR code to scan. The first right code turns the second factor on.

    The answer then shows the backup codes, which no other page shows.
    """
    if user_has_device(request.user):
        messages.info(
            request, "You already have a second factor. To replace it, ask an administrator."
        )
        return HttpResponseRedirect(reverse("admin:index"))
    device = waiting_device(staff_of(request))
    form = CodeForm(posted(request))
    form.fields["code"].help_text = "Enter the six digits that your app shows now."
    if form.is_valid():
        if device.verify_token(form.cleaned_data["code"]):
            codes = confirm_device(device)
            login(request, device)
            return site_page(
                request,
                "admin/secret.html",
                title="Backup codes",
                warning="Your second factor is on. If you lose your phone, enter one of these codes"
                " instead. Each works once. They are shown only now, so save them in a safe place.",
                groups=[{"title": "", "parts": {f"Code {n}": c for n, c in enumerate(codes, 1)}}],
                back=reverse("admin:index"),
            )
        form.add_error("code", WRONG_CODE)
    return site_page(
        request,
        "admin/two_factor_enrol.html",
        title="Turn on a second factor",
        question="Scan this QR code with an authenticator app, then enter the code that it shows.",
        qr=qr_code(device),
        key=typed_key(device),
        form=form,
        button="Turn on",
        back=reverse("admin:index"),
    )
