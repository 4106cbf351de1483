"""The response schemas of `/orders` (contract, "Order" and "Code").

They only describe: `orders.purchase` and `orders.selectors` build the orders, and the tests check
every response against the OpenAPI document.
"""

from typing import Any

from rest_framework import serializers

from catalogue.models import MAX_QUANTITY
from catalogue.schemas import reference_field
from core.api.serializer_fields import MoneyField, OneOfSerializer
from orders.models import OrderStatus
from topups.models import FailureReason, FulfilmentStatus

REFERENCE = "The identifier of the order, used in `GET /orders/{reference}`."
CURRENCY = "The currency code of the prices, such as `USD`."
CREATED_AT = "When the order was created. May be null."


class CodeSerializer(serializers.Serializer[Any]):
    """A voucher code."""

    code = serializers.CharField(help_text="The code itself. Keep it secret.")
    serial_number = serializers.CharField(
        required=False, help_text="Absent if the code has no serial number."
    )
    pin_code = serializers.CharField(required=False, help_text="Absent if the code has no PIN.")


class VoucherOrderSerializer(serializers.Serializer[Any]):
    """An order of voucher codes: what was sold, and the codes."""

    reference = serializers.CharField(help_text=REFERENCE)
    status = serializers.ChoiceField(
        OrderStatus.choices, help_text="A voucher purchase is `completed` in its own response."
    )
    product_id = serializers.IntegerField(help_text="The product that was sold. It never changes.")
    variation_id = serializers.IntegerField(
        allow_null=True, help_text="The variation that was sold; null for the product's own shelf."
    )
    merchant_reference = reference_field(
        "The name that is linked to the shelf when the order is shown, not when it was bought. Null"
        " if the shelf is not linked now."
    )
    quantity = serializers.IntegerField(
        min_value=1, max_value=MAX_QUANTITY, help_text="Number of codes."
    )
    units = serializers.IntegerField(
        min_value=1, help_text="`quantity` divided by `units_per_sale`."
    )
    units_per_sale = serializers.IntegerField(
        min_value=1,
        help_text="The `quantity_step` of the product at the time of sale; 1 for a replacement.",
    )
    unit_price = MoneyField(help_text="The price of one unit.")
    total_price = MoneyField(
        help_text="The amount paid: exactly `unit_price` times `units`. 0 for an order that"
        " replaces a code that did not work: nobody bought it, and nothing was debited."
    )
    currency = serializers.CharField(help_text=CURRENCY)
    created_at = serializers.DateTimeField(allow_null=True, help_text=CREATED_AT)
    codes = CodeSerializer(many=True, help_text="The codes that were bought.")


class TopUpOrderSerializer(serializers.Serializer[Any]):
    """An order of a top-up: what was sold, and the state of its delivery."""

    reference = serializers.CharField(help_text=REFERENCE)
    status = serializers.ChoiceField(
        OrderStatus.choices,
        help_text="Normally `pending` in the response to the purchase, and in every replay of it."
        " Only GET returns the current state.",
    )
    delivery_type = serializers.ChoiceField(["top_up"], help_text="Always `top_up`.")
    system_product_id = serializers.IntegerField(help_text="The top-up product that was bought.")
    player_id = serializers.CharField(
        help_text="The player id, as it was sent. Leading zeroes are kept. `(deleted)` after the"
        " service has deleted personal data of an old order."
    )
    quantity = serializers.IntegerField(min_value=1, help_text="Always 1.")
    units = serializers.IntegerField(min_value=1, help_text="Always 1.")
    units_per_sale = serializers.IntegerField(min_value=1, help_text="Always 1.")
    unit_price = MoneyField(help_text="The price of the top-up.")
    total_price = MoneyField(help_text="The amount paid, equal to `unit_price`.")
    currency = serializers.CharField(help_text=CURRENCY)
    created_at = serializers.DateTimeField(allow_null=True, help_text=CREATED_AT)
    fulfilment_status = serializers.ChoiceField(
        FulfilmentStatus.choices,
        help_text="The state of the operators' work. `status` is `pending` until it has ended.",
    )
    refunded = serializers.BooleanField(
        help_text="True confirms that the wallet was credited. Do not buy a failed top-up again"
        " before this is true."
    )
    failure_reason = serializers.ChoiceField(
        FailureReason.choices,
        allow_null=True,
        help_text="Why the top-up failed: `wrong_id` or `no_stock` if operators rejected it with"
        " this reason on the messaging platform, `fulfilment_failed` for every other failure. Null"
        " if it has not failed.",
    )
    codes = CodeSerializer(many=True, help_text="Always empty, also after the delivery.")


class OrderSerializer(OneOfSerializer):
    """A voucher order or a top-up order. Only a top-up order has a `delivery_type`, which is
    `top_up`; only a voucher order has a `product_id`."""

    shapes = (VoucherOrderSerializer, TopUpOrderSerializer)
