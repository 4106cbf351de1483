"""An API process responds exactly like a process that serves everything.

Each request goes to a server with `config.settings_api`, to one with `config.settings` and, where
that matters, to one with `config.settings_pages`.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.answers import DOCUMENT_PATH
from tests.api.raw import RawAnswer, Wire, chunked, head
from tests.factories import Merchant, buy_topup, make_merchant, make_product, make_topup_product
from tests.live import LiveServer, live_server, with_settings
from tests.tasks.running import Broker, running_broker, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

PATHS = [
    *(f"/api/v1/{name}" for name in ("ping", "balance", "products", "topup-products", "orders")),
    *("/api/v1/products/1", "/api/v1/topup-products/1", "/api/v1/orders/X"),
    *(DOCUMENT_PATH, "/healthz", "/readyz"),
]
METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"]
ODD_PATHS = [
    *("/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/ping", "/API/v1/ping"),
    *("/api/v1/ping/", "/api/v1//ping", "//api/v1/ping", "/api/v1/../v1/ping", "/api/v1/p%69ng"),
    *("/api/v1/products/0", "/api/v1/products/-1", "/api/v1/products/one", "/api/v1/products/"),
    "/api/v1/products/9223372036854775808",
    "/api/v1/products?page=0&per_page=1000&search=%FF%00&in_stock=maybe",
    "/api/v1/orders?page=99999999999999999999",
    *("/api/v1/orders/%00", "/api/v1/orders/%2F", "/api/v1/orders/%C3%BC", "/api/v1/orders/a/b"),
    *("/healthz/", "/readyz/", "/favicon.ico", "/robots.txt", "/.env", "/%ff"),
]
PAGES = ["/", "/docs/", "/admin/", "/admin/login/", "/merchant/", "/merchant/sign-in/"]
PAGES += ["/readyz/bot", "/readyz/worker", "/static/merchants/page.js"]
JSON_BODY = {"Content-Type": "application/json"}
# Requests for a purchase that are refused, as headers and body.
REFUSED: dict[str, tuple[dict[str, str], bytes]] = {
    "no idempotency key": (JSON_BODY, b"{}"),
    "long idempotency key": ({**JSON_BODY, "Idempotency-Key": "k" * 129}, b"{}"),
    "no JSON": ({**JSON_BODY, "Idempotency-Key": "k"}, b"{"),
    "another type": ({"Content-Type": "text/plain", "Idempotency-Key": "k"}, b"{}"),
    "no fields": ({**JSON_BODY, "Idempotency-Key": "k"}, b"{}"),
    "unknown product": (
        {**JSON_BODY, "Idempotency-Key": "k"},
        b'{"product_id": 999999999, "quantity": 1}',
    ),
    "large body": ({**JSON_BODY, "Idempotency-Key": "k"}, b" " * (128 * 1024 + 1)),
    "no body": ({"Idempotency-Key": "k"}, b""),
    "a form": (
        {"Content-Type": "application/x-www-form-urlencoded", "Idempotency-Key": "k"},
        b"a=1",
    ),
}
# Headers that browser middleware reads, or that are wrong.
HEADERS: dict[str, dict[str, str]] = {
    "another origin": {"Origin": "https://elsewhere.example", "Referer": "https://a.example/"},
    "HTML wanted": {"Accept": "text/html"},
    "old copy": {"If-Modified-Since": "Mon, 01 Jan 2035 00:00:00 GMT", "If-None-Match": "*"},
    "a range": {"Range": "bytes=0-1"},
    "compression": {"Accept-Encoding": "gzip, br"},
    "an override": {"X-HTTP-Method-Override": "DELETE"},
    "https said by nobody": {"X-Forwarded-Proto": "https"},
    "a strange charset": {"Content-Type": "application/json; charset=hex"},
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with running_broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def api(django_db_setup: None, broker: Broker) -> Iterator[LiveServer]:
    environment = {
        **with_settings("config.settings_api", USE_WRITTEN_EVERY_SECONDS=1),
        "STATIC_ROOT": "/nonexistent",  # the files of pages do not concern this process
        "CELERY_BROKER_URL": broker.url,
        "TELEGRAM_BOT_TOKEN": "1:not-a-real-token",
    }
    with live_server(environment, workers=1) as server:
        yield server


@pytest.fixture(scope="module")
def pages(django_db_setup: None) -> Iterator[LiveServer]:
    with live_server({"DJANGO_SETTINGS_MODULE": "config.settings_pages"}, workers=1) as server:
        yield server


@pytest.fixture
def key() -> str:
    return make_merchant().key


def ask(
    server: LiveServer,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    *,
    host: str = "localhost",
) -> RawAnswer:
    """The response on a connection of its own."""
    length = {"Content-Length": str(len(body))} if body else {}
    with Wire(server) as wire:
        wire.send(head(method, path, {**length, **(headers or {})}, host=host) + body)
        return wire.read(method)


def comparable(answer: RawAnswer) -> tuple[int, dict[str, str], bytes]:
    """The response without the present time and the random id of the request."""
    headers = {**answer.headers, "Date": "", "X-Request-Id": ""}
    return answer.status, headers, re.sub(rb'"server_time":"[^"]*"', b"", answer.body)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def assert_same(api: LiveServer, live: LiveServer, *request: Any, **more: Any) -> RawAnswer:
    one, other = ask(api, *request, **more), ask(live, *request, **more)
    assert comparable(one) == comparable(other), request
    return one


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_every_path(
    api: LiveServer, live: LiveServer, key: str, method: str
) -> None:
    for path in PATHS:
        for headers in ({}, bearer(key), bearer("vk_wrong")):
            assert_same(api, live, method, path, headers)
        assert_same(api, live, method, path, {**bearer(key), **JSON_BODY}, b"{}")


def test_odd_paths(api: LiveServer, live: LiveServer, key: str) -> None:
    for path in ODD_PATHS:
        for method in ("GET", "POST"):
            assert_same(api, live, method, path, bearer(key))


@pytest.mark.parametrize("refused", REFUSED)
def test_refused_purchases(api: LiveServer, live: LiveServer, key: str, refused: str) -> None:
    headers, body = REFUSED[refused]
    answer = assert_same(api, live, "POST", "/api/v1/orders", {**bearer(key), **headers}, body)
    assert 400 <= answer.status < 500


def test_a_chunked_body_over_the_limit(api: LiveServer, live: LiveServer, key: str) -> None:
    headers = {**bearer(key), **JSON_BODY, "Idempotency-Key": "k", "Transfer-Encoding": "chunked"}
    answers = []
    for server in (api, live):
        with Wire(server) as wire:
            wire.send(head("POST", "/api/v1/orders", headers) + chunked([b" " * 140_000]))
            answers.append(comparable(wire.read()))
    assert answers[0] == answers[1]
    assert answers[0][0] == 413


def test_cookies_change_no_api_response(api: LiveServer, live: LiveServer, key: str) -> None:
    """Elsewhere, only a process with sessions removes the cookie of an unknown session."""
    cookies = {"Cookie": f"csrftoken={'a' * 32}; sessionid=unknown; messages=m"}
    for path in (path for path in PATHS if path.startswith("/api/")):
        assert_same(api, live, "GET", path, {**bearer(key), **cookies})
        assert_same(api, live, "POST", path, cookies, b"{}")


@pytest.mark.parametrize("headers", HEADERS)
def test_headers_for_browsers_change_nothing(
    api: LiveServer, live: LiveServer, key: str, headers: str
) -> None:
    for path in (*PATHS, "/nothing"):
        assert_same(api, live, "GET", path, {**bearer(key), **HEADERS[headers]})
        assert_same(api, live, "POST", path, HEADERS[headers], b"{}")


@pytest.mark.parametrize("host", ["evil.example", "a b", "localhost:x", ""])
def test_wrong_hosts(api: LiveServer, live: LiveServer, host: str) -> None:
    for path in ("/api/v1/ping", "/healthz", "/nothing"):
        assert_same(api, live, "GET", path, host=host)


def test_identities_are_refused_alike(api: LiveServer, live: LiveServer) -> None:
    allowlisted = make_merchant(allowed_networks=["203.0.113.0/24"]).key
    disabled = make_merchant(enabled=False).key
    exhausted = make_merchant(rate_limit_per_minute=1).key
    ask(live, "GET", "/api/v1/ping", bearer(exhausted))

    for key, status in ((allowlisted, 403), (disabled, 403)):
        assert assert_same(api, live, "GET", "/api/v1/ping", bearer(key)).status == status
    assert ask(api, "GET", "/api/v1/ping", bearer(exhausted)).status == 429


def test_each_replays_the_purchase_of_the_other(api: LiveServer, live: LiveServer) -> None:
    merchant, product = make_merchant(), make_product(codes=2)
    topup = make_topup_product()
    bodies: list[dict[str, Any]] = [
        {"product_id": product.pk, "quantity": 1},
        {"delivery_type": "top_up", "system_product_id": topup.pk, "player_id": "007"},
    ]
    for number, body in enumerate(bodies):
        for first, second in ((api, live), (live, api)):
            headers = {
                **bearer(merchant.key),
                **JSON_BODY,
                "Idempotency-Key": f"{number} {first.port}",
            }
            request = ("POST", "/api/v1/orders", headers, json.dumps(body).encode())
            bought, replayed = ask(first, *request), ask(second, *request)

            assert (bought.status, replayed.status) == (201, 201)
            assert bought.body == replayed.body
            assert replayed.headers.pop("Idempotent-Replay") == "true"
            assert comparable(bought) == comparable(replayed)

    for path in ("/orders", f"/orders/{bought.json()['data']['reference']}", "/balance"):
        assert_same(api, live, "GET", f"/api/v1{path}", bearer(merchant.key))


def test_a_topup_is_queued_for_its_announcement(api: LiveServer, broker: Broker) -> None:
    merchant = Merchant(make_merchant().client, http=api.http)
    with broker.client() as queue:
        queue.delete("celery")
    buy_topup(merchant, make_topup_product())

    wait_until(broker.waiting, "the API process queues a task")
    with broker.client() as queue:
        (message,) = queue.lrange("celery", 0, -1)
    assert json.loads(message)["headers"]["task"] == "operators.telegram.tasks.show_order"


def test_the_use_of_a_key_is_written(api: LiveServer) -> None:
    merchant = make_merchant()
    ask(api, "GET", "/api/v1/ping", bearer(merchant.key))
    wait_until(lambda: merchant.client.keys.get().last_used_at, "the use is written")


@pytest.mark.parametrize("path", PAGES)
def test_an_api_process_serves_no_pages(api: LiveServer, path: str) -> None:
    for method in ("GET", "POST"):
        answer = ask(api, method, path)
        assert answer.status == 404
        assert answer.json().keys() == {"message"}
        assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("path", PAGES)
def test_a_process_for_pages_serves_them(pages: LiveServer, path: str) -> None:
    assert ask(pages, "GET", path).status in {200, 302, 503}  # 503: no bot and no worker


def test_the_documentation_page_names_the_document(pages: LiveServer) -> None:
    assert DOCUMENT_PATH.encode() in ask(pages, "GET", "/docs/api/").body


@pytest.mark.parametrize("path", [path for path in PATHS if path.startswith("/api/")])
def test_a_process_for_pages_answers_no_api_request(pages: LiveServer, key: str, path: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        answer = ask(pages, method, path, {**bearer(key), **JSON_BODY}, b"{}")
        assert (answer.status, answer.json().keys()) == (404, {"message"})
