"""Checking the field values of a top-up purchase (contract, "Top-up purchase body")."""

import re
from typing import Any

from core.api.errors import OrderRefused, RefusalReason, ValidationFailed
from core.api.serializer_fields import MAX_SHOWN_NAME_LENGTH
from core.database.functions import query
from core.inputs import is_blank
from topups.models import FieldType

NO_OPTIONS = "No value is valid, so this product cannot be bought: contact support."
OPTIONS_SHOWN = 20  # in a message
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def read_fields(
    *, product_id: int, player_id: str, values: dict[str, str | None]
) -> list[dict[str, Any]]:
    """The checked values as operators will read them:
    `[{"id", "name", "label", "value", "value_label"}]`.

    `values` maps field ids to the values sent. A null or blank value counts as not sent.

    Raises `validation_failed` for an unknown product and for unknown, missing or invalid values,
    and `order_refused` (`product_inactive`) for a product that is not on sale.
    """
    products = query("topups_fields_of", product_id)
    if not products:
        raise unknown_product()
    if not products[0]["on_sale"]:
        raise OrderRefused(RefusalReason.PRODUCT_INACTIVE)
    fields = {str(field["number"]): field for field in products[0]["fields"]}
    problems = {
        f"fields.{name[:MAX_SHOWN_NAME_LENGTH]}": [
            "This product has no field with this id; see `GET /topup-products`."
        ]
        for name in values
        if name not in fields
    }
    values_read = []
    for name, field in fields.items():
        value = values.get(name)
        sent = None if value is None or is_blank(value) else value
        problem = _problem(field, sent, player_id)
        if problem:
            problems[f"fields.{name}"] = [problem]
        elif sent is not None:
            values_read.append(_read_field(field, sent))
    if problems:
        raise ValidationFailed(problems)
    return values_read


def unknown_product() -> ValidationFailed:
    """The `validation_failed` of a purchase whose `system_product_id` names no product."""
    return ValidationFailed(
        {
            "system_product_id": [
                "There is no top-up product with this id; see `GET /topup-products`."
            ]
        }
    )


def _problem(field: dict[str, Any], value: str | None, player_id: str) -> str | None:
    """A sentence on the rule that the value breaks, or None. A value of None was not sent."""
    if field["required"] and field["type"] == FieldType.DROPDOWN and not field["options"]:
        return NO_OPTIONS
    label = f"“{field['label']}”"
    if value is None:
        return f"{label} is required." if field["required"] else None
    if field["type"] == FieldType.DROPDOWN:
        known = [option["value"] for option in field["options"]]
        return None if value in known else f"{label} must be {_one_of(known)}."
    before, found, after = value.partition(player_id)
    if found and is_blank(before + after):
        return f"Send the player id only as `player_id`, not as {label}."
    if field["type"] == FieldType.NUMBER and not _NUMBER.fullmatch(value):
        return f"{label} must be a number, sent as a string such as `12` or `0.5`."
    return None


def _one_of(values: list[str]) -> str:
    """The allowed values for a message; of many, the first ones."""
    first = ", ".join(f"`{value}`" for value in values[:OPTIONS_SHOWN])
    if len(values) > OPTIONS_SHOWN:
        return f"one of {len(values)} values: {first}, … (all in `GET /topup-products`)"
    return f"one of {first}" if len(values) > 1 else first


def _read_field(field: dict[str, Any], value: str) -> dict[str, Any]:
    labels = {option["value"]: option["label"] for option in field["options"]}
    return {
        "id": field["number"],
        "name": field["name"],
        "label": field["label"],
        "value": value,
        "value_label": labels.get(value),
    }
