"""Checking the field values of a top-up against what the game asks for, before any debit."""

import re
from typing import Any

from config.api.errors import OrderRefused, RefusalReason, ValidationFailed
from config.api.fields import SHOWN_NAME_LENGTH
from config.database.functions import query
from topups.models import FieldType

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def read_fields(
    *, product_id: int, player_id: str, values: dict[str, str | None]
) -> list[dict[str, Any]]:
    """Returns what the operators will read: `[{"id", "name", "label", "value", "value_label"}]`.

    Raises `validation_failed` for an unknown product, and for unknown, missing or invalid values;
    `order_refused` / `product_inactive` for a product that is not sold.
    """
    found = query("topups_fields_of", product_id)
    if not found:
        raise unknown_product()
    if not found[0]["on_sale"]:
        raise OrderRefused(RefusalReason.PRODUCT_INACTIVE)
    fields = {str(field["number"]): field for field in found[0]["fields"]}
    problems = {
        f"fields.{name[:SHOWN_NAME_LENGTH]}": ["This product has no field with this id."]
        for name in values
        if name not in fields
    }
    values_read = []
    for name, field in fields.items():
        value = values.get(name)
        problem = _problem(field, value, player_id)
        if problem:
            problems[f"fields.{name}"] = [problem]
        elif value:
            values_read.append(_read_field(field, value))
    if problems:
        raise ValidationFailed(problems)
    return values_read


def unknown_product() -> ValidationFailed:
    """The `validation_failed` of a purchase whose `system_product_id` names no product."""
    return ValidationFailed({"system_product_id": ["There is no top-up product with this id."]})


def _problem(field: dict[str, Any], value: str | None, player_id: str) -> str | None:
    """The rule that the value breaks, as a sentence; None where it breaks none."""
    if not value or not value.strip():
        return "This field is required." if field["required"] else None
    if field["type"] == FieldType.DROPDOWN:
        known = [option["value"] for option in field["options"]]
        return None if value in known else "Send one of the field's option values."
    if value == player_id:
        return "Send the player's id only as player_id."
    if field["type"] == FieldType.NUMBER and not _NUMBER.fullmatch(value):
        return "Send a number, written as a string of digits."
    return None


def _read_field(field: dict[str, Any], value: str) -> dict[str, Any]:
    labels = {option["value"]: option["label"] for option in field["options"]}
    return {
        "id": field["number"],
        "name": field["name"],
        "label": field["label"],
        "value": value,
        "value_label": labels.get(value),
    }
