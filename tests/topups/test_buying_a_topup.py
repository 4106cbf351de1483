"""A top-up purchase debits once, takes one from the stock, and opens a fulfilment."""

import json
from typing import Any

import pytest
from django.db import DatabaseError

from core.database.functions import query
from orders.models import Order
from tests.factories import Merchant, make_category, make_field, make_merchant, make_topup_product
from tests.neighbour import ours
from topups.models import Fulfilment, TopUpProduct
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)


def buy(merchant: Merchant, product: TopUpProduct, key: str | None = None, **body: Any) -> Any:
    body = {"player_id": "0012345", **body}
    return merchant.buy(key, delivery_type="top_up", system_product_id=product.pk, **body)


def assert_refused(merchant: Merchant, answer: Any, status: int, **error: Any) -> None:
    """The answer is this error, and nothing happened."""
    assert answer.status_code == status, answer.content
    assert error.items() <= answer.json()["error"].items()
    assert not ours(Order).exists()
    assert not ours(Fulfilment).exists()
    assert ours(Wallet).get().balance == 100


def test_only_the_stock_of_the_bought_product_counts(merchant: Merchant) -> None:
    counted, other = (make_topup_product(available_stock=2) for _ in range(2))
    sold_out, _ = make_topup_product(available_stock=0), make_topup_product()

    assert buy(merchant, counted).status_code == 201
    assert buy(merchant, sold_out).json()["error"]["reason"] == "insufficient_stock"

    for product in (counted, other, sold_out):
        product.refresh_from_db()
    stocks = [each.available_stock for each in (counted, other, sold_out)]
    assert stocks == [1, 2, 0]


def test_an_unknown_product_has_no_offer(merchant: Merchant) -> None:
    """A product can be deleted after the purchase has read its fields."""
    with pytest.raises(DatabaseError, match="product_unknown"):
        query("topups_offer", merchant.client.account_id, 2**40)


def test_the_answer_is_a_pending_order_with_every_field(merchant: Merchant) -> None:
    product = make_topup_product(price="4.99", available_stock=2)

    answer = buy(merchant, product)

    assert answer.status_code == 201
    order = answer.json()["data"]
    reference, created_at = order.pop("reference"), order.pop("created_at")
    assert order == {
        "status": "pending",
        "delivery_type": "top_up",
        "system_product_id": product.pk,
        "player_id": "0012345",
        "quantity": 1,
        "units": 1,
        "units_per_sale": 1,
        "unit_price": 4.99,
        "total_price": 4.99,
        "currency": "USD",
        "fulfilment_status": "pending",
        "refunded": False,
        "failure_reason": None,
        "codes": [],
    }
    shown = merchant.get(f"/orders/{reference}").json()["data"]
    assert shown == {**order, "reference": reference, "created_at": created_at}
    assert merchant.get("/balance").json()["data"]["balance"] == 95.01
    product.refresh_from_db()
    assert product.available_stock == 1


def test_the_same_key_replays_and_debits_once(merchant: Merchant) -> None:
    product = make_topup_product()

    first, again = buy(merchant, product, "one"), buy(merchant, product, "one")

    assert again["Idempotent-Replay"] == "true"
    assert again.content == first.content
    assert ours(Fulfilment).count() == ours(Order).count() == 1


def test_the_history_starts_with_the_purchase(merchant: Merchant) -> None:
    buy(merchant, make_topup_product())

    event = ours(Fulfilment).get().events.get()
    assert (event.move, event.from_status, event.to_status) == ("open", None, "pending")
    assert (event.actor, event.channel) == (f"client:{merchant.client.pk}", "api")


def test_field_values_reach_the_operators_with_their_labels(merchant: Merchant) -> None:
    product = make_topup_product()
    server = make_field(product, "dropdown", label="Server", options=["eu", "us"])
    make_field(product, "text", required=False)

    buy(merchant, product, fields={str(server.number): "eu"})

    (shown,) = ours(Fulfilment).get().fields
    assert (shown["label"], shown["value"]) == ("Server", "eu")


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("text", None),
        ("text", ""),
        ("text", "0012345"),
        ("number", "twelve"),
        ("number", "١٢"),
        ("number", "1e3"),
        ("number", "12\n"),
        ("dropdown", "EU"),
        ("text", "x" * 256),
        ("text", 5),
        ("text", ["eu"]),
    ],
)
def test_a_bad_field_value_is_refused_before_any_debit(
    merchant: Merchant, type: str, value: Any
) -> None:
    product = make_topup_product()
    field = make_field(product, type, options=["eu"] if type == "dropdown" else [])

    answer = buy(merchant, product, fields={str(field.number): value})

    assert_refused(merchant, answer, 422, code="validation_failed")
    assert list(answer.json()["error"]["fields"]) == [f"fields.{field.number}"]


