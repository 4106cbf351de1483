"""Form fields that report bad values in the form, before the database refuses them."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from decimal import Decimal
from typing import Any, cast

from django import forms
from django.db import connection
from django.utils import timezone
from django.utils.functional import lazy as promise
from django.utils.text import format_lazy
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


def in_zone(text: str) -> str:
    """A help text with `{zone}`: the time zone in which the reader enters a time."""
    return cast("str", format_lazy(text, zone=promise(timezone.get_current_timezone_name, str)()))


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


class PriceForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form with a price. A change by more than 30 % comes back once: the page asks at its top,
    with a box to tick (operators/catalogue/price_changes.py).

    The box confirms the price that it names, and no other. The form sends the price that it showed,
    too: a price that nobody typed is not saved, and one that was typed in place of an old price
    comes back. A new price withdraws the next price.
    """

    price = PriceField(show_hidden_initial=True)
    to_confirm: Decimal | None = None  # the price about which the page asks

    def clean_price(self) -> Decimal | None:
        before: Decimal | None = self.initial.get("price")
        price: Decimal | None = self.cleaned_data["price"]
        if "price" not in self.changed_data:
            return before
        if self.instance.pk:
            self._replace_price()
        if not (before and price) or abs(price - before) <= before * LARGE_CHANGE:
            return price
        if self.data.get(self.box) != str(price):
            self.to_confirm = price
            raise forms.ValidationError(
                _("This changes the price from %(before)s to %(price)s. Confirm it above.")
                % {"before": amount(before), "price": amount(price)}
            )
        return price

    @property
    def box(self) -> str:
        """The name of the box that confirms the price."""
        return f"{self.add_prefix('price')}-confirmed"

    def _replace_price(self) -> None:
        """Locks the row, and withdraws its next price. Raises ValidationError if its price is not
        the one that the form showed."""
        rows = type(self.instance)._default_manager.all()
        if connection.in_atomic_block:  # not while the page opens with a request of a colleague
            rows = rows.select_for_update(of=("self",), no_key=True)
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
