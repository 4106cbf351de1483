"""Unusual HTTP over a real socket to granian: chunks, lengths, pipelines, odd headers."""

import json

import pytest

from tests.api.raw import Wire, chunked, head
from tests.contract.situations import Shop, make_shop, money
from tests.factories import Merchant, make_account, make_client
from tests.live import LiveServer

pytestmark = pytest.mark.django_db(transaction=True)

ORDERS = "/api/v1/orders"


def body_of(shop: Shop) -> bytes:
    return json.dumps({"product_id": shop.product.pk, "quantity": 1}).encode()


def headers_of(shop: Shop, key: str = "one", **others: str) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {shop.merchant.key}",
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        **{name.replace("_", "-"): value for name, value in others.items()},
    }


def test_a_chunked_body_buys(live: LiveServer) -> None:
    shop = make_shop()
    body = body_of(shop)
    with Wire(live) as wire:
        wire.send(head("POST", ORDERS, headers_of(shop, Transfer_Encoding="chunked")))
        wire.send(chunked([body[:5], body[5:]]))
        assert wire.read("POST", ORDERS).status == 201


def test_a_chunked_body_over_the_limit_is_refused(live: LiveServer) -> None:
    shop = make_shop()
    with Wire(live) as wire:
        wire.send(head("POST", ORDERS, headers_of(shop, Transfer_Encoding="chunked")))
        wire.send(chunked([body_of(shop).ljust(1024)] + [b" " * 1024] * 128))
        assert wire.read("POST", ORDERS).status == 413
    assert money().orders == 0


def test_two_idempotency_keys_buy_nothing(live: LiveServer) -> None:
    """The web server joins them. A retry with one of them would buy again."""
    shop = make_shop()
    body = body_of(shop)
    first = head("POST", ORDERS, headers_of(shop, Content_Length=str(len(body))))
    with Wire(live) as wire:
        wire.send(first.replace(b"\r\n\r\n", b"\r\nIdempotency-Key: two\r\n\r\n") + body)
        answer = wire.read("POST", ORDERS)
    assert answer.status == 422
    assert b"Idempotency-Key" in answer.body
    assert money().orders == 0


def test_a_long_key_beyond_ascii_is_explained(live: LiveServer) -> None:
    shop = make_shop()
    body = body_of(shop)
    headers = headers_of(shop, "\u00fc" * 200, Content_Length=str(len(body)))
    with Wire(live) as wire:
        wire.send(head("POST", ORDERS, headers) + body)
        answer = wire.read("POST", ORDERS)
    assert answer.status == 400
    assert b"characters beyond ASCII" in answer.body
    assert money().orders == 0


@pytest.mark.parametrize("split", [1, 7, 30])
def test_a_request_in_small_pieces_buys_once(live: LiveServer, split: int) -> None:
    shop = make_shop()
    body = body_of(shop)
    request = head("POST", ORDERS, headers_of(shop, Content_Length=str(len(body)))) + body
    with Wire(live) as wire:
        wire.send(*(request[at : at + split] for at in range(0, len(request), split)))
        assert wire.read("POST", ORDERS).status == 201
    assert money().orders == 1


def test_an_incomplete_request_buys_nothing(live: LiveServer) -> None:
    shop = make_shop()
    body = body_of(shop)
    request = head("POST", ORDERS, headers_of(shop, Content_Length=str(len(body)))) + body
    for length in (10, len(request) - len(body), len(request) - 1):
        with Wire(live) as wire:
            wire.send(request[:length])
            wire.end()
            assert b" 201 " not in wire.rest()
    assert live.http.get("/healthz").status_code == 200
    assert money().orders == 0


def test_a_content_length_beyond_the_body_buys_nothing(live: LiveServer) -> None:
    shop = make_shop()
    body = body_of(shop)
    with Wire(live) as wire:
        wire.send(head("POST", ORDERS, headers_of(shop, Content_Length=str(len(body) + 5))), body)
        wire.end()
        assert wire.read("POST", ORDERS).status == 422
    assert money().orders == 0


def test_a_content_length_below_the_body_cuts_it(live: LiveServer) -> None:
    shop = make_shop()
    body = body_of(shop)
    with Wire(live) as wire:
        wire.send(head("POST", ORDERS, headers_of(shop, Content_Length="10")), body)
        assert wire.read("POST", ORDERS).status == 422
    assert money().orders == 0


@pytest.mark.parametrize("length", ["-1", "abc", "1e3", "9" * 30, "5, 6"])
def test_a_malformed_content_length_is_refused(live: LiveServer, length: str) -> None:
    shop = make_shop()
    with Wire(live) as wire:
        wire.send(head("POST", ORDERS, headers_of(shop, Content_Length=length)), body_of(shop))
        assert wire.read().status == 400
    assert money().orders == 0


def test_a_chunked_body_with_content_length_buys_at_most_once(live: LiveServer) -> None:
    """Request smuggling: a proxy and a server could read different bodies."""
    shop = make_shop()
    headers = headers_of(shop, Transfer_Encoding="chunked", Content_Length="5")
    with Wire(live) as wire:
        wire.send(head("POST", ORDERS, headers), chunked([body_of(shop)]))
        answer = wire.read()
    assert answer.status in (201, 400)
    assert money().orders == (answer.status == 201)


