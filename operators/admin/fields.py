"""Form fields whose mistakes are told to the person at the desk, not to the database."""

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
    """The price of one unit, or nothing: more than zero, under PRICE_LIMIT, four decimals."""

    widget = UnfoldAdminDecimalFieldWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=Decimal(10) ** -MONEY_DECIMALS,
            max_digits=PRICE_DIGITS,
            decimal_places=MONEY_DECIMALS,
            required=False,
            help_text="Of one unit; empty means not for sale.",
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return amount(value).replace(",", "") if isinstance(value, Decimal) else value


class QuantityStepField(forms.IntegerField):
    """How many codes make one unit. No purchase takes more than MAX_QUANTITY codes."""

    widget = UnfoldAdminIntegerFieldWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=1,
            max_value=MAX_QUANTITY,
            help_text="Codes in one unit; usually 1.",
            **kwargs,
        )
