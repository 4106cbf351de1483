"""The response schemas of `/orders` (contract, "Order" and "Code").

They only describe: `orders.purchase` and `orders.selectors` build the orders, and the tests check
every response against the OpenAPI document.
"""

from typing import Any

from rest_framework import serializers

from config.api.serializer_fields import MoneyField, OneOfSerializer
from orders.models import OrderStatus
from topups.models import FailureReason, FulfilmentStatus


class CodeSerializer(serializers.Serializer[Any]):
    """A voucher code. `serial_number` and `pin_code` are absent where the code has none."""

    code = serializers.CharField()
    serial_number = serializers.CharField(required=False)
    pin_code = serializers.CharField(required=False)


class VoucherOrderSerializer(serializers.Serializer[Any]):
    """An order of voucher codes: what was sold, and the codes."""

    reference = serializers.CharField()
    status = serializers.ChoiceField(OrderStatus.choices)
    product_id = serializers.IntegerField()
    variation_id = serializers.IntegerField(allow_null=True)
    merchant_reference = serializers.CharField(allow_null=True)
    quantity = serializers.IntegerField()
    units = serializers.IntegerField()
    units_per_sale = serializers.IntegerField()
    unit_price = MoneyField()
    total_price = MoneyField()
    currency = serializers.CharField()
    created_at = serializers.DateTimeField(allow_null=True)
    codes = CodeSerializer(many=True)


class TopUpOrderSerializer(serializers.Serializer[Any]):
    """An order of a top-up, and the state of its delivery."""

    reference = serializers.CharField()
    status = serializers.ChoiceField(OrderStatus.choices)
    delivery_type = serializers.ChoiceField(["top_up"])
    system_product_id = serializers.IntegerField()
    player_id = serializers.CharField()
    quantity = serializers.IntegerField()
    units = serializers.IntegerField()
    units_per_sale = serializers.IntegerField()
    unit_price = MoneyField()
    total_price = MoneyField()
    currency = serializers.CharField()
    created_at = serializers.DateTimeField(allow_null=True)
    fulfilment_status = serializers.ChoiceField(FulfilmentStatus.choices)
    refunded = serializers.BooleanField()
    failure_reason = serializers.ChoiceField(FailureReason.choices, allow_null=True)
    codes = CodeSerializer(many=True)


class OrderSerializer(OneOfSerializer):
    """A voucher order or a top-up order, each with its own fields."""

    shapes = (VoucherOrderSerializer, TopUpOrderSerializer)
