"""Passkeys of staff: a second factor that does not work on a fake page.

django-otp-webauthn speaks WebAuthn with the browser. A passkey is added to the app and its backup
codes, so nobody is locked out by losing one.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User, update_last_login
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.views.i18n import JavaScriptCatalog
from django_otp_webauthn import exceptions, views
from django_otp_webauthn.helpers import WebAuthnHelper
from django_otp_webauthn.models import WebAuthnCredential

from accounts.sign_in.confirmation import is_confirmed
from accounts.sign_in.second_factor import has_factor, is_verified
from audit.models import AuditAction
from audit.people import record_on_user
from operators.frame.base import StaffConfirmingForm, site_page, staff_of


class Helper(WebAuthnHelper):
    """OTP_WEBAUTHN_HELPER_CLASS: stores each new passkey together with its audit entry."""

    @transaction.atomic
    def register_complete(self, user: User, state: Any, data: Any) -> Any:
        passkey = super().register_complete(user=user, state=state, data=data)
        record_on_user(user, AuditAction.PASSKEY_ADDED, actor=user)
        return passkey


class _Register:
    """Only staff who have just shown their second factor again add a passkey."""

    request: HttpRequest

    def user_is_mfa_enrolled(self, user: User) -> bool:
        """Whether the library must refuse because this session has not shown a second factor."""
        return not is_verified(self.request)

    def check_can_register(self) -> None:
        user = staff_of(self.request)
        verified = has_factor(user) and is_verified(self.request)
        if not (user.is_staff and verified and is_confirmed(self.request)):
            raise exceptions.NotVerified


class BeginRegistration(_Register, views.BeginCredentialRegistrationView):
    """Sends the browser what it needs to make a passkey."""


class CompleteRegistration(_Register, views.CompleteCredentialRegistrationView):
    """Stores the passkey that the browser has made."""


class BeginCheck(views.BeginCredentialAuthenticationView):
    """Sends the browser a challenge for one of the user's passkeys."""


class CompleteCheck(views.CompleteCredentialAuthenticationView):
    """Checks the browser's answer, and marks the session as verified."""

    def complete_auth(self, device: Any) -> Any:
        update_last_login(User, device.user)
        return super().complete_auth(device)

    def handle_exception(self, exc: Exception) -> Any:
        if isinstance(exc, exceptions.OTPWebAuthnApiError) and self.request.user.is_authenticated:
            user = staff_of(self.request)
            record_on_user(user, AuditAction.SECOND_FACTOR_REFUSED, actor=user, note="Passkey")
        return super().handle_exception(exc)


def list_passkeys(request: HttpRequest) -> HttpResponse:
    """The user's passkeys, with a button to add one after a code of the second factor."""
    user = staff_of(request)
    form = StaffConfirmingForm(request)
    if form.is_valid():
        return HttpResponseRedirect(reverse("passkeys"))
    return site_page(
        request,
        "admin/passkeys.html",
        title=_("Passkeys"),
        passkeys=WebAuthnCredential.objects.filter(user=user).order_by("pk"),
        can_add=has_factor(user) and is_verified(request),
        form=form,
    )


@transaction.atomic
def remove(request: HttpRequest, passkey: int) -> HttpResponse:
    """Asks, and then removes one of the user's own passkeys."""
    user, back = staff_of(request), reverse("passkeys")
    passkeys = WebAuthnCredential.objects.filter(user=user, pk=passkey)
    form = StaffConfirmingForm(request)
    if form.is_valid():
        if passkeys.delete()[0]:
            record_on_user(user, AuditAction.PASSKEY_REMOVED, actor=user)
            messages.success(request, _("The passkey was removed."))
        return HttpResponseRedirect(back)
    return site_page(
        request,
        "admin/confirm.html",
        title=_("Remove a passkey"),
        question=_("Remove this passkey? You can go on signing in with your app or a backup code."),
        facts=[_("Then delete it on the device, too.")],
        form=form if form.fields else None,
        button=_("Remove"),
        danger=True,
        back=back,
    )


def _staff_only(view: Any) -> Any:
    """The view for signed-in staff; others are led to the sign-in page."""

    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        answer: HttpResponseBase = admin.site.admin_view(view)(request, *args, **kwargs)
        return answer

    return guarded


# The namespace that the library's scripts name.
app_name = "otp_webauthn"
urlpatterns = [
    path(
        "add/begin/", _staff_only(BeginRegistration.as_view()), name="credential-registration-begin"
    ),
    path(
        "add/", _staff_only(CompleteRegistration.as_view()), name="credential-registration-complete"
    ),
    path("show/begin/", _staff_only(BeginCheck.as_view()), name="credential-authentication-begin"),
    path("show/", _staff_only(CompleteCheck.as_view()), name="credential-authentication-complete"),
    path(
        "words/",
        JavaScriptCatalog.as_view(packages=["django_otp_webauthn"]),
        name="js-i18n-catalog",
    ),
]
