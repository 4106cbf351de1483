"""The pages on which staff set up their second factor, and enter its code after the sign-in."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django_otp import login
from django_otp_webauthn.models import WebAuthnCredential
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.form_fields import SecondFactorCodeField, posted
from accounts.sign_in.next_page import next_page
from accounts.sign_in.second_factor import (
    WRONG_CODE,
    confirm_factor,
    has_factor,
    may_act,
    must_show_factor,
    needs_factor,
    qr_code,
    show_factor,
    typed_key,
    waiting_factor,
)
from operators.frame.base import site_page, staff_of

# A page without the menu and the search, for people who may not open anything yet.
LOCKED = {"locked": True, "is_nav_sidebar_enabled": False}


class CodeForm(forms.Form):
    code = SecondFactorCodeField(
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "one-time-code", "autofocus": True, "inputmode": "text"}
        )
    )


def check(request: HttpRequest) -> HttpResponse:
    """Asks for the second factor, once per session."""
    address = next_page(request, "admin:index")
    if not must_show_factor(request):
        return HttpResponseRedirect(address)
    form = CodeForm(posted(request))
    if form.is_valid():
        if show_factor(request, form.cleaned_data["code"]):
            return HttpResponseRedirect(address)
        form.add_error("code", WRONG_CODE)
    return site_page(
        request,
        "admin/two_factor.html",
        title=_("Second factor"),
        question=_("To finish signing in, enter a code."),
        facts=[
            _(
                "If you lost your phone and have no backup code, ask an administrator to remove"
                " your second factor, under Staff. Then you can set up a new one."
            )
        ],
        form=form,
        button=_("Continue"),
        **LOCKED,
        next=address,
        has_passkey=WebAuthnCredential.objects.filter(user=staff_of(request)).exists(),
    )


def enrol(request: HttpRequest) -> HttpResponse:
    """Shows a QR code to scan. The first right code turns the second factor on.

    The answer then shows the backup codes, which no other page shows.
    """
    user = staff_of(request)
    if has_factor(user):
        messages.info(
            request, _("You already have a second factor. To replace it, ask an administrator.")
        )
        return HttpResponseRedirect(reverse("admin:index"))
    factor = waiting_factor(user)
    form = CodeForm(posted(request))
    form.fields["code"].help_text = _("Enter the six digits that your app shows now.")
    if form.is_valid():
        codes = confirm_factor(user=user, code=form.cleaned_data["code"])
        if codes is not None:
            login(request, factor)
            return _show_backup_codes(request, codes)
        form.add_error("code", WRONG_CODE)
    return site_page(
        request,
        "admin/two_factor_enrol.html",
        title=_("Set up your second factor"),
        required=needs_factor(user),
        acts=may_act(user),
        **LOCKED if needs_factor(user) else {},
        qr=qr_code(factor),
        key=typed_key(factor),
        form=form,
        button=_("Turn on the second factor"),
        back=reverse("admin:index"),
    )


def _show_backup_codes(request: HttpRequest, codes: list[str]) -> HttpResponse:
    return site_page(
        request,
        "admin/backup_codes.html",
        **LOCKED,
        title=_("Backup codes"),
        codes=codes,
        next=next_page(request, "admin:index"),
    )
