"""The line of each request: what it says, and what it does not cost."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path
from structlog.contextvars import get_contextvars

from config.http import error_pages
from config.http.health import healthz
from config.logs import request_logger
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


def test_it_says_who_asked_for_what_and_how_it_ended(
    merchant: Merchant, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = CheckedClient().get(
        "/api/v1/orders/X?page=secret", headers={"Authorization": f"Bearer {merchant.key}"}
    )
    line = lines(capsys)[0]  # the next is that of the document which the answer is held against
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "request_finished",
        "request": "GET /api/v1/orders/X",
        "code": 404,
        "user_id": merchant.client.pk,
        "request_id": answer["X-Request-Id"],
        "level": "info",
        "logger": "config.requests",
    }


def test_it_knows_a_person_only_where_the_page_did(
    capsys: pytest.CaptureFixture[str], django_assert_num_queries: Any
) -> None:
    browser = signed_in()
    browser.get("/admin/")
    page = lines(capsys)[-1]
    with django_assert_num_queries(0):
        browser.get("/healthz")
    assert page["user_id"] == int(browser.session["_auth_user_id"])
    assert lines(capsys)[-1]["user_id"] is None


def test_a_failure_is_told_with_its_cause_under_the_same_id(
    settings: Any, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    settings.ROOT_URLCONF = __name__
    answer = Client(raise_request_exception=False).get("/fails")

    (line,) = lines(capsys)
    (failure,) = [record for record in caplog.records if record.name == "config.http.request_log"]
    assert isinstance(failure.msg, dict)
    assert (answer.status_code, line["code"], line["level"]) == (500, 500, "error")
    assert "ZeroDivisionError" in failure.msg["exception"]
    assert failure.msg["request_id"] == line["request_id"] == answer["X-Request-Id"]


def test_what_the_thread_does_next_has_nothing_of_it() -> None:
    Client().get("/healthz")
    assert get_contextvars() == {}


def test_it_keeps_to_the_level_and_hides_what_no_line_may_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = request_logger(level="WARNING", secrets=["4711:token"])
    log.info("request_finished", code=200)
    log.error("request_finished", request="GET /bot4711:token/x")
    (line,) = lines(capsys)
    assert line["request"] == "GET /bot***/x"


def test_an_answer_is_given_though_its_line_cannot_be_written(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stderr", full)
        answer = Client().get("/api/v1/ping", headers={"Authorization": f"Bearer {merchant.key}"})
        with suppress(OSError):
            full.close()
    assert (answer.status_code, len(answer["X-Request-Id"])) == (200, 36)
