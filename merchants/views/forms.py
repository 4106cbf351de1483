"""What people type on the merchants' page."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from accounts.form_fields import NetworksField
from config.api.fields import MAX_ID
from config.database.columns import NAME_LENGTH
from merchants.api_access.clients import MAX_OVERLAP_HOURS
from merchants.models import Membership, Role
from merchants.people.invitations import MAX_EMAIL_LENGTH


class EmailField(forms.EmailField):
    """An address, in small letters."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("label", "Email")
        options.setdefault("max_length", MAX_EMAIL_LENGTH)
        super().__init__(
            widget=forms.EmailInput(attrs={"autocomplete": "username", "spellcheck": "false"}),
            **options,
        )

    def clean(self, value: Any) -> str:
        return str(super().clean(value)).lower()


class SignInForm(AuthenticationForm):
    """Whatever is wrong (no such person, the password, no member), the answer is the same."""

    username = EmailField()

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        if user.is_staff or not Membership.objects.filter(user=user).exists():
            raise self.get_invalid_login_error()


class ChangePasswordForm(PasswordChangeForm):
    """To show the old password is to sign in: whoever guesses it is locked out as there."""

    def __init__(self, request: HttpRequest, *arguments: Any) -> None:
        self._request = request
        super().__init__(*arguments)

    @sensitive_variables("old")
    def clean_old_password(self) -> str:
        old: str = self.cleaned_data["old_password"]
        name = self.user.get_username()
        if authenticate(self._request, username=name, password=old) != self.user:
            raise ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return old


class AskResetForm(forms.Form):
    email = EmailField()


class InviteForm(forms.Form):
    email = EmailField()
    role = forms.ChoiceField(
        choices=Role.choices,
        initial=Role.DEVELOPER,
        help_text="Owners do everything, and invite people. Developers manage API access and"
        " references. Viewers read.",
    )


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices)


class CodeForm(forms.Form):
    """A code of a second factor, typed by hand."""

    code = forms.CharField(
        max_length=20,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "autofocus": True}),
        help_text="From your app, or one of your backup codes.",
    )

    def clean_code(self) -> str:
        return str(self.cleaned_data["code"]).replace(" ", "").lower()


class NameForm(forms.Form):
    name = forms.CharField(max_length=NAME_LENGTH)


class RotateForm(forms.Form):
    overlap_hours = forms.IntegerField(
        label="Overlap in hours",
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        initial=24,
        help_text="For so long the present keys work next to the new one; 0 ends them at once.",
    )


class ShelfForm(forms.Form):
    """Which shelf is named, and which other one may lose the name to it."""

    product = forms.IntegerField(min_value=1, max_value=MAX_ID)
    variation = forms.IntegerField(min_value=1, max_value=MAX_ID, required=False)
    move_from = forms.IntegerField(min_value=1, max_value=MAX_ID, required=False)


class ReferenceFileForm(forms.Form):
    file = forms.FileField(
        label="CSV file",
        help_text="UTF-8, with a line of headings: product_id, variation_id, merchant_reference."
        " Other columns are ignored; an empty reference takes the name off.",
    )


class AllowlistField(NetworksField):
    widget = forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "mono"})


class AllowlistForm(forms.Form):
    networks = AllowlistField(label="Addresses and networks that may call")
    # The warning that the person has read, word for word: another one is shown first.
    sure = forms.CharField(required=False, widget=forms.HiddenInput)
