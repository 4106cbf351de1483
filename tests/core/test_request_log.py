"""The request log: the content of its lines, and their cost."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from structlog.contextvars import get_contextvars

from config import error_pages
from core.api.pagination import Page
from core.http.readiness import healthz
from core.telemetry.logs import DirectLogger, RedactingRenderer
from tests.answers import CheckedClient
from tests.factories import Merchant
from tests.operators.back_office import signed_in

pytestmark = pytest.mark.django_db


def fails(request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError


urlpatterns = [path("fails", fails), path("healthz", healthz)]
handler500 = error_pages.server_error


def lines(captured: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in captured.readouterr().err.splitlines()]


def test_a_line_shows_client_request_and_status(
    merchant: Merchant, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = CheckedClient().get(
        "/api/v1/orders/X?page=secret", headers={"Authorization": f"Bearer {merchant.key}"}
    )
    line = lines(capsys)[0]  # later lines belong to requests of CheckedClient itself
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "request_finished",
        "request": "GET /api/v1/orders/X",
        "code": 404,
        "user_id": merchant.client.pk,
        "request_id": answer["X-Request-Id"],
        "level": "info",
        "logger": "core.requests",
    }


def test_the_user_is_logged_only_when_already_loaded(
    capsys: pytest.CaptureFixture[str], django_assert_num_queries: Any
) -> None:
    browser = signed_in()
    browser.get("/admin/")
    page = lines(capsys)[-1]
    with django_assert_num_queries(0):
        browser.get("/healthz")
    assert page["user_id"] == int(browser.session["_auth_user_id"])
    assert lines(capsys)[-1]["user_id"] is None


def test_an_unhandled_exception_is_logged_with_the_request_id(
    settings: Any, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    settings.ROOT_URLCONF = __name__
    answer = Client(raise_request_exception=False).get("/fails")

    (line,) = lines(capsys)
    (failure,) = [record for record in caplog.records if record.name == "core.http.request_log"]
    assert isinstance(failure.msg, dict)
    assert (answer.status_code, line["code"], line["level"]) == (500, 500, "error")
    assert "ZeroDivisionError" in failure.msg["exception"]
    assert failure.msg["request_id"] == line["request_id"] == answer["X-Request-Id"]


def test_a_long_path_is_cut(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Container runtimes cut a long line, and the rest looks like a line of its own."""
    client.get("/api/v1/" + "x" * 1000)
    assert lines(capsys)[0]["request"] == f"GET {'/api/v1/'.ljust(300, 'x')}"


@pytest.mark.parametrize(
    ("path", "host"), [("/healthz", "evil.example"), ("/merchant/sign-in/", "localhost")]
)
def test_a_stranger_causes_one_line_without_a_traceback(
    path: str,
    host: str,
    client: Client,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither with a wrong Host nor with more parameters than Django reads."""
    parameters = {f"p{number}": "" for number in range(1001)}
    answer = client.post(path, parameters, headers={"Host": host})

    assert answer.status_code == 400
    assert [line["code"] for line in lines(capsys)] == [400]
    assert not [
        record for record in caplog.records if record.exc_info or record.levelname == "ERROR"
    ]


def test_the_request_id_is_cleared_after_the_request() -> None:
    Client().get("/healthz")
    assert get_contextvars() == {}


def test_the_logger_respects_the_level_and_redacts_secrets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = DirectLogger("core.requests", level="WARNING", secrets=["4711:token"])
    log.info("request_finished", code=200)
    log.error("request_finished", request="GET /bot4711:token/x")
    (line,) = lines(capsys)
    assert line["request"] == "GET /bot***/x"


VALUES: list[Any] = [
    *(2**70, "\ud800", "é\u2028\x85", 'a"\\b\n\x7f', None, True, 1.5, ["a", {"b": 1}]),
    *(datetime(2026, 1, 2, tzinfo=UTC), Page(1, 2), ValueError("x"), {1: 2}),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_line_is_the_json_that_the_standard_library_writes(value: Any) -> None:
    """In ASCII and in one line, without spaces, whichever library wrote it."""
    event = {"event": "x", "value": value}
    line = RedactingRenderer(())(None, "info", event)
    assert line.startswith('{"event":"x","value":')
    assert line.isascii()
    assert line.splitlines() == [line]
    assert json.loads(line) == json.loads(json.dumps(event, default=repr))


@pytest.mark.parametrize("secret", ["4711:token", 'qu"o\\te', "ümlaut"])
def test_a_secret_is_replaced_wherever_it_is(secret: str) -> None:
    render = RedactingRenderer(["", secret])
    for other in ("", "é"):
        line = render(None, "info", {"event": f"a{secret}b", "list": [other, {"c": secret}]})
        assert json.loads(line) == {"event": "a***b", "list": [other, {"c": "***"}]}


def test_a_line_is_written_whole_to_a_pipe_that_takes_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lines of several threads do not mix."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "w") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        log = DirectLogger("test", level="INFO")
        write = os.write
        monkeypatch.setattr("os.write", lambda file, data: write(file, data[:100]))

        def fill(_: int) -> None:
            for number in range(20):
                log.info("x" * 500, number=number)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(fill, range(4)))
        stream.close()
        numbers = [json.loads(line)["number"] for line in pipe]
    assert sorted(numbers) == sorted([*range(20)] * 4)


def test_a_line_is_one_call_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        log, write = DirectLogger("test", level="INFO"), os.write
        calls: list[bytes] = []

        def note(file: int, data: bytes) -> int:
            calls.append(data)
            return write(file, data)

        monkeypatch.setattr("os.write", note)
        log.info("one")
        log.info("two")
    assert [json.loads(line)["event"] for line in calls] == ["one", "two"]
    assert (tmp_path / "log").read_bytes() == b"".join(calls)


def test_a_line_for_a_closed_stderr_reaches_no_other_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "log").open("w") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        log = DirectLogger("test", level="INFO")
    with (tmp_path / "other").open("w") as other:  # gets the number of the closed one
        with pytest.raises(ValueError, match="closed"):
            log.info("lost")
        assert other.fileno() > 0
    assert (tmp_path / "other").read_text() == ""


def test_a_response_is_sent_when_its_line_cannot_be_written(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stderr", full)
        answer = Client().get("/api/v1/ping", headers={"Authorization": f"Bearer {merchant.key}"})
        with suppress(OSError):
            full.close()
    assert (answer.status_code, len(answer["X-Request-Id"])) == (200, 36)
