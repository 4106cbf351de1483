"""Asks signed-in people for their password or second factor again before they see a secret.

A stolen session, or an unlocked computer, then gives no key, code or second factor away
(docs/decisions/0097-asked-again.md).
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts.form_fields import SecondFactorCodeField, posted
from accounts.sign_in.second_factor import WRONG_CODE, check_code, has_factor
from core.texts import lazy

CONFIRMED = "confirmed_until"  # the key in the session
CONFIRMED_SECONDS = 5 * 60
WRONG_PASSWORD = lazy("This password is wrong.")


class ConfirmingForm(forms.Form):
    """A form that also asks for a code of the second factor, or for the password without one.

    It does not ask again for five minutes after a right answer in this session. Nor does it ask
    people who have neither here, because they sign in at their company's provider.
    """

    password_widget: ClassVar[type[forms.PasswordInput]] = forms.PasswordInput
    code_widget: ClassVar[type[forms.TextInput]] = forms.TextInput

    def __init__(self, request: HttpRequest, **options: Any) -> None:
        super().__init__(posted(request), **options)
        self._request = request
        user = request.user
        if not isinstance(user, User) or is_confirmed(request):
            return
        if has_factor(user):
            self.fields["factor_code"] = SecondFactorCodeField(
                label=_("Code of your second factor"),
                widget=self.code_widget(attrs={"autocomplete": "one-time-code"}),
            )
        elif user.has_usable_password():
            self.fields["password"] = forms.CharField(
                label=_("Your password"),
                strip=False,
                widget=self.password_widget(attrs={"autocomplete": "current-password"}),
                help_text=_("We ask for it again because a secret follows."),
            )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:  # a code works once, so it is not used up by another field's mistake
            return cleaned
        if "factor_code" in self.fields:
            self._check_code(cleaned.pop("factor_code"))
        elif "password" in self.fields:
            self._check_password(cleaned.pop("password"))
        return cleaned

    @sensitive_variables("code")
    def _check_code(self, code: str) -> None:
        if check_code(user=self._user, code=code) is None:
            self.add_error("factor_code", WRONG_CODE)
        else:
            note_confirmed(self._request)

    @sensitive_variables("password")
    def _check_password(self, password: str) -> None:
        name = self._user.get_username()
        if authenticate(self._request, username=name, password=password) == self._user:
            note_confirmed(self._request)
        else:  # counted as a failed sign-in, so guessing leads to a lockout
            self.add_error("password", WRONG_PASSWORD)

    @property
    def _user(self) -> User:
        assert isinstance(self._request.user, User)  # noqa: S101  fields exist for users only
        return self._request.user


def note_confirmed(request: HttpRequest) -> None:
    """Marks the session as one whose person has just shown their password or second factor."""
    request.session[CONFIRMED] = time.time() + CONFIRMED_SECONDS


def is_confirmed(request: HttpRequest) -> bool:
    """Whether the person has just shown their password or second factor in this session."""
    left = request.session.get(CONFIRMED, 0) - time.time()
    return bool(0 < left <= CONFIRMED_SECONDS)  # not after the clock was set back
