"""The request bodies of `POST /orders` (contract, "POST /orders")."""

from typing import Any

from rest_framework import serializers

from catalogue.models import MAX_QUANTITY
from catalogue.reference_format import ASCII_PATTERN, MAX_REFERENCE_LENGTH, validate_reference
from core.api.errors import ApiError, ErrorCode
from core.api.serializer_fields import (
    MAX_ID,
    OneOfSerializer,
    StrictIntegerField,
    StrictRegexField,
    StrictSerializer,
    StrictStringField,
)
from topups.models import MAX_FIELD_VALUE_LENGTH, MAX_FIELDS, MAX_PLAYER_ID_LENGTH

PLAYER_ID_PATTERN = f"^[A-Za-z0-9_-]{{1,{MAX_PLAYER_ID_LENGTH}}}$"
# Ids are smaller by far. JavaScript rounds integers above the bound that the document names.
ID_RULES = {"maximum": 2**53 - 1}
TOPUP_ONLY = {"system_product_id", "player_id", "fields"}  # names that only a top-up has


def _product_id(*, required: bool) -> StrictIntegerField:
    return StrictIntegerField(
        min_value=1,
        max_value=MAX_ID,
        required=required,
        help_text="The `id` from `GET /products`.",
    )


def _merchant_reference(*, required: bool) -> StrictStringField:
    return StrictStringField(
        max_length=MAX_REFERENCE_LENGTH,
        validators=[validate_reference],
        required=required,
        help_text="The name that you linked to a shelf; it is not an order reference. It starts"
        " with a Unicode letter or digit. Later characters are Unicode letters, digits, spaces and"
        " `. _ - / : #`. The pattern covers only the ASCII characters of this rule.",
    )


class VoucherPurchaseSerializer(StrictSerializer):
    """A purchase of voucher codes. Exactly one of `product_id` and `merchant_reference` is sent."""

    product_id = _product_id(required=False)
    merchant_reference = _merchant_reference(required=False)
    variation_id = StrictIntegerField(
        min_value=1,
        max_value=MAX_ID,
        allow_null=True,
        required=False,
        help_text="A variation of the product. With `merchant_reference`, leave it out or send"
        " exactly the linked variation. Null is the same as leaving it out.",
    )
    quantity = StrictIntegerField(
        min_value=1,
        max_value=MAX_QUANTITY,
        help_text="Number of codes; a multiple of the `quantity_step`.",
    )
    delivery_type = serializers.ChoiceField(
        ["voucher"],
        required=False,
        error_messages={"invalid_choice": "Send `voucher` or `top_up`."},
        help_text="If sent, `voucher`.",
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Raises `product_reference_ambiguous` if the body names the product twice.

        A null names no product. It fails validation like any other bad value.
        """
        if data.get("product_id") is not None and data.get("merchant_reference") is not None:
            raise ApiError(ErrorCode.PRODUCT_REFERENCE_AMBIGUOUS)
        return super().to_internal_value(data)

    def unknown_fields(self, data: dict[str, Any]) -> dict[str, list[str]]:
        """Also names `delivery_type` when the body looks like a top-up that misses or misspells it.

        A body without `delivery_type: top_up` is read as a voucher purchase. The correct fields of
        a top-up are unknown there, and without this message they would seem to be the mistake.
        """
        messages = super().unknown_fields(data)
        if TOPUP_ONLY & data.keys() and data.get("delivery_type") != "voucher":
            messages["delivery_type"] = ["Send `top_up` to buy a top-up."]
        return messages

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "product_id" not in attrs and "merchant_reference" not in attrs:
            raise serializers.ValidationError(
                {"product_id": ["Name the product with `product_id` or `merchant_reference`."]}
            )
        return attrs


# The document has a schema for each way to name the product: generators of clients lose a rule such
# as "exactly one of these is required".


class VoucherPurchaseByProductSerializer(VoucherPurchaseSerializer):
    """A purchase of voucher codes that names the product by its id."""

    property_rules = {"product_id": ID_RULES, "variation_id": ID_RULES}

    product_id = _product_id(required=True)
    merchant_reference = None  # type: ignore[assignment]  # removes the field


class VoucherPurchaseByReferenceSerializer(VoucherPurchaseSerializer):
    """A purchase of voucher codes that names the product by your own name for it."""

    property_rules = {
        "merchant_reference": {"pattern": ASCII_PATTERN},
        "variation_id": ID_RULES,
    }

    product_id = None  # type: ignore[assignment]  # removes the field
    merchant_reference = _merchant_reference(required=True)


class TopUpPurchaseSerializer(StrictSerializer):
    """A purchase of one top-up."""

    property_rules = {
        "system_product_id": ID_RULES,
        "player_id": {"pattern": PLAYER_ID_PATTERN, "maxLength": MAX_PLAYER_ID_LENGTH},
        "fields": {"maxProperties": MAX_FIELDS},
    }

    delivery_type = serializers.ChoiceField(["top_up"], help_text="Always `top_up`.")
    system_product_id = StrictIntegerField(
        min_value=1, max_value=MAX_ID, help_text="The `id` from `GET /topup-products`."
    )
    player_id = StrictRegexField(
        PLAYER_ID_PATTERN[1:-1],
        help_text="The player id, sent as a string so that leading zeroes are kept.",
    )
    quantity = StrictIntegerField(
        min_value=1, max_value=1, default=1, help_text="Only 1: one top-up per request."
    )
    fields = serializers.DictField(  # type: ignore[assignment]  # the contract's own word
        child=StrictStringField(
            max_length=MAX_FIELD_VALUE_LENGTH, allow_null=True, allow_blank=True
        ),
        required=False,
        help_text="The values that the game needs. The name of each value is the `id` of its"
        " field in the top-up product. Unknown, missing or invalid fields are refused before any"
        " debit. The player id must not be sent here.",
    )

    def validate_fields(self, values: dict[str, str | None]) -> dict[str, str | None]:
        if len(values) > MAX_FIELDS:
            raise serializers.ValidationError(f"Send at most {MAX_FIELDS} fields.")
        return values


class PurchaseSerializer(OneOfSerializer):
    """A purchase of voucher codes, or, with the `delivery_type` `top_up`, of a top-up."""

    shapes = (
        VoucherPurchaseByProductSerializer,
        VoucherPurchaseByReferenceSerializer,
        TopUpPurchaseSerializer,
    )


# One instance each, shared by all requests: creating a serializer copies every field, and
# `run_validation` keeps no state.
_VOUCHER_PURCHASE = VoucherPurchaseSerializer()
_TOPUP_PURCHASE = TopUpPurchaseSerializer()


def read_purchase(body: dict[str, Any], *, topup: bool) -> dict[str, Any]:
    """The validated fields. Raises `validation_failed` or `product_reference_ambiguous`."""
    serializer = _TOPUP_PURCHASE if topup else _VOUCHER_PURCHASE
    values: dict[str, Any] = serializer.run_validation(body)
    return values
