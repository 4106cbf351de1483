"""Serializer fields that are as strict as the contract: no strings for integers, no guessing."""

from decimal import Decimal
from typing import Any

from django.core.validators import RegexValidator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

MAX_ID = 2**63 - 1


class StrictIntegerField(serializers.IntegerField):
    """Accepts a JSON integer and nothing that merely looks like one."""

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return data


class StrictStringField(serializers.CharField):
    """Accepts a JSON string, untrimmed: what is validated is what was sent."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class StrictRegexField(StrictStringField):
    """Accepts a string that a pattern matches as a whole; `$` would let a newline pass."""

    def __init__(self, pattern: str, **kwargs: Any) -> None:
        validator = RegexValidator(rf"\A(?:{pattern})\Z", f"Must match ^{pattern}$.")
        super().__init__(validators=[validator], **kwargs)


@extend_schema_field(OpenApiTypes.NUMBER)
class MoneyField(serializers.Field[Decimal, Decimal, Any, Decimal]):
    """An exact amount, written as a JSON number."""

    def to_representation(self, value: Decimal) -> Decimal:
        return value


class StrictSerializer(serializers.Serializer[Any]):
    """A request body: a name that is not declared is refused.

    With real money and no sandbox, a misspelt `variation_id` must not buy the wrong shelf.
    """

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        unknown = [name for name in data if name not in self.fields]
        if unknown:
            raise serializers.ValidationError(
                {name[:64]: ["This field is not known."] for name in unknown[:20]}
            )
        values: dict[str, Any] = super().to_internal_value(data)
        return values


class OneOfSerializer(serializers.Serializer[Any]):
    """A value that has one of several shapes; the OpenAPI document says `oneOf`."""

    shapes: tuple[type[serializers.Serializer[Any]], ...] = ()
