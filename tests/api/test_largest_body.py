"""The largest purchase that the contract allows fits the body limit (contract, "Limits").

JSON libraries differ in what they escape and how they indent. Python's json.dumps writes every
character outside ASCII as an escape: twelve bytes for one outside the Basic Multilingual Plane.
"""

import json
from typing import Any

import pytest
from django.conf import settings

from tests.factories import make_field, make_merchant, make_topup_product
from tests.live import LiveServer

pytestmark = pytest.mark.django_db(transaction=True)

WIDEST = "\U0001f600"  # written as \ud83d\ude00


def largest_purchase(merchant_fields: list[int], product: int) -> dict[str, Any]:
    return {
        "delivery_type": "top_up",
        "system_product_id": product,
        "player_id": "a" * 64,
        "quantity": 1,
        "fields": {str(number): WIDEST * 255 for number in merchant_fields},
    }


@pytest.mark.parametrize("indent", [None, 2, 8])
def test_the_largest_purchase_buys(live: LiveServer, indent: int | None) -> None:
    merchant, product = make_merchant(), make_topup_product()
    merchant.http = live.http
    numbers = [make_field(product).number for _ in range(30)]
    body = json.dumps(largest_purchase(numbers, product.pk), indent=indent).encode()
    assert len(body) > 30 * 255 * 12

    assert merchant.post(body, key="one").status_code == 201


def test_the_largest_field_ids_are_refused_by_the_fields_and_not_by_size(live: LiveServer) -> None:
    merchant = make_merchant()
    merchant.http = live.http
    unknown = [2**63 - 1 - number for number in range(30)]
    body = json.dumps(largest_purchase(unknown, 2**63 - 1), indent="\t" * 8).encode()

    answer = merchant.post(body, key="one")

    assert answer.status_code == 422


def test_the_limit_leaves_room_for_white_space() -> None:
    body = json.dumps(largest_purchase([2**63 - 1 - each for each in range(30)], 2**63 - 1))
    assert len(body) * 1.3 < settings.MAX_BODY_BYTES < 2 * len(body)
