"""Writes JSON with exact decimals. Commands use it without Django REST framework."""

from decimal import Decimal
from typing import Any

import orjson
from django.utils.functional import Promise


def dumps(value: Any) -> bytes:
    """Encodes as UTF-8 JSON. A Decimal becomes an exact JSON number; a time in UTC ends with Z.

    Raises TypeError for a value without a JSON form.
    """
    return orjson.dumps(value, default=_encode, option=orjson.OPT_UTC_Z)


def _encode(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(money_text(value))
    if isinstance(value, Promise | str):  # lazy translations and enum members
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def money_text(amount: Decimal) -> str:
    """The amount with at least two decimals and no other trailing zeros: `9.99`, `0.0725`, `5.00`.

    The text is exact and has no exponent. Raises ValueError for NaN and infinity.
    """
    if not amount.is_finite():
        raise ValueError("not a finite amount")
    whole, _, decimals = format(amount, "f").partition(".")
    return f"{whole}.{decimals.rstrip('0').ljust(2, '0')}"
