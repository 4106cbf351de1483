"""Malformed requests get documented responses and buy nothing."""

import json
from typing import Any

import pytest
from django.conf import settings

from tests.answers import CheckedClient
from tests.contract.situations import Shop, error, make_shop, message, money, refusal

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = settings.MAX_BODY_BYTES
NUL, LONE_SURROGATE = r"\u0000", r"\ud800"

UNREADABLE: dict[str, bytes] = {
    "blank": b" \n",
    "half": b'{"product_id": 1,',
    "trailing comma": b'{"product_id": 1,}',
    "single quotes": b"{'product_id': 1}",
    "comment": b'{"product_id": 1} // buy',
    "two values": b"{}{}",
    "array": b'[{"product_id": 1, "quantity": 1}]',
    "string": b'"product_id"',
    "null": b"null",
    "number": b"1",
    "form": b"product_id=1&quantity=1",
    "XML": b"<order/>",
    "60,000 brackets": b"[" * 60_000,
    "12,000 objects": b'{"a":' * 12_000,
    "nested and closed": b'{"quantity":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "nested just within the parser": b'{"delivery_type":' + b"[" * 900 + b"]" * 900 + b"}",
    "nested beyond a purchase": b'{"quantity":' + b"[" * 40 + b"]" * 40 + b"}",
    "10,000 digits": b'{"quantity": ' + b"9" * 10_000 + b"}",
    "1e999999999999999999999": b'{"quantity": 1e999999999999999999999}',
    "-1e-99999999999999999999": b'{"product_id": -1e-99999999999999999999}',
    "NaN": b'{"quantity": NaN}',
    "Infinity": b'{"quantity": Infinity}',
    "-Infinity": b'{"quantity": -Infinity}',
    "leading zero": b'{"quantity": 01}',
    "hexadecimal": b'{"quantity": 0x1}',
    "raw NUL": b'{"merchant_reference": "a\x00", "quantity": 1}',
    "escaped NUL": f'{{"merchant_reference": "a{NUL}", "quantity": 1}}'.encode(),
    "NUL in a name": f'{{"{NUL}": 1}}'.encode(),
    "lone surrogate": f'{{"merchant_reference": "{LONE_SURROGATE}"}}'.encode(),
    "lone surrogate in a name": f'{{"{LONE_SURROGATE}": 1}}'.encode(),
    "invalid UTF-8": b'{"merchant_reference": "\xff\xfe"}',
    "overlong UTF-8": b'{"merchant_reference": "\xc0\xaf"}',
    "UTF-16": '{"quantity": 1}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"product_id": 1, "quantity": 1}',
    "name twice": b'{"product_id": 1, "quantity": 1, "quantity": 1}',
    "name twice by escapes": rb'{"quantity": 1, "quantit\u0079": 1}',
    "name twice deeper": b'{"quantity": {"a": 1, "a": 2}}',
}
# JSON objects that are not purchases.
READABLE: dict[str, bytes] = {
    "empty": b"",
    "1e400": b'{"quantity": 1e400}',
    "many unknown names": json.dumps({f"name{n}": 1 for n in range(3000)}).encode(),
    "a long unknown name": json.dumps({"n" * 60_000: 1}).encode(),
    "a long value": json.dumps({"merchant_reference": "n" * 60_000, "quantity": 1}).encode(),
}


def refused_fields(body: bytes) -> list[str]:
    """The names in `error.fields` after this body is refused. Asserts that nothing was bought."""
    shop = make_shop()
    before = money()
    answer = shop.merchant.post(body, key="one")
    assert refusal(answer)[:2] == (422, "validation_failed")
    assert all(sentences for sentences in error(answer)["fields"].values())
    assert len(answer.content) < 8_000
    assert money() == before
    return list(error(answer)["fields"])


def test_an_unreadable_body_is_refused_as_a_whole() -> None:
    for name, body in UNREADABLE.items():
        assert refused_fields(body) == ["body"], name


def test_an_object_that_is_not_a_purchase_is_refused_by_field() -> None:
    for name, body in READABLE.items():
        assert "body" not in refused_fields(body), name


def good_body(shop: Shop) -> str:
    return json.dumps({"product_id": shop.product.pk, "quantity": 1})


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "text/json",
        "application/jsonp",
        "application/json, text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "application/problem+json",
        "application/\u00fc",
    ],
)
def test_another_content_type_is_refused(content_type: str) -> None:
    shop = make_shop()
    before = money()
    answer = shop.merchant.post(good_body(shop), key="one", content_type=content_type)
    assert refusal(answer)[:2] == (422, "validation_failed")
    assert list(error(answer)["fields"]) == ["body"]
    assert money() == before


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json; charset=bogus",
        "Application/JSON",
        " application/json ",
    ],
)
def test_the_charset_of_the_content_type_is_ignored(content_type: str) -> None:
    shop = make_shop()
    answer = call("POST", "/api/v1/orders", shop, content_type=content_type)
    assert answer.status_code == 201


