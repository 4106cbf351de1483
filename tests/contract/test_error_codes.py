"""Contract, "Errors": a request provokes each code, with its HTTP status and its members."""

from collections.abc import Callable
from typing import Any

import pytest

from core.api.errors import ErrorCode
from tests.answers import CheckedClient
from tests.contract.rows import ERROR_CODES, FIELDS, table
from tests.contract.situations import (
    WINDOW,
    age_records,
    error,
    lose_answer,
    make_shop,
    unreadable_codes,
)
from tests.factories import (
    Merchant,
    link,
    make_account,
    make_client,
    make_merchant,
    make_product,
    make_variation,
    own_shelf,
)

pytestmark = pytest.mark.django_db(transaction=True)


def _ping(**client: Any) -> Any:
    return make_merchant(**client).get("/ping")


def _rate_limited() -> Any:
    merchant = make_merchant(rate_limit_per_minute=1)
    merchant.get("/ping")
    return merchant.get("/ping")


def _without_wallet() -> Any:
    return Merchant(make_client(make_account(wallet=False))).get("/balance")


def _reused() -> Any:
    shop = make_shop()
    shop.buy("one")
    return shop.buy("one", quantity=2)


def _in_progress() -> Any:
    shop = make_shop()
    lose_answer(shop, "one")
    return shop.buy("one")


def _abandoned() -> Any:
    shop = make_shop()
    lose_answer(shop, "one")
    age_records(WINDOW)
    return shop.buy("one")


def _mismatch() -> Any:
    return make_shop().buy(variation_id=make_variation(make_product()).pk)


def _unknown_reference() -> Any:
    return make_shop().buy(product_id=..., merchant_reference="unknown")


def _disagreeing_reference() -> Any:
    shop = make_shop()
    account = shop.merchant.account
    link(account, "mine", own_shelf(shop.product))
    variation = make_variation(shop.product)
    return shop.buy(product_id=..., merchant_reference="mine", variation_id=variation.pk)


def _lost_response() -> Any:
    shop = make_shop()
    with unreadable_codes(shop.product):
        return shop.buy()


CASES: dict[str, Callable[[], Any]] = {
    "missing_token": lambda: CheckedClient().get("/api/v1/ping"),
    "invalid_token": lambda: CheckedClient().get(
        "/api/v1/ping", headers={"Authorization": "Bearer x"}
    ),
    "client_disabled": lambda: _ping(enabled=False),
    "ip_not_allowed": lambda: _ping(allowed_networks=["192.0.2.1"]),
    "rate_limited": _rate_limited,
    "client_without_wallet": _without_wallet,
    "idempotency_key_required": lambda: make_merchant().post("{}", key=None),
    "idempotency_key_too_long": lambda: make_merchant().post("{}", key="k" * 129),
    "idempotency_key_reused": _reused,
    "request_in_progress": _in_progress,
    "request_abandoned": _abandoned,
    "validation_failed": lambda: make_merchant().buy(),
    "variation_mismatch": _mismatch,
    "product_not_found": lambda: make_merchant().get("/products/999999"),
    "product_reference_not_found": _unknown_reference,
    "product_reference_ambiguous": _disagreeing_reference,
    "order_not_found": lambda: make_merchant().get("/orders/UNKNOWN"),
    "order_refused": lambda: make_shop(codes=0).buy(),
    "server_error": _lost_response,
}

# The only members of the error object besides code and message.
EXTRAS = {
    "rate_limited": {"retry_after_seconds"},
    "request_abandoned": {"reference"},
    "validation_failed": {"fields"},
    "product_reference_not_found": {"merchant_reference"},
    "order_refused": {"reason"},
}


def test_the_error_codes_are_those_of_the_contract() -> None:
    assert {code.value: int(code.status) for code in ErrorCode} == ERROR_CODES


@table(ERROR_CODES, {code: (code, case) for code, case in CASES.items()})
def test_each_code_has_its_status_and_members(case: tuple[str, Callable[[], Any]]) -> None:
    code, provoke = case
    answer = provoke()
    found = error(answer)
    assert (answer.status_code, found["code"]) == (ERROR_CODES[code], code)
    assert found.keys() == {"code", "message", *EXTRAS.get(code, ())}
    assert found["message"]


def test_the_reference_of_an_abandoned_request_is_its_order() -> None:
    shop = make_shop()
    lose_answer(shop, "one", quantity=2)
    age_records(WINDOW)
    reference = error(shop.buy("one", quantity=2))["reference"]
    order = shop.merchant.get(f"/orders/{reference}").json()["data"]
    assert (order["status"], len(order["codes"])) == ("completed", 2)


def test_an_unknown_merchant_reference_is_returned_unchanged() -> None:
    sent = "Ünï 1./:#-_" + "x" * 53
    answer = make_shop().buy(product_id=..., merchant_reference=sent)
    assert error(answer)["merchant_reference"] == sent


def test_a_rate_limited_client_is_told_how_long_to_wait() -> None:
    found = error(_rate_limited())
    assert 1 <= found["retry_after_seconds"] <= 60


def test_the_error_object_has_no_other_members() -> None:
    promised = {name for extras in EXTRAS.values() for name in extras}
    assert promised | {"code", "message", "recovery"} == FIELDS["Error"].keys()
