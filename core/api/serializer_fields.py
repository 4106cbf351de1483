"""Serializer fields and bases that accept exactly the types of the contract, without coercion."""

from decimal import Decimal
from typing import Any, ClassVar

from django.core.validators import RegexValidator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.texts import gettext_noop

UNKNOWN_FIELD = gettext_noop("Unknown field.")
MAX_ID = 2**63 - 1
# `error.fields` has at most this many unknown names of a body, each cut to this length.
MAX_SHOWN_NAMES, MAX_SHOWN_NAME_LENGTH = 20, 64


class StrictIntegerField(serializers.IntegerField):
    """Accepts a JSON integer only: no string, boolean or float."""

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return data


class StrictStringField(serializers.CharField):
    """Accepts a JSON string only, and keeps its whitespace."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class StrictRegexField(StrictStringField):
    """Accepts a string that the pattern matches from `\\A` to `\\Z`; `$` would allow a newline."""

    def __init__(self, pattern: str, **kwargs: Any) -> None:
        validator = RegexValidator(rf"\A(?:{pattern})\Z", f"Must match ^{pattern}$.")
        super().__init__(validators=[validator], **kwargs)


@extend_schema_field(OpenApiTypes.NUMBER)
class MoneyField(serializers.Field[Decimal, Decimal, Any, Decimal]):
    """An exact decimal amount, rendered as a JSON number."""

    def to_representation(self, value: Decimal) -> Decimal:
        return value


class DescribedSerializer(serializers.Serializer[Any]):
    """A shape with rules in the OpenAPI document that drf-spectacular cannot read from the fields.

    `schema_rules` are JSON Schema keywords of the whole object, `property_rules` of its properties.
    """

    schema_rules: ClassVar[dict[str, Any]] = {}
    property_rules: ClassVar[dict[str, dict[str, Any]]] = {}


class StrictSerializer(DescribedSerializer):
    """A request body that refuses undeclared fields with `validation_failed`.

    A misspelt `variation_id` would otherwise be ignored and buy the wrong shelf.
    """

    schema_rules: ClassVar[dict[str, Any]] = {"additionalProperties": False}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if unknown := self.unknown_fields(data):
            raise serializers.ValidationError(unknown)
        values: dict[str, Any] = super().to_internal_value(data)
        return values

    def unknown_fields(self, data: dict[str, Any]) -> dict[str, list[str]]:
        """The messages for undeclared names; at most MAX_SHOWN_NAMES of them, each shortened."""
        unknown = [name for name in data if name not in self.fields]
        return {name[:MAX_SHOWN_NAME_LENGTH]: [UNKNOWN_FIELD] for name in unknown[:MAX_SHOWN_NAMES]}


class OneOfSerializer(serializers.Serializer[Any]):
    """A value with one of several shapes; documented as `oneOf` in the OpenAPI document.

    Its docstring is the description.
    """

    shapes: tuple[type[serializers.Serializer[Any]], ...] = ()