def test_a_body_over_the_limit_is_refused() -> None:
    shop = make_shop()
    body = good_body(shop)
    assert message(shop.merchant.post(body.ljust(LIMIT + 1), key="one")) == (413, ["message"])
    assert message(shop.merchant.post(body.ljust(LIMIT * 100), key="one")) == (413, ["message"])
    assert money().orders == 0
    assert shop.merchant.post(body.ljust(LIMIT), key="one").status_code == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"Accept": "text/html"},
        {"Accept": "application/xml;q=\u00fc"},
        {"Accept-Language": "x" * 10_000},
        {"X-HTTP-Method-Override": "DELETE"},
        {"X-Forwarded-For": "not an address, ,,"},
        {"X-Forwarded-Host": "evil.example"},
        {"Origin": "https://evil.example"},
        {"Cookie": "sessionid=\u00fc; csrftoken=x"},
        {"User-Agent": "\u00fc\x7f'\"<script>"},
        {"X-Request-Id": "a\u00fcb"},
        {"Content-Encoding": "gzip"},
        {"Expect": "the unexpected"},
        {"Range": "bytes=0-1"},
        {"If-None-Match": "*"},
    ],
)
def test_other_headers_are_ignored(headers: dict[str, str]) -> None:
    shop = make_shop()
    answer = shop.merchant.post(good_body(shop), key="one", **headers)
    assert answer.status_code == 201


def call(
    method: str, path: str, shop: Shop, content_type: str = "application/json", **headers: str
) -> Any:
    return CheckedClient().generic(
        method,
        path,
        good_body(shop) if method == "POST" else "",
        content_type,
        headers={
            "Authorization": f"Bearer {shop.merchant.key}",
            "Idempotency-Key": "one",
            **headers,
        },
    )


@pytest.mark.parametrize(
    "host", ["evil.example", "a b", "<script>", "[::1", "\u00fc", "", "a" * 300]
)
def test_an_unknown_host_returns_only_a_message(host: str) -> None:
    shop = make_shop()
    for method, path in (("GET", "/api/v1/ping"), ("POST", "/api/v1/orders")):
        answer = call(method, path, shop, Host=host)
        assert message(answer) == (400, ["message"])
    assert money().orders == 0


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/orders/%00",
        "/api/v1/orders/%FF%FE",
        "/api/v1/orders/%ED%A0%80",
        "/api/v1/orders/%0A",
        "/api/v1/orders/%zz",
        "/api/v1/orders/..",
        "/api/v1/orders/'%20OR%201=1",
        f"/api/v1/orders/{'A' * 10_000}",
        "/api/v1/orders/01JZX8Q4T5V6W7X8Y9Z0A1B2C3",
        "/api/v1/orders/01jzx8q4t5v6w7x8y9z0a1b2c3",
    ],
)
def test_a_malformed_reference_is_an_unknown_order(path: str) -> None:
    answer = call("GET", path, make_shop())
    assert refusal(answer)[:2] == (404, "order_not_found")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/products/%00",
        "/api/v1/%00",
        "/api/v1/%FF",
        "/api/v1/products/1%00",
        "/api/%2e%2e/x",
    ],
)
def test_a_malformed_path_returns_only_a_message(path: str) -> None:
    assert message(call("GET", f"/api/v1/{path}", make_shop())) == (404, ["message"])


MALFORMED = [
    "page=%00&per_page=%00&search=%00&in_stock=%00",
    "page=%FF&per_page=%ED%A0%80&search=%FF",
    "page=%zz&per_page=%&search=%u0041",
    "page=" + "9" * 10_000 + "&per_page=-" + "9" * 10_000,
    "page=1e5&per_page=0x10&search=" + "%" * 5_000,
    "page=\u0663&per_page=1_0",
    "page=inf&per_page=nan",
    "page[]=1&per_page[]=2&search[]=a",
    "page=1&page=2&per_page=3&per_page=x",
    "page=9223372036854775807&per_page=100",
    "page=-9223372036854775809",
    "&&&===;;;",
    "?????",
    "search=" + "a" * 50_000,
]


def test_a_malformed_query_is_accepted() -> None:
    shop = make_shop()
    for path in ("/products", "/orders", "/topup-products"):
        for query in MALFORMED:
            answer = call("GET", f"/api/v1{path}?{query}", shop)
            assert answer.status_code == 200, (path, query[:100])


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/products"), ("GET", "/orders"), ("POST", "/orders")]
)
def test_more_than_a_thousand_query_parameters_are_refused(method: str, path: str) -> None:
    shop = make_shop()
    query = "&".join(f"a{number}=1" for number in range(1001))
    assert message(call(method, f"/api/v1{path}?{query}", shop)) == (400, ["message"])
    assert money().orders == 0


def test_a_method_override_is_ignored() -> None:
    shop = make_shop()
    answer = call("GET", "/api/v1/orders?_method=POST", shop, **{"X-HTTP-Method-Override": "POST"})
    assert answer.status_code == 200
    assert money().orders == 0
