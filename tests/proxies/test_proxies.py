"""The proxies with the files of `deploy/`, in front of real API processes and pages."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlencode

import pytest

from embedded.commands import WEB_THREADS
from tests.api.raw import chunked, head
from tests.contract.situations import make_shop
from tests.factories import make_merchant
from tests.live import LiveServer, live_server, with_settings
from tests.merchants.people import browser_of, make_member
from tests.proxies.running import CALLER, NAME, PROXIES, Proxy, running_proxy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nginx]

PING, ORDERS = "/api/v1/ping", "/api/v1/orders"
SIGN_IN, IMPORT = "/merchant/sign-in/", "/merchant/references/import/"
UPLOAD = "/admin/imports/fileimport/upload/codes/"
BEHIND_A_PROXY = {
    "DJANGO_HTTPS": "1",
    "TRUSTED_PROXIES": "127.0.0.1/32",
    "DJANGO_CSRF_TRUSTED_ORIGINS": f"https://{NAME}",
}
KIB = 1024
SLOW_SENDERS = WEB_THREADS + 4
# A body in KiB that the proxy refuses by itself. HAProxy 2.6 cancels the stream of a body that its
# buffer of 288 KiB does not hold, and curl sometimes drops the response.
TOO_LARGE = {"nginx": 300, "caddy": 300, "haproxy": 270}


@pytest.fixture(scope="module")
def api(django_db_setup: None) -> Iterator[LiveServer]:
    environment = {**BEHIND_A_PROXY, "DJANGO_SETTINGS_MODULE": "config.settings_api"}
    with live_server(environment, workers=1) as server:
        yield server


@pytest.fixture(scope="module")
def pages(django_db_setup: None) -> Iterator[LiveServer]:
    environment = {
        **BEHIND_A_PROXY,
        **with_settings("config.settings_pages", AXES_FAILURE_LIMIT=2),
    }
    with live_server(environment, workers=1) as server:
        yield server


@pytest.fixture(scope="module", params=PROXIES)
def proxy(
    request: pytest.FixtureRequest,
    api: LiveServer,
    pages: LiveServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp(request.param)
    with running_proxy(request.param, api=[api.port], pages=[pages.port], folder=folder) as proxy:
        yield proxy


def bearer(key: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", **more}


def purchase_headers(key: str, name: str = "k") -> dict[str, str]:
    return bearer(key, **{"Content-Type": "application/json", "Idempotency-Key": name})


def test_a_purchase_and_its_replay(proxy: Proxy) -> None:
    shop = make_shop()
    body = json.dumps({"product_id": shop.product.pk, "quantity": 1}).encode()

    bought = proxy.ask("POST", ORDERS, purchase_headers(shop.merchant.key), body)
    replayed = proxy.ask("POST", ORDERS, purchase_headers(shop.merchant.key), body)

    assert (bought.status, replayed.status) == (201, 201)
    assert bought.body == replayed.body
    assert "Idempotent-Replay" not in bought.headers
    assert replayed.headers["Idempotent-Replay"] == "true"


@pytest.mark.parametrize(("path", "status"), [(PING, 200), (ORDERS, 413)])
def test_http_2(proxy: Proxy, path: str, status: int) -> None:
    """What the proxy says by itself is JSON over HTTP/2, too."""
    curl = shutil.which("curl")
    assert curl
    sent = TOO_LARGE[proxy.name] * KIB if status == 413 else 0
    body = ("--data-binary", "@-") if sent else ()
    body_then_status = subprocess.run(
        [
            *(curl, "--silent", "--http2", "--cacert", proxy.folder / "certificate.pem"),
            *("--header", f"Authorization: Bearer {make_merchant().key}", *body),
            *("--write-out", "\n%{http_version} %{http_code}"),
            f"https://{NAME}:{proxy.port}{path}",
        ],
        input=" " * sent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    answer, _, version_and_status = body_then_status.rpartition("\n")
    assert version_and_status == f"2 {status}"
    assert answer.startswith("{"), answer


def test_pages_come_from_the_processes_for_pages(proxy: Proxy) -> None:
    for path in (SIGN_IN, "/admin/login/", "/docs/", "/static/merchants/page.js"):
        assert proxy.ask("GET", path).status == 200
    assert proxy.ask("GET", "/nothing").json().keys() == {"message"}
    assert proxy.ask("GET", "/api/v9/nothing").json().keys() == {"message"}
    assert proxy.ask("GET", "/readyz").status == 200


def test_hsts_is_set_once(proxy: Proxy) -> None:
    for path in (PING, SIGN_IN):
        answer = proxy.ask("GET", path)
        assert answer.headers["Strict-Transport-Security"].startswith("max-age=31536000")
        assert "," not in answer.headers["Strict-Transport-Security"]


def test_the_allowlist_sees_the_real_caller(proxy: Proxy) -> None:
    key = make_merchant(allowed_networks=[CALLER]).key
    assert proxy.ask("GET", PING, bearer(key)).status == 200
    refused = proxy.ask("GET", PING, bearer(key), caller="127.0.0.8")
    assert refused.json()["error"]["code"] == "ip_not_allowed"


@pytest.mark.parametrize(
    "name", ["X-Forwarded-For", "X_Forwarded_For", "x_forwarded_for", "X-Forwarded_For"]
)
def test_the_caller_cannot_choose_its_address(proxy: Proxy, name: str) -> None:
    key = make_merchant(allowed_networks=["127.0.0.7"]).key
    for value in ("127.0.0.7", "127.0.0.7, 127.0.0.1"):
        refused = proxy.ask("GET", PING, bearer(key, **{name: value}))
        assert refused.json()["error"]["code"] == "ip_not_allowed"


@pytest.mark.parametrize("name", ["X-Forwarded-Proto", "X_Forwarded_Proto"])
def test_the_caller_cannot_choose_the_protocol(proxy: Proxy, name: str) -> None:
    key = make_merchant().key
    assert proxy.ask("GET", PING, bearer(key, **{name: "http"})).status == 200
    plain = proxy.ask("GET", PING, bearer(key, **{name: "https"}), plain=True)
    assert (plain.status, plain.json().keys()) == (403, {"message"})
    assert plain.headers["Content-Type"] == "application/json"


def test_pages_are_redirected_to_https(proxy: Proxy) -> None:
    answer = proxy.ask("GET", "/merchant/orders/?page=2", plain=True)
    assert answer.status == 301
    assert re.fullmatch(
        rf"https://{NAME}(:\d+)?/merchant/orders/\?page=2", answer.headers["Location"]
    )


def test_slow_bodies_hold_no_thread(proxy: Proxy) -> None:
    shop = make_shop(codes=5)
    start = head(
        "POST", ORDERS, {**purchase_headers(shop.merchant.key, "slow"), "Content-Length": "100"}
    )
    body = json.dumps({"product_id": shop.product.pk, "quantity": 1}).encode()
    with ExitStack() as stack:
        for _ in range(SLOW_SENDERS):
            stack.enter_context(proxy.wire()).sendall(start + b"{")
        began = time.monotonic()
        for number in range(3):
            headers = purchase_headers(shop.merchant.key, f"quick {number}")
            assert proxy.ask("POST", ORDERS, headers, body).status == 201
        assert time.monotonic() - began < 5


def test_the_service_refuses_a_body_over_its_own_limit(proxy: Proxy) -> None:
    body = b" " * (128 * KIB + 1)
    answer = proxy.ask("POST", ORDERS, purchase_headers(make_merchant().key), body)
    assert (answer.status, answer.json().keys()) == (413, {"message"})
    assert "131072 bytes" in answer.json()["message"]


@pytest.mark.parametrize("in_chunks", [False, True])
def test_the_proxy_refuses_larger_bodies(proxy: Proxy, in_chunks: bool) -> None:
    length = {"Transfer-Encoding": "chunked"} if in_chunks else {"Content-Length": str(300 * KIB)}
    body = b" " * 300 * KIB
    headers = {**purchase_headers(make_merchant().key), **length}
    answer = proxy.ask("POST", ORDERS, headers, chunked([body]) if in_chunks else body)
    assert (answer.status, answer.json().keys()) == (413, {"message"})
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("proxy", ["nginx", "caddy"], indirect=True)
@pytest.mark.parametrize("path", [IMPORT, UPLOAD])
def test_a_large_file_reaches_the_service_and_never_the_disk(proxy: Proxy, path: str) -> None:
    answer = proxy.ask("POST", path, {"Content-Type": "text/plain"}, b" " * 2000 * KIB)
    assert answer.status == 413  # nobody has signed in, so the usual limit applies
    assert answer.json()["message"] == "The request body is larger than 131072 bytes."
    assert "buffered to a temporary file" not in proxy.log  # a warning of nginx


def test_a_member_uploads_a_large_file(proxy: Proxy) -> None:
    """HAProxy passes files on while it receives them."""
    session = browser_of(make_member()).cookies["sessionid"].value
    token, boundary = "a" * 32, "limit"
    headers = {
        "Content-Type": f"multipart/form-data; boundary={boundary}",
        "Cookie": f"sessionid={session}; csrftoken={token}",
        "Origin": f"https://{NAME}",
        "X-CSRFToken": token,
    }
    name = 'Content-Disposition: form-data; name="file"; filename="references.csv"'
    file = "wrong\n" + " " * 1_900_000
    body = f"--{boundary}\r\n{name}\r\n\r\n{file}\r\n--{boundary}--\r\n"

    answer = proxy.ask("POST", IMPORT, headers, body.encode())

    assert (answer.status, b"Nothing was changed." in answer.body) == (200, True)


def test_a_too_large_form_is_refused_in_plain_text(proxy: Proxy) -> None:
    assert_refused_in_plain_text(proxy, SIGN_IN, 300)


@pytest.mark.parametrize("proxy", ["nginx", "caddy"], indirect=True)
def test_too_large_files_are_refused_in_plain_text(proxy: Proxy) -> None:
    """HAProxy leaves the size of files to the service."""
    for path in (IMPORT, UPLOAD):
        assert_refused_in_plain_text(proxy, path, 2300)


def assert_refused_in_plain_text(proxy: Proxy, path: str, size: int) -> None:
    answer = proxy.ask("POST", path, {"Content-Type": "text/plain"}, b" " * size * KIB)
    assert answer.status == 413
    assert answer.body.strip() == b"The request body is too large."


def sign_in(proxy: Proxy, caller: str) -> int:
    """The status of a sign-in with a wrong password."""
    token = "a" * 32
    form = {"csrfmiddlewaretoken": token, "username": "a@b.example", "password": "wrong"}
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Cookie": f"csrftoken={token}",
        "Origin": f"https://{NAME}",
    }
    return proxy.ask("POST", SIGN_IN, headers, urlencode(form).encode(), caller=caller).status


def test_sign_ins_of_one_address_are_limited(proxy: Proxy) -> None:
    address = {"nginx": "127.0.0.21", "caddy": "127.0.0.22", "haproxy": "127.0.0.24"}[proxy.name]
    statuses = [sign_in(proxy, address) for _ in range(3)]
    assert statuses == [200, 429, 429]
    assert sign_in(proxy, f"{address}0") == 200


@pytest.mark.parametrize("proxy", ["nginx", "haproxy"], indirect=True)
def test_a_flood_of_forms_is_stopped_before_the_service(proxy: Proxy) -> None:
    """Caddy has no rate limit in its standard build."""
    statuses = {proxy.ask("POST", SIGN_IN, caller="127.0.0.23").status for _ in range(40)}
    assert statuses == {403, 429}  # 403: no CSRF token
    assert proxy.ask("POST", SIGN_IN, caller="127.0.0.23").body.startswith(b"Too many attempts.")
    assert proxy.ask("GET", SIGN_IN, caller="127.0.0.23").status == 200


def test_the_log_has_no_secrets(proxy: Proxy) -> None:
    key = make_merchant().key
    headers = bearer(key, Cookie="sessionid=canary-cookie")
    request_id = proxy.ask("GET", f"{PING}?key=canary-query", headers).headers["X-Request-Id"]
    proxy.ask("GET", f"{SIGN_IN}?token=canary-query", headers)

    deadline = time.monotonic() + 5
    while proxy.log.count("sign-in") < 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert PING in proxy.log
    assert (request_id in proxy.log) == (proxy.name != "caddy")
    for secret in (key, "canary-query", "canary-cookie"):
        assert secret not in proxy.log
