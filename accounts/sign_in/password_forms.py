"""The form in which signed-in people choose a new password."""

from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.forms import PasswordChangeForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables


class LimitedPasswordChangeForm(PasswordChangeForm):
    """Counts wrong old passwords as failed sign-ins, so guessing them leads to a lockout."""

    def __init__(self, request: HttpRequest, *arguments: Any, **options: Any) -> None:
        self._request = request
        super().__init__(*arguments, **options)

    @sensitive_variables("old")
    def clean_old_password(self) -> str:
        old: str = self.cleaned_data["old_password"]
        name = self.user.get_username()
        if authenticate(self._request, username=name, password=old) != self.user:
            raise ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return old
