"""What a purchase may say, and how an order is shown (contract, "POST /orders" and "Order")."""

from typing import Any

from rest_framework import serializers

from catalogue.models import MAX_QUANTITY
from catalogue.references import MAX_REFERENCE_LENGTH, validate_reference
from config.api.fields import (
    MAX_ID,
    MoneyField,
    StrictIntegerField,
    StrictSerializer,
    StrictStringField,
)
from config.errors import ApiError, ErrorCode
from orders.models import OrderStatus


class VoucherPurchaseSerializer(StrictSerializer):
    """Contract, "Voucher purchase body". Pure: looks nothing up."""

    product_id = StrictIntegerField(min_value=1, max_value=MAX_ID, required=False)
    merchant_reference = StrictStringField(
        max_length=MAX_REFERENCE_LENGTH, validators=[validate_reference], required=False
    )
    variation_id = StrictIntegerField(
        min_value=1, max_value=MAX_ID, allow_null=True, required=False
    )
    quantity = StrictIntegerField(min_value=1, max_value=MAX_QUANTITY)
    delivery_type = serializers.ChoiceField(["voucher"], required=False)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Raises `product_reference_ambiguous` where the product is named twice."""
        if "product_id" in data and "merchant_reference" in data:
            raise ApiError(ErrorCode.PRODUCT_REFERENCE_AMBIGUOUS)
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "product_id" not in attrs and "merchant_reference" not in attrs:
            raise serializers.ValidationError(
                {"product_id": ["Name the product by product_id or by merchant_reference."]}
            )
        return attrs


class CodeSerializer(serializers.Serializer[Any]):
    """Contract, "Code". A code without serial or pin shows neither."""

    code = serializers.CharField()
    serial_number = serializers.CharField(required=False)
    pin_code = serializers.CharField(required=False)


class VoucherOrderSerializer(serializers.Serializer[Any]):
    """Contract, "Voucher order"."""

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
