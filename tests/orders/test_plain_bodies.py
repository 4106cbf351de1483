"""A usual body of a purchase passes its serializer by, with the same result."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

from catalogue.models import MAX_QUANTITY
from config.api.errors import ApiError
from config.api.serializer_fields import MAX_ID, StrictSerializer
from orders.requests import (
    TopUpPurchaseSerializer,
    VoucherPurchaseSerializer,
    is_plain,
    is_plain_topup,
    read_topup_purchase,
)
from topups.models import MAX_FIELD_VALUE_LENGTH, MAX_FIELDS, MAX_PLAYER_ID_LENGTH

LIMITS = [0, 1, MAX_QUANTITY, MAX_QUANTITY + 1, MAX_ID, MAX_ID + 1]
numbers = st.one_of(
    st.integers(), st.sampled_from(LIMITS), st.floats(), st.booleans(), st.none(), st.text()
)


def validate(serializer: type[StrictSerializer], body: dict[str, Any]) -> dict[str, Any] | None:
    """The validated body; None if it is refused."""
    try:
        values: dict[str, Any] = serializer().run_validation(body)
    except (ApiError, ValidationError):
        return None
    return values


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "product_id": numbers,
            "quantity": numbers,
            "variation_id": numbers,
            "merchant_reference": numbers,
            "delivery_type": st.sampled_from(["voucher", "top_up"]),
        },
    )
)
def test_a_plain_body_is_what_the_serializer_returns(body: dict[str, Any]) -> None:
    if is_plain(body):
        assert validate(VoucherPurchaseSerializer, body) == body


@pytest.mark.parametrize("product", [*LIMITS, True, 1.0, "1", None])
@pytest.mark.parametrize("quantity", [*LIMITS, True, 1.0, "1", None])
def test_a_plain_body_has_a_valid_product_and_quantity(product: Any, quantity: Any) -> None:
    body = {"product_id": product, "quantity": quantity}
    assert is_plain(body) == (validate(VoucherPurchaseSerializer, body) is not None)


TOPUP = {"delivery_type": "top_up", "system_product_id": 1, "player_id": "007", "fields": {}}
OTHER_VALUES: dict[str, list[Any]] = {
    "delivery_type": ["voucher", None, 1],
    "system_product_id": [*LIMITS, True, 1.0, "1", None],
    "player_id": [
        *("", "a" * MAX_PLAYER_ID_LENGTH, "a" * (MAX_PLAYER_ID_LENGTH + 1), "a\n", "ä", " a"),
        *(7, None, "A_-z"),
    ],
    "fields": [
        *({"1": "eu"}, {"1": ""}, {"1": 5}, {"1": ["eu"]}, {"1": True}, [], "", None),
        {"1": "a" * MAX_FIELD_VALUE_LENGTH},
        {"1": "a" * (MAX_FIELD_VALUE_LENGTH + 1)},
        {str(number): "" for number in range(MAX_FIELDS)},
        {str(number): "" for number in range(MAX_FIELDS + 1)},
    ],
    "quantity": [0, 2, True],
    "product_id": [1],
}


@pytest.mark.parametrize("name", OTHER_VALUES)
def test_a_plain_topup_is_what_the_serializer_returns(name: str) -> None:
    for value in OTHER_VALUES[name]:
        body = {**TOPUP, name: value}
        validated = validate(TopUpPurchaseSerializer, body)
        assert is_plain_topup(body) == (validated is not None), body
        if validated is not None:
            assert read_topup_purchase(body) == validated


@pytest.mark.parametrize("name", TOPUP)
def test_a_topup_without_one_of_its_members(name: str) -> None:
    body = {member: value for member, value in TOPUP.items() if member != name}
    assert is_plain_topup(body) == (validate(TopUpPurchaseSerializer, body) is not None)