def test_pipelined_requests_are_answered_in_order(live: LiveServer) -> None:
    shop = make_shop()
    body = body_of(shop)
    length = str(len(body))
    with Wire(live) as wire:
        wire.send(
            head("POST", ORDERS, headers_of(shop, Content_Length=length))
            + body
            + head("POST", ORDERS, headers_of(shop, Content_Length=length))
            + body
            + head("GET", "/api/v1/nothing", {})
        )
        first = wire.read("POST", ORDERS)
        again = wire.read("POST", ORDERS)
        last = wire.read("GET", "/api/v1/nothing")
    assert (first.status, again.status, last.status) == (201, 201, 404)
    assert again.body == first.body
    assert again.headers["Idempotent-Replay"] == "true"
    assert money().orders == 1


def test_long_headers_and_paths_are_refused(live: LiveServer) -> None:
    shop = make_shop()
    with Wire(live) as wire:
        wire.send(head("GET", "/api/v1/ping", headers_of(shop, X_Long="x" * 2_000_000)))
        assert wire.read("GET").status in (400, 431)
    with Wire(live) as wire:
        wire.send(head("GET", f"/api/v1/orders/{'A' * 200_000}", headers_of(shop)))
        assert wire.read("GET").status in (400, 404, 414)


def test_headers_with_any_bytes_do_no_harm(live: LiveServer) -> None:
    shop = make_shop()
    with Wire(live) as wire:
        wire.send(head("GET", "/api/v1/ping", headers_of(shop, X_Odd="\u00fc\u00ff\u0080")))
        assert wire.read("GET", "/api/v1/ping").status == 200
    body = body_of(shop)
    headers = headers_of(shop, "sch\u00f6n", Content_Length=str(len(body)))
    with Wire(live) as wire:
        wire.send(head("POST", ORDERS, headers), body)
        # granian drops a header that is not ASCII, so the service sees no key.
        assert wire.read("POST", ORDERS).status in (400, 422)
    with Wire(live) as wire:
        wire.send(head("GET", "/api/v1/ping", {"Authorization": "Bearer \u00fc"}))
        assert wire.read("GET", "/api/v1/ping").status == 401
    assert money().orders == 0


def test_a_key_over_128_bytes_is_refused(live: LiveServer) -> None:
    shop = make_shop()
    body = body_of(shop)
    for key, status in (("k" * 128, 201), ("k" * 129, 400), ("\u00fc" * 129, 400)):
        headers = headers_of(shop, key, Content_Length=str(len(body)))
        with Wire(live) as wire:
            wire.send(head("POST", ORDERS, headers), body)
            assert wire.read("POST", ORDERS).status == status


def test_a_request_with_two_keys_buys_at_most_once(live: LiveServer) -> None:
    shop = make_shop()
    body = body_of(shop)
    request = head("POST", ORDERS, headers_of(shop, Content_Length=str(len(body))))
    twice = request[:-2] + b"Idempotency-Key: two\r\n\r\n" + body
    answers = []
    for _ in range(2):
        with Wire(live) as wire:
            wire.send(twice)
            answers.append(wire.read("POST", ORDERS).status)
    assert answers[0] == answers[1]
    assert money().orders <= 1


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PUT", "BREW", "get"])
def test_other_methods_get_the_documented_status(live: LiveServer, method: str) -> None:
    with Wire(live) as wire:
        wire.send(head(method, ORDERS, {}))
        answer = wire.read(method)
    assert answer.status == (401 if method in ("HEAD", "get") else 405)


def test_bytes_that_are_not_http_get_no_html(live: LiveServer) -> None:
    for junk in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"\r\n\r\n\r\n", b"\x00" * 100):
        with Wire(live) as wire:
            wire.send(junk)
            wire.end()
            said = wire.rest()
        assert b"<" not in said
    assert live.http.get("/healthz").status_code == 200


def test_a_head_response_has_no_body(live: LiveServer) -> None:
    shop = make_shop()
    with Wire(live) as wire:
        wire.send(
            head("HEAD", "/api/v1/ping", headers_of(shop))
            + head("GET", "/healthz", headers_of(shop))
        )
        answer = wire.read("HEAD", "/api/v1/ping")
        assert (answer.status, answer.body) == (200, b"")
        assert wire.read("GET").status == 200


@pytest.mark.parametrize("charset", ["hex", "utf-7", "base64", "undefined", "unicode_escape"])
def test_an_unusable_charset_is_ignored(live: LiveServer, charset: str) -> None:
    merchant = Merchant(make_client(make_account()), http=live.http)
    headers = {
        "Authorization": f"Bearer {merchant.key}",
        "Content-Type": f"application/json; charset={charset}",
    }

    answer = live.http.get("/api/v1/products", {"search": "+2AA-"}, headers=headers)

    assert answer.status_code == 200
