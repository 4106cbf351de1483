"""Behind a proxy that terminates HTTPS, only the trusted proxy's X-Forwarded headers count."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.factories import make_merchant

pytestmark = pytest.mark.django_db

PROXY, UNTRUSTED, MERCHANT = "10.0.0.7", "203.0.113.9", "198.51.100.4"

Call = Callable[..., Any]


@pytest.fixture
def call(settings: Settings) -> Call:
    """Makes requests of a merchant with one allowed address, with production's HTTPS settings."""
    settings.HTTPS = settings.SECURE_SSL_REDIRECT = True
    settings.TRUSTED_PROXIES = ["10.0.0.0/8"]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    merchant = make_merchant(allowed_networks=[MERCHANT])

    def call(peer: str, method: str = "GET", path: str = "/ping", **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client(REMOTE_ADDR=peer).generic(
            method,
            f"/api/v1{path}",
            headers={"Authorization": f"Bearer {merchant.key}", **named},
        )

    return call


def test_an_https_request_through_the_proxy_is_accepted(call: Call) -> None:
    answer = call(PROXY, X_Forwarded_Proto="https", X_Forwarded_For=MERCHANT)
    assert answer.status_code == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/ping"), ("POST", "/orders")])
def test_plain_http_is_refused_and_not_redirected(call: Call, method: str, path: str) -> None:
    answer = call(PROXY, method, path, X_Forwarded_Proto="http", X_Forwarded_For=MERCHANT)

    assert answer.status_code == 403
    assert answer.json().keys() == {"message"}
    assert "https" in answer.json()["message"]
    assert "Location" not in answer


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/readyz/bot"])
def test_probes_are_answered_over_plain_http(settings: Settings, path: str) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = Client(REMOTE_ADDR=PROXY).get(path)

    assert answer.status_code in {200, 503}  # /readyz/bot is 503 while no bot runs
    assert "Location" not in answer


def test_pages_are_redirected_to_https(settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = Client(REMOTE_ADDR=PROXY).get("/merchant/")

    assert answer.status_code == 301
    assert answer["Location"].startswith("https://")


def test_x_forwarded_proto_of_an_untrusted_peer_is_ignored(call: Call) -> None:
    assert call(UNTRUSTED, X_Forwarded_Proto="https").json().keys() == {"message"}


def test_a_proxy_without_x_forwarded_for_matches_no_allowlist(
    call: Call, settings: Settings
) -> None:
    """The address of the proxy must not match an allowlist that contains the proxies' network."""
    inside = make_merchant(allowed_networks=["10.0.0.0/8"])
    answer = Client(REMOTE_ADDR=PROXY).get(
        "/api/v1/ping",
        headers={"Authorization": f"Bearer {inside.key}", "X-Forwarded-Proto": "https"},
    )
    assert answer.json()["error"]["code"] == "ip_not_allowed"
