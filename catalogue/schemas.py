"""The response schemas of `/products` (contract, "Product" and "Variation").

They only describe: `catalogue.selectors` builds the products, and the tests check every response
against the OpenAPI document.
"""

from typing import Any

from rest_framework import serializers

from catalogue.models import ProductType
from config.api.serializer_fields import MoneyField


class VariationSerializer(serializers.Serializer[Any]):
    """A version of a product, with its own stock and price."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    merchant_reference = serializers.CharField(allow_null=True)
    available_stock = serializers.IntegerField(min_value=0)
    price = MoneyField(allow_null=True)
    quantity_step = serializers.IntegerField(min_value=1)
    sellable = serializers.BooleanField()


class ProductSerializer(serializers.Serializer[Any]):
    """A voucher product. Stock, price and step are those of its own shelf."""

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
