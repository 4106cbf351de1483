"""The response schemas of `/topup-products` (contract, "Top-up product").

They only describe: `topups.selectors` builds the products, and the tests check every response
against the OpenAPI document.
"""

from typing import Any

from rest_framework import serializers

from config.api.serializer_fields import MoneyField
from topups.models import FieldType


class TopUpFieldOptionSerializer(serializers.Serializer[Any]):
    """One choice of a dropdown. `value` is what a purchase sends."""

    value = serializers.CharField()
    label = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # contract's word


class TopUpFieldSerializer(serializers.Serializer[Any]):
    """What a game asks for besides the player id."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # the contract's own word
    type = serializers.ChoiceField(FieldType.choices)
    required = serializers.BooleanField()  # type: ignore[assignment]  # the contract's own word
    options = TopUpFieldOptionSerializer(many=True)


class TopUpProductSerializer(serializers.Serializer[Any]):
    """What operators deliver to a player id."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    category = serializers.CharField(allow_null=True)
    delivery_type = serializers.ChoiceField(["top_up"])
    price = MoneyField()
    currency = serializers.CharField()
    available_stock = serializers.IntegerField(min_value=0, allow_null=True)
    sellable = serializers.BooleanField()
    quantity_step = serializers.IntegerField(min_value=1, max_value=1)
    max_quantity = serializers.IntegerField(min_value=1, max_value=1)
    fields = TopUpFieldSerializer(many=True)  # type: ignore[assignment]  # the contract's own word
