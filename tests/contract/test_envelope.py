"""Contract, "Response envelope": the three shapes of a response, and its common headers."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from django.conf import settings

from tests.answers import CheckedClient, operations, served_document
from tests.contract.rows import ENVELOPE, table
from tests.contract.situations import make_shop, message
from tests.factories import Merchant, make_merchant

pytestmark = pytest.mark.django_db(transaction=True)

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"]
UNKNOWN_PATHS = [
    "/api/",
    "/api/v1",
    "/api/v1/",
    "/api/v2/ping",
    "/api/v1/ping/",
    "/api/v1//ping",
    "/api/v1/orders/",
    "/api/v1/orders/a/b",
    "/api/v1/Ping",
    "/api/v1/products/abc",
    "/api/v1/products/-1",
    "/api/v1/products/1.0",
    "/api/v1/products/1 ",
    "/api/v1/products/",
    "/api/v1/products/\u0661",
    "/api/v1/ping.json",
    "/api/v1/admin/",
]


def _wrong_methods() -> list[tuple[str, str]]:
    """Every documented path with every method that it does not support."""
    allowed: dict[str, set[str]] = {}
    for method, path, _ in operations(served_document()):
        allowed.setdefault(path, set()).update({method, "HEAD"} if method == "GET" else {method})
    return [
        (method, path.replace("{product}", "1").replace("{reference}", "X"))
        for path, methods in allowed.items()
        for method in METHODS
        if method not in methods
    ]


CASES: dict[str, tuple[Callable[[Merchant], Any], int, list[str]]] = {
    "success of a read": (lambda merchant: merchant.get("/ping"), 200, ["success", "data"]),
    "success of a purchase": (lambda merchant: make_shop().buy(), 201, ["success", "data"]),
    "failure": (lambda merchant: merchant.get("/orders/X"), 404, ["success", "error"]),
    "before the API: unknown path": (lambda merchant: merchant.get("/nothing"), 404, ["message"]),
    "before the API: id is not a number": (
        lambda merchant: merchant.get("/products/abc"),
        404,
        ["message"],
    ),
    "before the API: wrong method": (
        lambda merchant: merchant.http.put("/api/v1/ping"),
        405,
        ["message"],
    ),
    "before the API: body too large": (
        lambda merchant: merchant.post(b" " * (settings.MAX_BODY_BYTES + 1), key="one"),
        413,
        ["message"],
    ),
}


@table(ENVELOPE, CASES)
def test_each_shape_of_a_response(case: tuple[Callable[[Merchant], Any], int, list[str]]) -> None:
    call, status, members = case
    assert message(call(make_merchant())) == (status, members)


@pytest.mark.parametrize("known", [False, True], ids=["without credentials", "with credentials"])
def test_an_unknown_path_returns_only_a_message(known: bool) -> None:
    headers = {"Authorization": f"Bearer {make_merchant().key}"} if known else {}
    for path, method in product(UNKNOWN_PATHS, METHODS):
        answer = CheckedClient().generic(method, path, headers=headers)
        assert answer.status_code == 404, (path, method)
        assert method == "HEAD" or message(answer) == (404, ["message"]), (path, method)


@pytest.mark.parametrize("known", [False, True], ids=["without credentials", "with credentials"])
def test_a_wrong_method_returns_only_a_message(known: bool) -> None:
    """Also without credentials: the method is checked before authentication."""
    headers = {"Authorization": f"Bearer {make_merchant().key}"} if known else {}
    for method, path in _wrong_methods():
        answer = CheckedClient().generic(method, f"/api/v1{path}", headers=headers)
        assert message(answer) == (405, ["message"]), (method, path)
        assert set(answer["Allow"].split(", ")) <= {"GET", "POST", "HEAD"}


def test_openapi_json_is_public_and_read_only() -> None:
    client = CheckedClient()
    assert client.get("/api/v1/openapi.json").status_code == 200
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert client.generic(method, "/api/v1/openapi.json").status_code == 405


def test_head_responds_like_get_without_a_body(merchant: Merchant) -> None:
    headers = {"Authorization": f"Bearer {merchant.key}"}
    for path, status in (("/ping", 200), ("/orders/X", 404)):
        answer = merchant.http.head(f"/api/v1{path}", headers=headers)
        assert (answer.status_code, answer.content) == (status, b"")


def test_every_response_has_its_own_request_id(merchant: Merchant) -> None:
    answers = [merchant.get(path) for path in ("/ping", "/ping", "/nothing", "/orders/X")]
    assert len({answer["X-Request-Id"] for answer in answers}) == 4


def test_a_request_id_of_the_client_is_ignored(merchant: Merchant) -> None:
    sent = "00000000-0000-4000-8000-000000000000"
    answer = merchant.http.get("/api/v1/ping", headers={"X-Request-Id": sent})
    assert answer["X-Request-Id"] != sent


def test_no_response_may_be_cached(merchant: Merchant) -> None:
    """A cache would keep codes, and a poll would read an old state of the order."""
    for path in ("/ping", "/orders", "/orders/X", "/nothing"):
        assert merchant.get(path)["Cache-Control"] == "no-store", path
    assert merchant.post("{", key="a")["Cache-Control"] == "no-store"
    assert CheckedClient().get("/api/v1/ping")["Cache-Control"] == "no-store"
