"""Forms that several pages of the merchant site use."""

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.utils.translation import gettext as _

from accounts.api_access.keys import MAX_OVERLAP_HOURS
from accounts.form_fields import (
    FormIdField,
    NetworksField,
    PositiveMoneyField,
    SecondFactorCodeField,
    WholeNumberField,
)
from accounts.sign_in.confirmation import ConfirmingForm
from core.api.serializer_fields import MAX_ID
from core.database.columns import NAME_LENGTH
from core.texts import lazy
from merchants.models import Membership, Role
from merchants.people.invitations import MAX_EMAIL_LENGTH
from wallets.transfers import bank_decimals


class EmailField(forms.EmailField):
    """An email address, returned in lower case."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("label", lazy("Email"))
        options.setdefault("max_length", MAX_EMAIL_LENGTH)
        super().__init__(
            widget=forms.EmailInput(attrs={"autocomplete": "username", "spellcheck": "false"}),
            **options,
        )

    def clean(self, value: Any) -> str:
        return str(super().clean(value)).lower()


class SignInForm(AuthenticationForm):
    """Signs in members only. Every failure has the same message, so it reveals no address."""

    username = EmailField()
    username.widget.attrs["autofocus"] = True
    error_messages = {
        **AuthenticationForm.error_messages,
        "invalid_login": lazy(
            "This email and password do not match. Check both, or reset your password."
        ),
    }

    def confirm_login_allowed(self, user: Any) -> None:
        super().confirm_login_allowed(user)
        if user.is_staff or not Membership.objects.filter(user=user).exists():
            raise self.get_invalid_login_error()


class AskResetForm(forms.Form):
    email = EmailField()


class InviteForm(forms.Form):
    email = EmailField()
    role = forms.ChoiceField(
        label=lazy("Role"),
        choices=Role.choices,
        initial=Role.DEVELOPER,
        help_text=lazy(
            "Viewers read everything except codes and keys, open and answer cases, and set up their"
            " own email reports. Developers also manage API access and references. Owners also"
            " manage people, transfers, spending limits and the balance alert."
        ),
    )


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=lazy("Role"), choices=Role.choices)


class CodeForm(forms.Form):
    code = SecondFactorCodeField(
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "autofocus": True})
    )


class NameForm(forms.Form):
    name = forms.CharField(label=lazy("Name"), max_length=NAME_LENGTH)


class TurnOnForm(ConfirmingForm):
    """The code that a new second factor shows, and the password."""

    code = SecondFactorCodeField(
        help_text=lazy("Enter the six digits that your app shows now."),
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code"}),
    )


class IssueForm(ConfirmingForm):
    form = FormIdField()


class RotateForm(IssueForm):
    overlap_hours = WholeNumberField(
        label=lazy("Overlap in hours"),
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        initial=24,
        help_text=lazy(
            "How long the old keys keep working beside the new one. 0 ends them at once."
        ),
    )


class ShelfForm(forms.Form):
    """The shelf to set a reference on, and the id of a shelf that may lose the reference to it."""

    product = forms.IntegerField(min_value=1, max_value=MAX_ID)
    variation = forms.IntegerField(min_value=1, max_value=MAX_ID, required=False)
    move_from = forms.IntegerField(min_value=1, max_value=MAX_ID, required=False)


class ReferenceFileForm(forms.Form):
    file = forms.FileField(
        label=lazy("CSV or XLSX file"),
        help_text=lazy(
            "With the headings product_id, variation_id and merchant_reference in the first line."
            " The other columns of an export are not read. An empty merchant_reference removes the"
            " reference of that product or variation."
        ),
    )


class AllowlistField(NetworksField):
    widget = forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "mono"})


class LevelField(PositiveMoneyField):
    """An amount to compare with, or none. It has the decimals that pages show, though the ledger
    keeps four: a limit of 0.001 is a slip."""

    def __init__(self, *, currency: str, **options: Any) -> None:
        super().__init__(required=False, **options)
        self.decimals = max(2, bank_decimals(currency))

    def clean(self, value: Any) -> Decimal | None:
        amount: Decimal | None = super().clean(value)
        if amount is not None and amount != round(amount, self.decimals):
            raise forms.ValidationError(
                _("Enter at most %(decimals)s decimals.") % {"decimals": self.decimals}
            )
        return amount


class SpendingLimitForm(forms.Form):
    """The spending limits of a client. An empty one is no limit."""

    def __init__(self, *arguments: Any, currency: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        labels = {
            "per_day": _("In a day, in %(currency)s"),
            "per_month": _("In a month, in %(currency)s"),
        }
        for name, label in labels.items():
            self.fields[name] = LevelField(
                currency=currency,
                label=label % {"currency": currency},
                help_text=_("Leave it empty for no limit."),
            )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        day, month = data.get("per_day"), data.get("per_month")
        if day is not None and month is not None and month < day:
            self.add_error("per_month", _("A month must have at least the limit of a day."))
        return data


class AllowlistForm(forms.Form):
    networks = AllowlistField(label=lazy("Addresses and networks that may call"))
    # The full text of the warning that the member confirmed. A different warning is shown first.
    sure = forms.CharField(required=False, widget=forms.HiddenInput)
