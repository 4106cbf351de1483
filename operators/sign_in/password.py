"""The sign-in of staff with a password, and its change."""

from functools import partial

from django.contrib import admin
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse_lazy
from unfold.forms import AdminOwnPasswordChangeForm, AuthenticationForm

from accounts.sign_in.password_forms import LimitedPasswordChangeForm
from core.texts import lazy


class StaffSignInForm(AuthenticationForm):
    """The theme's form. Every failure has the same message, so it reveals no name."""

    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": lazy(
            "This name and password do not match those of a member of staff. Check both, or ask an"
            " administrator to set a new password."
        ),
    }


class StaffPasswordChangeForm(LimitedPasswordChangeForm, AdminOwnPasswordChangeForm):
    """The theme's form, with our limit of guesses."""


def change_password(request: HttpRequest) -> HttpResponseBase:
    """Replaces the admin's own page, which checks any number of old passwords."""
    request.current_app = admin.site.name
    view = PasswordChangeView.as_view(
        form_class=partial(StaffPasswordChangeForm, request),
        template_name="registration/password_change_form.html",
        success_url=reverse_lazy("admin:password_change_done"),
        extra_context=admin.site.each_context(request),
    )
    return view(request)
