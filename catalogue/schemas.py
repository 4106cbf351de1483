"""How a product is shown to a merchant (contract, "Product" and "Variation").

For the OpenAPI document: a product is written as `catalogue.selectors` builds it, and tests hold
each answer against the document.
"""

from typing import Any

from rest_framework import serializers

from catalogue.models import ProductType
from config.api.fields import MoneyField


class VariationSerializer(serializers.Serializer[Any]):
    """A version of a product, with a shelf and a price of its own."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    merchant_reference = serializers.CharField(allow_null=True)
    available_stock = serializers.IntegerField(min_value=0)
    price = MoneyField(allow_null=True)
    quantity_step = serializers.IntegerField(min_value=1)
    sellable = serializers.BooleanField()


class ProductSerializer(serializers.Serializer[Any]):
    """A voucher product; its numbers are those of its own shelf."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    type = serializers.ChoiceField(ProductType.choices, allow_null=True)
    currency = serializers.CharField()
    merchant_reference = serializers.CharField(allow_null=True)
    available_stock = serializers.IntegerField(min_value=0)
    in_stock = serializers.BooleanField()
    price = MoneyField(allow_null=True)
    quantity_step = serializers.IntegerField(min_value=1)
    sellable = serializers.BooleanField()
    variations = VariationSerializer(many=True)
