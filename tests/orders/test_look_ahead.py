"""What is looked up with the API key reaches only a request that may have it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from accounts.api_access.keys import digest_of, prefix_of
from accounts.models import Account, ApiClient, ApiKey
from idempotency.models import IdempotencyRecord
from tests.contract.situations import data, refusal
from tests.factories import Merchant, make_client, make_merchant, make_product

pytestmark = pytest.mark.django_db

KEY = "look-ahead"


@pytest.fixture
def bought(merchant: Merchant) -> dict[str, Any]:
    """The body of a purchase, its response, and the reference of its order."""
    body = {"product_id": make_product(codes=5).pk, "quantity": 2}
    response = merchant.buy(KEY, **body)
    return {"body": body, "response": response, "reference": data(response)["reference"]}


def look_up(function: str, *arguments: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        places = ", ".join(["%s"] * len(arguments))
        cursor.execute(f"SELECT * FROM {function}({places})", arguments)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_the_database_looks_nothing_up_without_the_secret(
    merchant: Merchant, bought: dict[str, Any]
) -> None:
    prefix, right, wrong = prefix_of(merchant.key), digest_of(merchant.key), digest_of("another")
    for function, what, column in (
        ("orders_find_key_and_success", KEY, "response"),
        ("orders_find_key_and_order", bought["reference"], "sealed_codes"),
    ):
        (key,) = look_up("accounts_find_key", prefix)
        (found,) = look_up(function, prefix, right, what)
        assert found[column] is not None
        assert {name: found[name] for name in key} == key
        (nothing,) = look_up(function, prefix, wrong, what)
        assert {name: value for name, value in nothing.items() if value is not None} == {
            name: value for name, value in key.items() if value is not None
        }
        (other,) = look_up(function, prefix, right, f"{what}X")
        assert other[column] is None
        assert look_up(function, "0" * 12, right, what) == []


def test_the_database_looks_nothing_up_for_another_client(
    merchant: Merchant, bought: dict[str, Any]
) -> None:
    """Not even for one of the same account."""
    for other in (make_merchant(), Merchant(make_client(merchant.account))):
        key = (prefix_of(other.key), digest_of(other.key))
        assert look_up("orders_find_key_and_success", *key, KEY)[0]["response"] is None
        assert (
            look_up("orders_find_key_and_order", *key, bought["reference"])[0]["codes_mac"] is None
        )


SPOILT: dict[str, tuple[Callable[[Merchant], object], str]] = {
    "the secret": (
        lambda merchant: setattr(merchant, "key", f"{merchant.key[:-64]}{'0' * 64}"),
        "invalid_token",
    ),
    "a revoked key": (lambda _: ApiKey.objects.all().delete(), "invalid_token"),
    "the client": (lambda _: ApiClient.objects.update(enabled=False), "client_disabled"),
    "the account": (lambda _: Account.objects.update(enabled=False), "client_disabled"),
    "the address": (
        lambda _: ApiClient.objects.update(allowed_networks=["192.0.2.1"]),
        "ip_not_allowed",
    ),
    "the rate": (
        lambda merchant: (
            ApiClient.objects.update(rate_limit_per_minute=1),
            merchant.get("/ping"),
            merchant.get("/ping"),
        ),
        "rate_limited",
    ),
}


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_refused_request_gets_nothing_that_was_looked_up(
    spoil: str, merchant: Merchant, bought: dict[str, Any]
) -> None:
    spoil_it, code = SPOILT[spoil]
    spoil_it(merchant)
    for response in (
        merchant.buy(KEY, **bought["body"]),
        merchant.get(f"/orders/{bought['reference']}"),
    ):
        assert refusal(response)[1] == code
        assert "Idempotent-Replay" not in response
        assert set(response.json()["error"]) <= {"code", "message", "retry_after_seconds"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "validation_failed"),
        (json.dumps({"product_id": 1}), "validation_failed"),
        (json.dumps({"product_id": 1, "quantity": 1, "merchant_reference": "a"}),
         "product_reference_ambiguous"),
        (json.dumps({"product_id": 1, "quantity": 1}), "idempotency_key_reused"),
    ],
)  # fmt: skip
def test_another_body_gets_no_stored_success(
    body: str, code: str, merchant: Merchant, bought: dict[str, Any]
) -> None:
    assert refusal(merchant.post(body, key=KEY))[1] == code
    again = merchant.buy(KEY, **bought["body"])
    assert again["Idempotent-Replay"] == "true"
    assert again.content == bought["response"].content


def test_an_unfinished_attempt_is_no_stored_success(
    merchant: Merchant, bought: dict[str, Any]
) -> None:
    IdempotencyRecord.objects.update(response=None)
    assert refusal(merchant.buy(KEY, **bought["body"]))[1] == "request_in_progress"


def test_the_order_of_a_path_answers_no_purchase(
    merchant: Merchant, bought: dict[str, Any]
) -> None:
    """A look-up belongs to its request: the next one with another key buys."""
    merchant.get(f"/orders/{bought['reference']}")
    assert data(merchant.buy("another", **bought["body"]))["reference"] != bought["reference"]
