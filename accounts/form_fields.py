"""Form fields and helpers that the back office and the merchant site share."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar
from uuid import uuid4

from django import forms
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

from accounts.addresses import clean_networks
from accounts.companies import LABELS, country_choices
from accounts.models import Company
from core.database.columns import MONEY_DECIMALS, MONEY_DIGITS
from core.inputs import InputProblem
from core.numbers import WRONG_NUMBERS, clear_text, read_typed_number
from core.texts import lazy, translate_stored, with_separators

ADDRESS_LINES = 8  # what the letterhead of a statement has room for


def posted(request: HttpRequest) -> QueryDict | None:
    """The data of a POST for a form, even if empty; None for other methods, so the form stays
    unbound."""
    return request.POST if request.method == "POST" else None


class SecondFactorCodeField(forms.CharField):
    """A code of a second factor. Cleans to lower case without spaces."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("label", lazy("Code"))
        kwargs.setdefault(
            "help_text", lazy("Enter the code that your app shows, or one of your backup codes.")
        )
        super().__init__(max_length=20, **kwargs)

    def clean(self, value: Any) -> str:
        return str(super().clean(value)).replace(" ", "").lower()


class NewPasswordForm(SetPasswordForm):  # type: ignore[type-arg]
    """The form of a new password. It says what is wrong with one below the first field."""

    def validate_password_for_user(self, user: User, password_field_name: str = "") -> None:
        super().validate_password_for_user(user, password_field_name="new_password1")  # noqa: S106


class FormIdField(forms.UUIDField):
    """Identifies one form as it was shown, so that sending it twice has one effect.

    Not required: a page that was open during a deployment may lack it.
    """

    def __init__(self) -> None:
        super().__init__(required=False, widget=forms.HiddenInput, initial=uuid4)


class CountryField(forms.ChoiceField):
    """The code of a country, chosen by its name."""

    def __init__(self, *, max_length: int | None = None, **kwargs: Any) -> None:
        super().__init__(choices=country_choices, **kwargs)


class CompanyForm(forms.ModelForm):  # type: ignore[type-arg]
    """The data of a company. Browsers end lines with CR LF; an address is stored with LF."""

    class Meta:
        model = Company
        fields = [*LABELS]
        labels = LABELS
        help_texts = {
            "address": lazy("Street, postcode and town, each on a line of its own."),
            "tax_number": lazy("The VAT number, or another one that your tax office asks for."),
        }
        field_classes: ClassVar[dict[str, Any]] = {"country": CountryField}
        widgets: ClassVar[dict[str, Any]] = {
            "country": forms.Select,
            "address": forms.Textarea(attrs={"rows": 4}),
        }

    def clean_address(self) -> str:
        lines = self.cleaned_data["address"].splitlines()
        if len(lines) > ADDRESS_LINES:
            raise forms.ValidationError(
                _("Write at most %(most)s lines.") % {"most": ADDRESS_LINES}
            )
        return "\n".join(lines)


def _read(value: Any) -> Decimal:
    try:
        return read_typed_number(str(value))
    except InputProblem as problem:
        sentence = translate_stored(str(problem), *WRONG_NUMBERS)
        raise forms.ValidationError(f"{sentence}.", code="invalid") from None


class NumberField(forms.DecimalField):
    """A number that a person types with a point or a comma (core/numbers.py). It is shown with the
    mark of the reader's language: as text, because a field for numbers of a browser shows no
    comma, and leaves out a typed one."""

    widget = forms.TextInput()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not self.widget.is_hidden:
            self.widget.input_type = "text"

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        return {"inputmode": "decimal", "autocomplete": "off"}

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values:
            return None
        return value if isinstance(value, Decimal) else _read(value)

    def prepare_value(self, value: Any) -> Any:
        return self.shown(clear_text(value)) if isinstance(value, Decimal) else value

    def shown(self, number: str) -> str:
        """The number as the field shows it."""
        return with_separators(number)


class MoneyField(NumberField):
    """An amount of money, with at most four decimals."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"max_digits": MONEY_DIGITS, "decimal_places": MONEY_DECIMALS, **kwargs})

    def shown(self, number: str) -> str:
        whole, _, decimals = number.partition(".")
        return super().shown(f"{whole}.{decimals:0<2}")


class PositiveMoneyField(MoneyField):
    """An amount above zero. The field shows how to write one before a reader gets it wrong."""

    widget = forms.TextInput(attrs={"placeholder": lazy("1500.50")})
    default_error_messages = {"min_value": lazy("Enter an amount above 0.")}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=Decimal(10) ** -MONEY_DECIMALS, **kwargs)


class CurrencyField(forms.CharField):
    """The code of a currency that a person types: `usd` is USD. Other letters stay as they are:
    the capitals of some are two letters, or one of another word."""

    def to_python(self, value: Any) -> str:
        text = str(super().to_python(value))
        return text.upper() if text.isascii() else text


class WholeNumberField(forms.IntegerField):
    """A whole number that a person types. `1.000` is neither 1 nor 1000."""

    def to_python(self, value: Any) -> int | None:
        if value in self.empty_values:
            return None
        number = _read(value)
        if number != int(number):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return int(number)


class NetworksField(forms.CharField):
    """Addresses and networks, one per line. Cleans to a list of normalized networks."""

    widget = forms.Textarea(attrs={"rows": 4})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            required=False,
            help_text=lazy(
                "One address or network per line, such as 203.0.113.7 or 2001:db8::/32."
                " Empty: calls are accepted from anywhere."
            ),
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        lines = [line.strip(" \t,;") for line in super().clean(value).splitlines()]
        return clean_networks(line for line in lines if line)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)
