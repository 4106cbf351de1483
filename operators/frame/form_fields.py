"""Form fields that report bad values in the form, before the database refuses them."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
)

from accounts.form_fields import MoneyField, WholeNumberField
from catalogue.models import MAX_QUANTITY, PRICE_DIGITS
from core.database.columns import MONEY_DECIMALS
from core.texts import lazy
from operators.frame.base import amount

LARGE_CHANGE = Decimal("0.3")  # of the price before


class PriceField(MoneyField):
    """The price of one unit, or None: above zero, below PRICE_LIMIT, at most four decimals."""

    widget = UnfoldAdminDecimalFieldWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=Decimal(10) ** -MONEY_DECIMALS,
            max_digits=PRICE_DIGITS,
            decimal_places=MONEY_DECIMALS,
            required=False,
            label=lazy("Price of one unit"),
            help_text=lazy("Leave it empty if it is not for sale."),
            **kwargs,
        )


class PriceInput(UnfoldAdminDecimalFieldWidget):
    """The field of a price. Below it, once a form has asked, a box that confirms a large change."""

    to_confirm: Decimal | None = None

    def render(self, name: str, value: Any, *args: Any, **kwargs: Any) -> SafeString:
        field: SafeString = super().render(name, value, *args, **kwargs)
        if self.to_confirm is None:
            return field
        return format_html(
            '{}<label class="flex gap-2 mt-2"><input type="checkbox" name="{}" value="{}">'
            "{}</label>",
            field,
            _box(name),
            self.to_confirm,
            _("Yes, the new price is %(price)s") % {"price": amount(self.to_confirm)},
        )


class PriceForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form with a price. A change by more than 30 % comes back once, with a box to tick.

    The box confirms the price that it names, and no other. The form sends the price that it showed,
    too: a price that nobody typed is not saved, and one that was typed in place of an old price
    comes back. A new price withdraws the next price.
    """

    price = PriceField(widget=PriceInput, show_hidden_initial=True)

    def clean_price(self) -> Decimal | None:
        before: Decimal | None = self.initial.get("price")
        price: Decimal | None = self.cleaned_data["price"]
        if "price" not in self.changed_data:
            return before
        if self.instance.pk:
            self._replace_price()
        if not (before and price) or abs(price - before) <= before * LARGE_CHANGE:
            return price
        if self.data.get(_box(self.add_prefix("price"))) != str(price):
            self.fields["price"].widget.to_confirm = price
            raise forms.ValidationError(
                _(
                    "This changes the price from %(before)s to %(price)s. Tick the box to confirm"
                    " it."
                )
                % {"before": amount(before), "price": amount(price)}
            )
        return price

    def _replace_price(self) -> None:
        """Locks the row, and withdraws its next price. Raises ValidationError if its price is not
        the one that the form showed."""
        rows = type(self.instance)._default_manager.select_for_update(of=("self",), no_key=True)
        row = rows.get(pk=self.instance.pk)
        check_price_shown(self, "price", row.price)
        if row.next_price_from is not None:
            planned = {name: getattr(row, name) for name in ("next_price", "next_price_from")}
            self.initial.update(planned)
            self.cleaned_data |= dict.fromkeys(planned)
            self.changed_data.extend(planned)
            for name in planned:
                setattr(self.instance, name, None)


def check_price_shown(form: forms.BaseForm, name: str, price: Decimal | None) -> None:
    """Raises ValidationError if `price`, which holds now, is not the one that the form showed.

    The form keeps what was typed, and shows the new price from then on.
    """
    hidden = form.add_initial_prefix(name)
    with suppress(forms.ValidationError):
        if PriceField().clean(form.data.get(hidden)) == price:
            return
    data: Any = copy(form.data)  # a copy can be changed
    data[hidden] = "" if price is None else str(price)
    form.data = data
    if price is None:
        problem = _(
            "The price has changed meanwhile: there is none now. Nothing was saved. Save again to"
            " replace it."
        )
    else:
        problem = _(
            "The price has changed meanwhile: it is %(price)s now. Nothing was saved. Save again to"
            " replace it."
        ) % {"price": amount(price)}
    raise forms.ValidationError(problem)


def _box(name: str) -> str:
    return f"{name}-confirmed"


class QuantityStepField(WholeNumberField):
    """The number of codes in one unit, at most MAX_QUANTITY: a purchase takes no more codes."""

    widget = UnfoldAdminIntegerFieldWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=1,
            max_value=MAX_QUANTITY,
            label=lazy("Quantity step (codes in one unit)"),
            help_text=lazy("Usually 1."),
            **kwargs,
        )
