"""The response schemas of `/products` (contract, "Product" and "Variation").

They only describe: `catalogue.selectors` builds the products, and the tests check every response
against the OpenAPI document.
"""

from typing import Any

from rest_framework import serializers

from catalogue.models import ProductType
from catalogue.reference_format import MAX_REFERENCE_LENGTH
from core.api.serializer_fields import MoneyField

PRICE = "The price of one sellable unit, paid from the wallet. Null when no sale price is on file."
STEP = (
    "Number of codes that make one unit; usually 1. The quantity of an order must be a multiple of"
    " it: with step 3 and stock 4, only 3 codes can be bought."
)
SELLABLE = (
    "False means that an order will be refused. True only means that a price is on file; it does"
    " not guarantee stock or permission. Products, variations and categories that are switched off"
    " are left out, not marked false."
)


def reference_field(description: str) -> serializers.CharField:
    """The `merchant_reference` of a response."""
    return serializers.CharField(
        allow_null=True, max_length=MAX_REFERENCE_LENGTH, help_text=description
    )


class VariationSerializer(serializers.Serializer[Any]):
    """A version of a product, with its own stock and price."""

    id = serializers.IntegerField(help_text="Sent as `variation_id` when buying.")
    name = serializers.CharField(help_text="The name of the variation.")
    merchant_reference = reference_field(
        "The name that you linked to this variation's shelf. Null if the shelf is not linked."
    )
    available_stock = serializers.IntegerField(
        min_value=0, help_text="Number of codes on this variation's shelf now, counted live."
    )
    price = MoneyField(allow_null=True, help_text=PRICE)
    quantity_step = serializers.IntegerField(min_value=1, help_text=STEP)
    sellable = serializers.BooleanField(help_text=SELLABLE)


class ProductSerializer(serializers.Serializer[Any]):
    """A voucher product.

    A shelf is a stock of codes with one price and one `quantity_step`. A product has a shelf of its
    own, and so has each of its variations. Stock, price and step of a product are those of its own
    shelf.
    """

    id = serializers.IntegerField(help_text="Sent as `product_id` when buying. It never changes.")
    name = serializers.CharField(help_text="The name of the product.")
    type = serializers.ChoiceField(
        ProductType.choices, allow_null=True, help_text="The kind of product. May be null."
    )
    currency = serializers.CharField(help_text="The currency code of the price, such as `USD`.")
    merchant_reference = reference_field(
        "The name that you linked to the product's own shelf. Null if the shelf is not linked. A"
        " variation may be linked separately."
    )
    available_stock = serializers.IntegerField(
        min_value=0,
        help_text="Number of codes on the product's own shelf now, counted live. These are codes,"
        " not sellable units. The stock of variations is on separate shelves and is never added.",
    )
    in_stock = serializers.BooleanField(
        help_text="True when some shelf holds codes that an order could take: the product's own or"
        " that of an active variation. True with `available_stock` 0 means that all stock is under"
        " variations."
    )
    price = MoneyField(allow_null=True, help_text=PRICE)
    quantity_step = serializers.IntegerField(min_value=1, help_text=STEP)
    sellable = serializers.BooleanField(help_text=SELLABLE)
    variations = VariationSerializer(
        many=True, help_text="The active variations. Each has a shelf of its own."
    )
