"""When a purchase fails two checks, the response is that of the earlier check."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from accounts.models import ApiClient
from catalogue.models import Product, Shelf
from idempotency.models import IdempotencyRecord
from tests.answers import CheckedClient
from tests.contract.rows import CHECKS
from tests.contract.situations import make_shop, message, refusal
from tests.factories import Merchant, make_account, make_client, make_merchant

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Attempt:
    """One purchase request, with everything that a test can spoil."""

    merchant: Merchant
    product: Product
    method: str = "POST"
    key: str = "one"
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)

    def send(self) -> Any:
        headers = {
            "Authorization": f"Bearer {self.merchant.key}",
            "Idempotency-Key": self.key,
            **self.headers,
        }
        body = {"product_id": self.product.pk, "quantity": 1, **self.body}
        body = {name: value for name, value in body.items() if value is not ...}
        return CheckedClient().generic(
            self.method, "/api/v1/orders", json.dumps(body), "application/json", headers=headers
        )


def _method(attempt: Attempt) -> None:
    attempt.method = "DELETE"


def _authentication(attempt: Attempt) -> None:
    attempt.headers["Authorization"] = "Bearer junk"


def _allowlist(attempt: Attempt) -> None:
    _update_client(attempt, allowed_networks=["192.0.2.1"])


def _rate_limit(attempt: Attempt) -> None:
    _update_client(attempt, rate_limit_per_minute=1)
    attempt.merchant.get("/ping")


def _update_client(attempt: Attempt, **fields: Any) -> None:
    ApiClient.objects.filter(pk=attempt.merchant.client.pk).update(**fields)


def _key(attempt: Attempt) -> None:
    attempt.key = "k" * 129


def _fields(attempt: Attempt) -> None:
    attempt.body["unknown"] = 1


def _lookup(attempt: Attempt) -> None:
    """The key was used for another request."""
    IdempotencyRecord.objects.create(
        client=attempt.merchant.client, key=attempt.key, fingerprint=b"of another request"
    )


def _reference(attempt: Attempt) -> None:
    attempt.body |= {"product_id": ..., "merchant_reference": "unknown"}


def _variation(attempt: Attempt) -> None:
    attempt.body["variation_id"] = 10**15


def _active(attempt: Attempt) -> None:
    Product.objects.update(active=False)


def _step(attempt: Attempt) -> None:
    Shelf.objects.update(quantity_step=2)


def _price(attempt: Attempt) -> None:
    Shelf.objects.update(price=None)


def _wallet(attempt: Attempt) -> None:
    attempt.merchant = Merchant(make_client(make_account(wallet=False)))


def _stock(attempt: Attempt) -> None:
    Shelf.objects.update(available_stock=0)


def _balance(attempt: Attempt) -> None:
    attempt.merchant = make_merchant(balance="0")


@dataclass(frozen=True)
class Check:
    """How to make one check fail, and the status and code of the response."""

    spoil: Callable[[Attempt], None]
    answer: tuple[int, Any]


CASES = {
    "method": Check(_method, (405, "message")),
    "authentication": Check(_authentication, (401, "invalid_token")),
    "allowlist": Check(_allowlist, (403, "ip_not_allowed")),
    "rate limit": Check(_rate_limit, (429, "rate_limited")),
    "idempotency key": Check(_key, (400, "idempotency_key_too_long")),
    "fields": Check(_fields, (422, "validation_failed")),
    "idempotency lookup": Check(_lookup, (409, "idempotency_key_reused")),
    "reference": Check(_reference, (404, "product_reference_not_found")),
    "variation": Check(_variation, (422, "variation_mismatch")),
    "active": Check(_active, (409, "product_inactive")),
    "quantity_step": Check(_step, (409, "quantity_step")),
    "price": Check(_price, (409, "price_unavailable")),
    "wallet": Check(_wallet, (409, "client_without_wallet")),
    "stock": Check(_stock, (409, "insufficient_stock")),
    "balance": Check(_balance, (409, "insufficient_balance")),
}
# Pairs of checks that cannot fail together.
IMPOSSIBLE = {
    ("idempotency key", "idempotency lookup"): "a key that is too long has no record",
    ("reference", "variation"): "an unknown reference has no variation to disagree with",
    ("wallet", "balance"): "a client without a wallet has no balance",
}
# These replace the merchant, so they run before those that change the merchant.
FIRST = ["wallet", "balance"]


def pairs() -> list[tuple[str, str]]:
    return [
        (first, second)
        for place, first in enumerate(CHECKS)
        for second in CHECKS[place + 1 :]
        if (first, second) not in IMPOSSIBLE
    ]


def status_and_code(answer: Any) -> tuple[int, str]:
    if "success" not in answer.json():
        status, members = message(answer)
        return status, members[0]
    status, code, reason = refusal(answer)
    return status, reason or code


def send_spoiled(*broken: str) -> Any:
    shop = make_shop()
    attempt = Attempt(shop.merchant, shop.product)
    for name in sorted(broken, key=lambda name: name not in FIRST):
        CASES[name].spoil(attempt)
    return attempt.send()


def test_every_check_has_a_case() -> None:
    assert list(CASES) == CHECKS


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_alone(name: str) -> None:
    assert status_and_code(send_spoiled(name)) == CASES[name].answer


def test_the_earlier_of_two_failed_checks_responds() -> None:
    answers = {both: status_and_code(send_spoiled(*both)) for both in pairs()}
    assert answers == {both: CASES[both[0]].answer for both in answers}
