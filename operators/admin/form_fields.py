"""Form fields that report bad values in the form, before the database refuses them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
)

from catalogue.models import MAX_QUANTITY, PRICE_DIGITS
from config.database.columns import MONEY_DECIMALS
from operators.admin.base import amount


class PriceField(forms.DecimalField):
    """The price of one unit, or None: above zero, below PRICE_LIMIT, at most four decimals."""

    widget = UnfoldAdminDecimalFieldWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=Decimal(10) ** -MONEY_DECIMALS,
            max_digits=PRICE_DIGITS,
            decimal_places=MONEY_DECIMALS,
            required=False,
            help_text="The price of one unit. Leave it empty if it is not for sale.",
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return amount(value).replace(",", "") if isinstance(value, Decimal) else value


class QuantityStepField(forms.IntegerField):
    """The number of codes in one unit, at most MAX_QUANTITY: a purchase takes no more codes."""

    widget = UnfoldAdminIntegerFieldWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=1,
            max_value=MAX_QUANTITY,
            help_text="The number of codes in one unit, usually 1.",
            **kwargs,
        )
