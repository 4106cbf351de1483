"""The contract's tables about top-ups: catalogue, body rules, limits, transitions."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.answers import operations, served_document
from tests.contract.rows import (
    TOP_UP_LIMITS,
    TOP_UP_LIST_PARAMETERS,
    TOP_UP_RULES,
    TOP_UP_TRANSITIONS,
    TOP_UP_VISIBILITY,
    table,
)
from tests.contract.situations import data, error, make_shop, money, refusal
from tests.contract.test_fields import check_fields
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_category,
    make_client,
    make_field,
    make_merchant,
    make_operator,
    make_topup_product,
    move_now,
)
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move
from topups.models import TopUpFieldOption, TopUpProduct

pytestmark = pytest.mark.django_db(transaction=True)


def topup(merchant: Merchant, product: TopUpProduct, key: str | None = None, **body: Any) -> Any:
    """Buys a top-up. A value of `...` leaves the field out."""
    sent = {"delivery_type": "top_up", "system_product_id": product.pk, "player_id": "0012345"}
    sent |= body
    return merchant.buy(key, **{name: value for name, value in sent.items() if value is not ...})


# The catalogue.


def test_the_top_up_list_has_exactly_the_contracts_parameters() -> None:
    documented = {
        f"{method} {path}": {each["name"] for each in operation.get("parameters", ())}
        for method, path, operation in operations(served_document())
    }
    for endpoint, parameters in TOP_UP_LIST_PARAMETERS.items():
        assert documented[endpoint] == parameters


def test_fields_and_options_keep_their_configured_order() -> None:
    category = make_category()
    product = make_topup_product(price="4.99", available_stock=3, category=category)
    late = make_field(product, "text", position=2, required=False)
    server = make_field(product, "dropdown", position=1, options=["us", "eu"])
    TopUpFieldOption.objects.filter(value="us").update(label="America")

    shown = data(make_merchant().get(f"/topup-products/{product.pk}"))

    check_fields("TopUpProduct", shown)
    assert [field["id"] for field in shown["fields"]] == [server.number, late.number]
    for field in shown["fields"]:
        check_fields("TopUpField", field)
    assert shown["fields"][0]["options"] == [
        {"value": "us", "label": "America"},
        {"value": "eu", "label": None},
    ]
    assert (shown["category"], shown["available_stock"], shown["sellable"]) == (
        category.name,
        3,
        True,
    )
    assert (shown["quantity_step"], shown["max_quantity"], shown["delivery_type"]) == (
        1,
        1,
        "top_up",
    )


def test_uncounted_stock_is_null_and_another_currency_is_not_sellable() -> None:
    product = make_topup_product(currency="EUR", price="5.00")
    shown = data(make_merchant().get(f"/topup-products/{product.pk}"))
    check_fields("TopUpProduct", shown)
    assert (shown["available_stock"], shown["category"], shown["fields"]) == (None, None, [])
    assert (shown["price"], shown["currency"], shown["sellable"]) == (5, "EUR", False)


MISSING = 1_000_001

HIDING: dict[str, Callable[[], dict[str, Any]]] = {
    "product off": lambda: {"active": False},
    "unpublished": lambda: {"published": False},
    "category off": lambda: {"category": make_category(active=False)},
    "mapped to a provider": lambda: {"external_provider": "acme"},
    "product missing": lambda: {"pk": MISSING - 1},
}


@table(TOP_UP_VISIBILITY, HIDING)
def test_a_hidden_top_up_product_is_not_found(case: Callable[[], dict[str, Any]]) -> None:
    merchant = make_merchant()
    seen, hidden = make_topup_product(), make_topup_product(**case())
    gone = MISSING if hidden.pk == MISSING - 1 else hidden.pk
    listed = [item["id"] for item in data(merchant.get("/topup-products"))["items"]]
    assert seen.pk in listed
    assert gone not in listed
    assert refusal(merchant.get(f"/topup-products/{gone}"))[:2] == (404, "product_not_found")


@pytest.mark.parametrize("product", ["0", "9223372036854775808", "9" * 4000])
def test_an_impossible_id_is_not_found(product: str) -> None:
    answer = make_merchant().get(f"/topup-products/{product}")
    assert refusal(answer)[:2] == (404, "product_not_found")


def test_a_voucher_product_is_not_a_topup_product() -> None:
    shop = make_shop()
    answer = shop.merchant.get(f"/topup-products/{shop.product.pk}")
    assert refusal(answer)[:2] == (404, "product_not_found")


def test_top_up_products_have_pages_and_search() -> None:
    merchant = make_merchant()
    for name in ("Gems 60", "GEMS 100%", "Coins"):
        make_topup_product(name=name)
    page = data(merchant.get("/topup-products", search="gems", per_page=1, page=2))
    assert [item["name"] for item in page["items"]] == ["GEMS 100%"]
    assert page["pagination"] == {"page": 2, "per_page": 1, "total": 2, "last_page": 2}
    assert data(merchant.get("/topup-products", search="%"))["pagination"]["total"] == 1
    assert data(merchant.get("/topup-products", search="\x00"))["items"] == []
    assert data(merchant.get("/topup-products"))["pagination"]["per_page"] == 50
    assert data(merchant.get("/topup-products", per_page=101))["pagination"]["per_page"] == 100


def test_fifty_products_need_as_many_queries_as_one() -> None:
    merchant = make_merchant()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert merchant.get("/topup-products", per_page=100).status_code == 200
        return len(captured)

    make_field(make_topup_product(), "dropdown", options=["a", "b"])
    one = queries()
    for _ in range(50):
        make_field(make_topup_product(), "dropdown", options=["a", "b"])
    assert queries() == one <= 5


# The purchase.


def rule_1(merchant: Merchant) -> None:
    voucher_fields: dict[str, Any] = {"product_id": 1, "variation_id": 1, "merchant_reference": "x"}
    for name, value in voucher_fields.items():
        answer = topup(merchant, make_topup_product(), None, **{name: value})
        assert refusal(answer)[:2] == (422, "validation_failed")
        assert list(error(answer)["fields"]) == [name]


def rule_2(merchant: Merchant) -> None:
    product = make_topup_product()
    field = str(make_field(product, "number").number)
    for fields in ({}, {field: None}, {field: "x"}, {field: "5", "999999": "x"}):
        assert refusal(topup(merchant, product, fields=fields))[:2] == (422, "validation_failed")


def rule_3(merchant: Merchant) -> None:
    empty, expensive = make_topup_product(available_stock=0), make_topup_product(price="100.01")
    assert refusal(topup(merchant, empty)) == (409, "order_refused", "insufficient_stock")
    assert refusal(topup(merchant, expensive)) == (409, "order_refused", "insufficient_balance")


def rule_4(merchant: Merchant) -> None:
    answer = topup(merchant, make_topup_product())
    assert answer.status_code == 201
    check_fields("TopUpOrder", data(answer))
    assert data(answer)["status"] == "pending"


@table(TOP_UP_RULES, {"rule 1": rule_1, "rule 2": rule_2, "rule 3": rule_3, "rule 4": rule_4})
def test_each_rule_of_the_top_up_body(case: Callable[[Merchant], None]) -> None:
    merchant = make_merchant()
    before = money()
    case(merchant)
    assert (money() == before) is (case is not rule_4)


@pytest.mark.parametrize("sent", [..., None, "topup", "TOP_UP", "top_up ", "", 1, ["top_up"], {}])
def test_a_wrong_delivery_type_next_to_top_up_fields_is_named(sent: Any) -> None:
    merchant, product = make_merchant(), make_topup_product()
    before = money()
    answer = topup(merchant, product, delivery_type=sent)
    assert refusal(answer)[:2] == (422, "validation_failed")
    assert "`top_up`" in error(answer)["fields"]["delivery_type"][0]
    assert money() == before


def test_a_misspelt_delivery_type_name_is_named_with_the_right_one() -> None:
    merchant, product = make_merchant(), make_topup_product()
    answer = topup(merchant, product, delivery_type=..., delivery_typ="top_up")
    assert {"delivery_type", "delivery_typ"} <= set(error(answer)["fields"])


def test_a_voucher_purchase_with_top_up_fields_need_not_name_its_delivery_type() -> None:
    """Control: `voucher` is what this merchant wants, so only the other fields are wrong."""
    answer = make_shop().buy(delivery_type="voucher", player_id="1")
    assert list(error(answer)["fields"]) == ["player_id"]


LIMITS: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "top-up quantity": (
        [{}, {"quantity": 1}],
        [{"quantity": 0}, {"quantity": 2}, {"quantity": 1.0}, {"quantity": None}],
    ),
    "player_id length": (
        [{"player_id": "a"}, {"player_id": "-_" * 32}],
        [{"player_id": ""}, {"player_id": "a" * 65}, {"player_id": "a b"}, {"player_id": "é"}],
    ),
    "fields object": (
        [{"fields": {}}],
        [{"fields": {str(number): "x" for number in range(31)}}, {"fields": {"1": "x" * 256}}],
    ),
}


@table(TOP_UP_LIMITS, LIMITS)
def test_each_top_up_limit(case: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> None:
    merchant, product = make_merchant(), make_topup_product()
    within, beyond = case
    for body in within:
        assert topup(merchant, product, **body).status_code == 201, body
    for body in beyond:
        assert refusal(topup(merchant, product, **body))[:2] == (422, "validation_failed"), body


def test_thirty_fields_of_255_characters_are_accepted() -> None:
    merchant, product = make_merchant(), make_topup_product()
    numbers = [make_field(product).number for _ in range(30)]
    fields = {str(number): "x" * 255 for number in numbers}
    assert topup(merchant, product, fields=fields).status_code == 201


def test_a_client_without_a_wallet_is_told_so_before_the_stock_is_checked() -> None:
    merchant = Merchant(make_client(make_account(wallet=False)))
    sold_out = make_topup_product(available_stock=0)

    answer = topup(merchant, sold_out)

    assert refusal(answer) == (409, "order_refused", "client_without_wallet")


@pytest.mark.parametrize("value", ["0012345", " 0012345", "0012345\u00a0", "\u200b0012345\ufeff"])
def test_the_player_id_is_not_sent_as_a_field(value: str) -> None:
    merchant, product = make_merchant(), make_topup_product()
    field = make_field(product, "text")

    answer = topup(merchant, product, player_id="0012345", fields={str(field.number): value})

    assert refusal(answer)[:2] == (422, "validation_failed")
    assert list(error(answer)["fields"]) == [f"fields.{field.number}"]


def test_the_option_of_another_field_is_refused() -> None:
    merchant, product = make_merchant(), make_topup_product()
    server = make_field(product, "dropdown", options=["eu", "us"])
    platform = make_field(product, "dropdown", options=["ios", "android"])

    wrong = topup(
        merchant, product, fields={str(server.number): "ios", str(platform.number): "ios"}
    )

    assert refusal(wrong)[:2] == (422, "validation_failed")
    assert set(error(wrong)["fields"]) == {f"fields.{server.number}"}
    right = topup(merchant, product, fields={str(server.number): "eu", str(platform.number): "ios"})
    assert right.status_code == 201


def test_leading_zeroes_of_the_player_id_are_kept() -> None:
    merchant = make_merchant()
    reference = buy_topup(merchant, player_id="000")
    assert data(merchant.get(f"/orders/{reference}"))["player_id"] == "000"


def test_a_reused_key_with_another_body_is_refused() -> None:
    merchant, product = make_merchant(), make_topup_product()
    assert topup(merchant, product, "one").status_code == 201
    again = topup(merchant, product, "one", player_id="other")
    assert refusal(again)[:2] == (409, "idempotency_key_reused")


# The order after the purchase.


def accepted(merchant: Merchant) -> None:
    product = make_topup_product(price="4.99", available_stock=1)
    order = data(topup(merchant, product))
    assert (order["status"], order["fulfilment_status"]) == ("pending", "pending")
    assert float(data(merchant.get("/balance"))["balance"]) == 95.01


def delivered(merchant: Merchant) -> None:
    order = _after(merchant, Move.CLAIM, Move.COMPLETE)
    assert (order["status"], order["fulfilment_status"]) == ("completed", "completed")
    assert (order["failure_reason"], order["refunded"], order["codes"]) == (None, False, [])


def rejected(merchant: Merchant) -> None:
    order = _after(merchant, Move.REJECT)
    assert (order["status"], order["fulfilment_status"]) == ("failed", "failed")
    assert order["failure_reason"] == "fulfilment_failed"
    assert sweep_refunds() == 1
    assert data(merchant.get(f"/orders/{order['reference']}"))["refunded"] is True
    assert data(merchant.get("/balance"))["balance"] == 100


def uncertain(merchant: Merchant) -> None:
    order = _after(merchant, Move.CLAIM, Move.REVIEW)
    assert (order["status"], order["fulfilment_status"]) == ("pending", "pending_review")
    assert sweep_refunds() == 0


def _after(merchant: Merchant, *moves: Move) -> Any:
    reference = buy_topup(merchant)
    operator = make_operator()
    for move in moves:
        move_now(reference=reference, move=move, operator=operator)
    return data(merchant.get(f"/orders/{reference}"))


@table(
    TOP_UP_TRANSITIONS,
    {
        "accepted": accepted,
        "delivered": delivered,
        "rejected": rejected,
        "uncertain": uncertain,
    },
)
def test_each_transition_of_a_top_up_order(case: Callable[[Merchant], None]) -> None:
    case(make_merchant())


def test_a_replay_stays_unchanged_and_get_returns_the_current_state() -> None:
    merchant, product = make_merchant(), make_topup_product()
    first = topup(merchant, product, "one")
    reference = data(first)["reference"]
    move_now(reference=reference, move=Move.COMPLETE, operator=make_operator())
    assert topup(merchant, product, "one").content == first.content
    assert data(merchant.get(f"/orders/{reference}"))["status"] == "completed"


def test_the_order_list_mixes_both_kinds_with_a_constant_query_count() -> None:
    shop = make_shop(price="0.01", codes=30)
    topup_product = make_topup_product(price="0.01")

    def buy_both(times: int) -> list[str]:
        bought = []
        for _ in range(times):
            bought += [data(shop.buy())["reference"], buy_topup(shop.merchant, topup_product)]
        return bought

    def listed() -> tuple[list[str], int]:
        with CaptureQueriesContext(connection) as captured:
            page = data(shop.merchant.get("/orders", per_page=100))
        for item in page["items"]:
            check_fields("TopUpOrder" if "player_id" in item else "VoucherOrder", item)
        return [item["reference"] for item in page["items"]], len(captured)

    first = buy_both(1)
    references, queries = listed()
    assert references == first[::-1]
    more = buy_both(20)
    assert listed() == ([*more[::-1], *first[::-1]], queries)
