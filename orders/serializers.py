"""What a purchase may say, and how an order is shown (contract, "POST /orders" and "Order")."""

from typing import Any

from rest_framework import serializers

from catalogue.models import MAX_QUANTITY
from catalogue.reference_format import MAX_REFERENCE_LENGTH, validate_reference
from config.api.errors import ApiError, ErrorCode
from config.api.fields import (
    MAX_ID,
    MoneyField,
    OneOfSerializer,
    StrictIntegerField,
    StrictRegexField,
    StrictSerializer,
    StrictStringField,
)
from orders.models import OrderStatus
from topups.models import FailureReason, FulfilmentStatus

MAX_FIELDS = 30


class VoucherPurchaseSerializer(StrictSerializer):
    """A purchase of voucher codes; the product is named by `product_id` or `merchant_reference`."""

    product_id = StrictIntegerField(min_value=1, max_value=MAX_ID, required=False)
    merchant_reference = StrictStringField(
        max_length=MAX_REFERENCE_LENGTH, validators=[validate_reference], required=False
    )
    variation_id = StrictIntegerField(
        min_value=1, max_value=MAX_ID, allow_null=True, required=False
    )
    quantity = StrictIntegerField(min_value=1, max_value=MAX_QUANTITY)
    delivery_type = serializers.ChoiceField(
        ["voucher"],
        required=False,
        error_messages={"invalid_choice": "Send voucher or top_up."},
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Raises `product_reference_ambiguous` where the product is named twice.

        A null names nothing; it is refused as any other bad value.
        """
        if data.get("product_id") is not None and data.get("merchant_reference") is not None:
            raise ApiError(ErrorCode.PRODUCT_REFERENCE_AMBIGUOUS)
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "product_id" not in attrs and "merchant_reference" not in attrs:
            raise serializers.ValidationError(
                {"product_id": ["Name the product by product_id or by merchant_reference."]}
            )
        return attrs


class TopUpPurchaseSerializer(StrictSerializer):
    """A purchase of one top-up; `fields` holds what the game asks for, by field id."""

    delivery_type = serializers.ChoiceField(["top_up"])
    system_product_id = StrictIntegerField(min_value=1, max_value=MAX_ID)
    player_id = StrictRegexField(r"[A-Za-z0-9_-]{1,64}")
    quantity = StrictIntegerField(min_value=1, max_value=1, default=1)
    fields = serializers.DictField(  # type: ignore[assignment]  # the contract's own word
        child=StrictStringField(max_length=255, allow_null=True, allow_blank=True), required=False
    )

    def validate_fields(self, values: dict[str, str | None]) -> dict[str, str | None]:
        if len(values) > MAX_FIELDS:
            raise serializers.ValidationError(f"Send at most {MAX_FIELDS} fields.")
        return values


class CodeSerializer(serializers.Serializer[Any]):
    """A voucher code. One without serial number or pin shows neither."""

    code = serializers.CharField()
    serial_number = serializers.CharField(required=False)
    pin_code = serializers.CharField(required=False)


class VoucherOrderSerializer(serializers.Serializer[Any]):
    """A purchase of voucher codes, as it was sold."""

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
    """A purchase of a top-up, and where its delivery stands."""

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
    """A voucher order or a top-up order, each with its own fields.

    For the OpenAPI document: an order is written as `orders.purchase` and `orders.selectors` build
    it, and tests hold each answer against the document.
    """

    shapes = (VoucherOrderSerializer, TopUpOrderSerializer)


class PurchaseSerializer(OneOfSerializer):
    """The two shapes of a purchase."""

    shapes = (VoucherPurchaseSerializer, TopUpPurchaseSerializer)


# Made once: making a serializer copies all its fields, and these keep nothing of a request.
_READ_VOUCHER_PURCHASE = VoucherPurchaseSerializer()
_READ_TOPUP_PURCHASE = TopUpPurchaseSerializer()


def read_purchase(body: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether a purchase is one of a top-up, as its `delivery_type` says, and its validated fields.

    Raises `validation_failed`, or `product_reference_ambiguous`.
    """
    topup = body.get("delivery_type") == "top_up"
    shape = _READ_TOPUP_PURCHASE if topup else _READ_VOUCHER_PURCHASE
    values: dict[str, Any] = shape.run_validation(body)
    return topup, values
