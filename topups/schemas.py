"""The response schemas of `/topup-products` (contract, "Top-up product").

They only describe: `topups.selectors` builds the products, and the tests check every response
against the OpenAPI document.
"""

from typing import Any

from rest_framework import serializers

from core.api.serializer_fields import DescribedSerializer, MoneyField
from topups.models import MAX_FIELDS, FieldType


class TopUpFieldOptionSerializer(serializers.Serializer[Any]):
    """One choice of a dropdown."""

    value = serializers.CharField(help_text="The value that a purchase sends.")
    label = serializers.CharField(  # type: ignore[assignment]  # the contract's own word
        allow_null=True, help_text="The text to show to people. Null if it has none."
    )


class TopUpFieldSerializer(serializers.Serializer[Any]):
    """A value that the game needs besides the player id."""

    id = serializers.IntegerField(
        help_text="The name, as a string, of the value in the `fields` object of a purchase."
    )
    name = serializers.CharField(help_text="The game's name for the field.")
    label = serializers.CharField(  # type: ignore[assignment]  # the contract's own word
        help_text="The text to show to people."
    )
    type = serializers.ChoiceField(FieldType.choices, help_text="The kind of value.")
    required = serializers.BooleanField(  # type: ignore[assignment]  # the contract's own word
        help_text="Whether a purchase must send it."
    )
    options = TopUpFieldOptionSerializer(
        many=True, help_text="The choices of a dropdown. Empty for other types."
    )


class TopUpProductSerializer(DescribedSerializer):
    """A product that operators deliver to a player id."""

    property_rules = {"fields": {"maxItems": MAX_FIELDS}}

    id = serializers.IntegerField(
        help_text="Sent as `system_product_id` when buying. It is not a voucher product id."
    )
    name = serializers.CharField(help_text="The name of the top-up product.")
    category = serializers.CharField(
        allow_null=True, help_text="The name of its category, usually the game. May be null."
    )
    delivery_type = serializers.ChoiceField(["top_up"], help_text="Always `top_up`.")
    price = MoneyField(help_text="The price of one top-up.")
    currency = serializers.CharField(help_text="The currency code of the price, such as `USD`.")
    available_stock = serializers.IntegerField(
        min_value=0,
        allow_null=True,
        help_text="Number of top-ups left. It is not a reservation. Null if they are not counted.",
    )
    sellable = serializers.BooleanField(
        help_text="False means that an order will be refused. True does not guarantee stock."
    )
    quantity_step = serializers.IntegerField(min_value=1, help_text="Always 1.")
    max_quantity = serializers.IntegerField(
        min_value=1, help_text="Always 1: one top-up per request."
    )
    fields = TopUpFieldSerializer(  # type: ignore[assignment]  # the contract's own word
        many=True,
        help_text="The values that the game needs besides the player id.",
    )
