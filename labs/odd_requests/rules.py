"""The contract's rules of a purchase body, written a second time, independent of the service.

They judge the form of a parsed body, not whether its product exists or can be bought.
"""

import re
import unicodedata
from decimal import Decimal
from typing import Any

VOUCHER = {"product_id", "merchant_reference", "variation_id", "quantity", "delivery_type"}
TOPUP = {"delivery_type", "system_product_id", "player_id", "quantity", "fields"}
PLAYER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_ID = 2**63 - 1


def well_formed(body: dict[str, Any]) -> bool:
    """Whether the body has the shape of a purchase: names, types, lengths and ranges."""
    return _topup(body) if body.get("delivery_type") == "top_up" else _voucher(body)


def _voucher(body: dict[str, Any]) -> bool:
    named = [name for name in ("product_id", "merchant_reference") if name in body]
    return (
        body.keys() <= VOUCHER
        and body.get("delivery_type", "voucher") == "voucher"
        and len(named) == 1
        and ("product_id" not in body or _integer(body["product_id"], 1, MAX_ID))
        and ("merchant_reference" not in body or _reference(body["merchant_reference"]))
        and (body.get("variation_id") is None or _integer(body["variation_id"], 1, MAX_ID))
        and _integer(body.get("quantity"), 1, 100)
    )


def _topup(body: dict[str, Any]) -> bool:
    player = body.get("player_id")
    return (
        body.keys() <= TOPUP
        and _integer(body.get("system_product_id"), 1, MAX_ID)
        and isinstance(player, str)
        and PLAYER_ID.fullmatch(player) is not None
        and _integer(body.get("quantity", 1), 1, 1)
        and ("fields" not in body or _fields(body["fields"]))
    )


def _integer(value: Any, low: int, high: int) -> bool:
    """A JSON integer. `1.0` is a number of another type (contract, "Idempotency rules")."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and low <= value <= high


def _reference(value: Any) -> bool:
    if not isinstance(value, str) or not 1 <= len(value) <= 64:
        return False
    letters = [unicodedata.category(each)[0] in "LN" for each in value]
    return letters[0] and all(
        good or each in " ._-/:#" for good, each in zip(letters, value, strict=True)
    )


def _fields(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= 30
        and all(
            each is None or (isinstance(each, str) and len(each) <= 255) for each in value.values()
        )
    )


def storable(value: Any) -> bool:
    """Whether PostgreSQL can store every text: no NUL, no half of a surrogate pair."""
    if isinstance(value, str):
        return "\x00" not in value and not any("\ud800" <= each <= "\udfff" for each in value)
    if isinstance(value, dict):
        return all(storable(name) and storable(each) for name, each in value.items())
    if isinstance(value, list):
        return all(map(storable, value))
    return not isinstance(value, Decimal) or value.is_finite()