@pytest.mark.parametrize("blank", ["", " ", "\u200b"], ids=ascii)
@pytest.mark.parametrize("type", ["text", "number", "dropdown"])
def test_a_blank_optional_field_counts_as_not_sent(
    merchant: Merchant, type: str, blank: str
) -> None:
    product = make_topup_product()
    options = ["eu"] if type == "dropdown" else []
    field = make_field(product, type, options=options, required=False)

    answer = buy(merchant, product, fields={str(field.number): blank})

    assert answer.status_code == 201, answer.content
    assert ours(Fulfilment).get().fields == []


@pytest.mark.parametrize("blank", ["", " ", "\u200b"], ids=ascii)
@pytest.mark.parametrize("type", ["text", "number", "dropdown"])
def test_a_blank_required_field_is_refused(merchant: Merchant, type: str, blank: str) -> None:
    product = make_topup_product()
    field = make_field(product, type, options=["eu"] if type == "dropdown" else [])

    answer = buy(merchant, product, fields={str(field.number): blank})

    assert_refused(merchant, answer, 422, code="validation_failed")
    name = f"fields.{field.number}"
    assert answer.json()["error"]["fields"] == {name: [f"“{field.label}” is required."]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["eu"], "must be `eu`."),
        (["eu", "us"], "must be one of `eu`, `us`."),
        ([f"s{n}" for n in range(30)], "must be one of 30 values: `s0`, `s1`,"),
    ],
)
def test_a_wrong_option_lists_the_allowed_ones(
    merchant: Merchant, options: list[str], message: str
) -> None:
    product = make_topup_product()
    field = make_field(product, "dropdown", options=options)

    answer = buy(merchant, product, fields={str(field.number): "x"})

    (said,) = answer.json()["error"]["fields"][f"fields.{field.number}"]
    assert f"“{field.label}” {message}" in said
    assert len(said) < 400


def test_a_value_is_kept_as_sent(merchant: Merchant) -> None:
    product = make_topup_product()
    field = make_field(product, "text", required=False)

    buy(merchant, product, fields={str(field.number): " \u200bab "})

    (shown,) = ours(Fulfilment).get().fields
    assert shown["value"] == " \u200bab "


@pytest.mark.parametrize(
    "body",
    [
        {"player_id": ""},
        {"player_id": "a b"},
        {"player_id": "abc\n"},
        {"player_id": "x" * 65},
        {"player_id": 12345},
        {"player_id": None},
        {"quantity": 2},
        {"quantity": "1"},
        {"quantity": True},
        {"product_id": 1},
        {"variation_id": None},
        {"merchant_reference": "abc"},
        {"system_product_id": 999_999},
        {"system_product_id": 2**63},
        {"system_product_id": 0},
        {"system_product_id": "1"},
        {"fields": []},
        {"fields": None},
        {"fields": {"999": "x"}},
        {"fields": {"player_id": "0012345"}},
        {"fields": {str(number): None for number in range(31)}},
    ],
    ids=lambda body: json.dumps(body)[:40],
)
def test_a_bad_body_is_refused_before_any_debit(merchant: Merchant, body: dict[str, Any]) -> None:
    product = make_topup_product()

    answer = merchant.buy(
        **{
            "delivery_type": "top_up",
            "system_product_id": product.pk,
            "player_id": "0012345",
            **body,
        }
    )

    assert_refused(merchant, answer, 422, code="validation_failed")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"active": False}, "product_inactive"),
        ({"published": False}, "product_inactive"),
        ({"external_provider": "acme"}, "product_inactive"),
        ({"currency": "EUR"}, "price_unavailable"),
        ({"available_stock": 0}, "insufficient_stock"),
        ({"price": "100.01"}, "insufficient_balance"),
    ],
)
def test_a_refusal_names_its_reason(
    merchant: Merchant, fields: dict[str, Any], reason: str
) -> None:
    answer = buy(merchant, make_topup_product(**fields))

    assert_refused(merchant, answer, 409, code="order_refused", reason=reason)


def test_products_of_an_inactive_category_are_not_sold(merchant: Merchant) -> None:
    answer = buy(merchant, make_topup_product(category=make_category(active=False)))

    assert_refused(merchant, answer, 409, code="order_refused", reason="product_inactive")


def test_a_client_without_a_wallet_is_refused_before_stock(db: None) -> None:
    merchant = make_merchant()
    merchant.client.account = None
    merchant.client.save()

    answer = buy(merchant, make_topup_product(available_stock=0))

    assert_refused(merchant, answer, 409, code="order_refused", reason="client_without_wallet")


def test_a_refusal_releases_the_key(merchant: Merchant) -> None:
    product = make_topup_product(available_stock=0)
    assert buy(merchant, product, "one").status_code == 409
    TopUpProduct.objects.update(available_stock=1)

    assert buy(merchant, product, "one").status_code == 201


def test_stock_that_is_not_counted_never_runs_out(merchant: Merchant) -> None:
    product = make_topup_product(available_stock=None)

    assert buy(merchant, product).status_code == 201

    product.refresh_from_db()
    assert product.available_stock is None
    assert ours(Fulfilment).get().takes_stock is False
