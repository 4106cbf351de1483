"""Contract, "Idempotency rules": one purchase per key and client."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from catalogue.models import Product, ReferenceLink, Shelf
from tests.concurrency.racing import without_triggers
from tests.contract.rows import IDEMPOTENCY_RULES, table
from tests.contract.situations import (
    Shop,
    data,
    error,
    lose_answer,
    make_shop,
    money,
    refusal,
)
from tests.factories import Merchant, deposit, link, make_client, own_shelf
from tests.neighbour import ours

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/api/v1/orders"


def key_is_required() -> None:
    shop = make_shop()
    before = money()
    for key in (None, "", " ", "\t"):
        answer = shop.merchant.post(json.dumps({"product_id": 1, "quantity": 1}), key=key)
        assert refusal(answer)[:2] == (400, "idempotency_key_required")
    assert money() == before


def key_is_never_truncated() -> None:
    shop = make_shop()
    assert refusal(shop.buy("k" * 129))[:2] == (400, "idempotency_key_too_long")
    assert refusal(shop.buy("k" * 100_000))[:2] == (400, "idempotency_key_too_long")
    first = shop.buy("k" * 128)
    assert (first.status_code, shop.buy("k" * 127 + "K").status_code) == (201, 201)
    assert shop.buy("k" * 128)["Idempotent-Replay"] == "true"


def different_content_is_refused() -> None:
    shop = make_shop()
    shop.buy("one", quantity=1)
    before = money()
    for body in ({"quantity": 2}, {"delivery_type": "voucher"}, {"variation_id": None}):
        assert refusal(shop.buy("one", **body))[:2] == (409, "idempotency_key_reused")
    assert money() == before


def different_content_is_refused_while_in_progress() -> None:
    shop = make_shop()
    lose_answer(shop, "one")
    assert refusal(shop.buy("one", quantity=2))[:2] == (409, "idempotency_key_reused")


def formatting_does_not_matter() -> None:
    shop = make_shop()
    product = shop.product.pk
    first = shop.buy("one")
    for body in (
        f'{{"quantity":1,"product_id":{product}}}',
        f' {{\n"product_id" :\t{product} , "quantity": 1 }}\r\n',
        f'{{"product\\u005fid": {product}, "quantity": 1}}',
    ):
        assert shop.merchant.post(body, key="one").content == first.content


def query_parameters_matter() -> None:
    shop = make_shop()
    shop.buy("one")
    answer = shop.merchant.http.post(
        f"{URL}?source=a",
        json.dumps({"product_id": shop.product.pk, "quantity": 1}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {shop.merchant.key}", "Idempotency-Key": "one"},
    )
    assert refusal(answer)[:2] == (409, "idempotency_key_reused")


def a_failure_keeps_the_key() -> None:
    shop = make_shop()
    lose_answer(shop, "one")
    assert refusal(shop.buy("one"))[:2] == (409, "request_in_progress")


def a_replay_is_the_original_answer() -> None:
    """Later changes of link, product, price, codes and stock do not change the replay."""
    shop = make_shop()
    account = shop.merchant.account
    link(account, "mine", own_shelf(shop.product))
    body: dict[str, Any] = {"product_id": ..., "merchant_reference": "mine"}
    first = shop.buy("one", **body)
    ours(ReferenceLink).delete()
    Product.objects.update(active=False)
    Shelf.objects.update(price=None, quantity_step=7, available_stock=0)
    without_triggers("UPDATE catalogue_vouchercode SET sealed = 'damaged'")
    assert shop.buy("one", **body).content == first.content


def another_key_buys_again() -> None:
    """Another key is a new purchase. test_idempotency_records.py tests a key after its cleanup."""
    shop = make_shop()
    shop.buy("one")
    shop.buy("another")
    assert data(shop.merchant.get("/orders"))["pagination"]["total"] == 2


CASES: dict[str, Callable[[], None]] = {
    "rule 1": key_is_required,
    "rule 1: too long": key_is_never_truncated,
    "rule 2": different_content_is_refused,
    "rule 2: in progress": different_content_is_refused_while_in_progress,
    "rule 3": formatting_does_not_matter,
    "rule 3: query": query_parameters_matter,
    "rule 4": a_failure_keeps_the_key,
    "rule 5": a_replay_is_the_original_answer,
    "rule 6": another_key_buys_again,
}


@table(IDEMPOTENCY_RULES, CASES)
def test_each_idempotency_rule(case: Callable[[], None]) -> None:
    case()


def test_keys_are_scoped_to_one_client() -> None:
    shop = make_shop()
    sibling = Merchant(make_client(shop.merchant.client.account))
    references = {
        data(Shop(each, shop.product).buy("one"))["reference"] for each in (shop.merchant, sibling)
    }
    assert len(references) == 2


def test_keys_are_compared_exactly() -> None:
    shop = make_shop(price="1.00")
    keys = ["a", "A", "a b", "a  b", '"a"']
    references = {data(shop.buy(key, quantity=1))["reference"] for key in keys}
    assert len(references) == 5


@pytest.mark.parametrize("key", ["sch\u00f6n", "a\x00b", "a\tb", "\x7f", "a\u0080", "a,b"])
def test_a_key_must_be_printable_ascii_without_a_comma(key: str) -> None:
    answer = make_shop().buy(key)
    assert refusal(answer)[:2] == (422, "validation_failed")
    assert list(error(answer)["fields"]) == ["Idempotency-Key"]


def test_a_refusal_releases_the_key() -> None:
    """The merchant tops up the wallet and sends the same request again."""
    shop = make_shop(balance="0", price="9.99")
    account = shop.merchant.account
    for _ in range(2):
        assert refusal(shop.buy("one"))[2] == "insufficient_balance"
    assert money().records == 0
    deposit(account=account, amount=Decimal("9.99"), actor="test")
    answer = shop.buy("one")
    assert answer.status_code == 201
    assert "Idempotent-Replay" not in answer


def test_a_refused_key_may_be_used_with_other_content() -> None:
    shop = make_shop(codes=1)
    assert refusal(shop.buy("one", quantity=2))[2] == "insufficient_stock"
    assert shop.buy("one", quantity=1).status_code == 201


def test_an_invalid_request_does_not_use_up_the_key() -> None:
    shop = make_shop()
    assert refusal(shop.buy("one", quantity="1"))[:2] == (422, "validation_failed")
    assert money().records == 0
    assert shop.buy("one").status_code == 201


def test_a_float_for_an_integer_is_refused_before_the_key() -> None:
    """1.0 is not an integer, so the body is refused before the key is looked up."""
    shop = make_shop()
    shop.buy("one")
    body = f'{{"product_id": {shop.product.pk}.0, "quantity": 1}}'
    assert refusal(shop.merchant.post(body, key="one"))[:2] == (422, "validation_failed")
