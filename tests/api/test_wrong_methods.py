"""A method that a path does not have is 405 `{message}` on the live server.

Django's test client switches CSRF checks off, so only a real server shows what browsers, scanners
and proxies receive. A POST with a CSRF cookie, an Origin or a Referer is checked differently.
"""

import json
from collections.abc import Iterator

import pytest

from tests.answers import DOCUMENT_PATH, operations, served_document
from tests.factories import make_merchant
from tests.live import LiveServer, live_server

pytestmark = pytest.mark.django_db(transaction=True)

OUTSIDE_THE_DOCUMENT = {
    DOCUMENT_PATH: {"GET"},
    "/healthz": {"GET"},
    "/readyz": {"GET"},
    "/readyz/bot": {"GET"},
    "/readyz/worker": {"GET"},
}
METHODS = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]
SENDERS = {
    "nobody": {},
    "a key": {"Authorization": "Bearer KEY"},
    "a CSRF cookie": {"Cookie": "csrftoken=" + "a" * 32},
    "cookies and a token": {
        "Cookie": "csrftoken=" + "a" * 32 + "; sessionid=" + "b" * 32,
        "X-CSRFToken": "a" * 32,
    },
    "another origin": {"Origin": "https://elsewhere.example"},
    "this origin": {"Origin": "http://localhost", "Referer": "http://localhost/docs/"},
    "another referer": {"Referer": "https://elsewhere.example/"},
    "no origin": {"Origin": "null"},
}


@pytest.fixture(scope="module")
def live_https(django_db_setup: None) -> Iterator[LiveServer]:
    """A server behind a proxy that terminates HTTPS, as in production."""
    environment = {"DJANGO_HTTPS": "true", "TRUSTED_PROXIES": "127.0.0.0/8"}
    with live_server(environment, workers=1) as server:
        yield server


def paths() -> dict[str, set[str]]:
    """Every path of the API and every probe, with its methods."""
    known: dict[str, set[str]] = {}
    for method, path, _ in operations(served_document()):
        concrete = path.replace("{product}", "1").replace("{reference}", "X")
        known.setdefault(f"/api/v1{concrete}", set()).add(method)
    assert len(known) == 8
    return known | OUTSIDE_THE_DOCUMENT


def assert_wrong_methods_are_405(server: LiveServer, headers: dict[str, str]) -> None:
    key = make_merchant().key
    headers = {name: value.replace("KEY", key) for name, value in headers.items()}
    wrong = []
    for path, known in paths().items():
        for method in (each for each in METHODS if each not in known):
            body = b'{"a": 1}' if method in {"POST", "PUT", "PATCH"} else None
            kind = {"Content-Type": "application/json"} if body else {}
            answer = server.http.request(method, path, body, {**kind, **headers})
            form = answer.headers["Content-Type"]
            if (answer.status_code, form) != (405, "application/json"):
                wrong.append(f"{method} {path}: {answer.status_code} {form}")
            else:
                assert set(json.loads(answer.content)) == {"message"}
                assert "GET" in answer["Allow"]
    assert wrong == []


@pytest.mark.parametrize("sender", SENDERS)
def test_a_wrong_method_is_405_with_a_message(live: LiveServer, sender: str) -> None:
    assert_wrong_methods_are_405(live, SENDERS[sender])


@pytest.mark.parametrize("sender", SENDERS)
def test_a_wrong_method_over_https_is_405_with_a_message(
    live_https: LiveServer, sender: str
) -> None:
    assert_wrong_methods_are_405(live_https, {"X-Forwarded-Proto": "https", **SENDERS[sender]})


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_a_form_posted_to_the_document_is_405(live: LiveServer, content_type: str) -> None:
    answer = live.http.request(
        "POST",
        DOCUMENT_PATH,
        b"csrfmiddlewaretoken=x",
        {"Content-Type": content_type, **SENDERS["a CSRF cookie"]},
    )
    assert answer.status_code == 405
    assert set(answer.json()) == {"message"}
