"""`check_answer`, which every API test runs, rejects undocumented responses."""

import json
from typing import Any

import pytest
from django.http import HttpResponse

from core.http import error_messages
from tests.answers import CheckedClient, WrongAnswer, check_answer
from tests.factories import Merchant

HEADERS = {
    "Content-Type": "application/json",
    "X-Request-Id": "00000000-0000-4000-8000-000000000000",
}
BALANCE: dict[str, Any] = {"success": True, "data": {"balance": 1.5, "currency": "USD"}}
NOT_FOUND = {"success": False, "error": {"code": "order_not_found", "message": "No."}}


def check(path: str, status: int, value: Any, *, method: str = "GET", **headers: str) -> None:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    names = {name.replace("_", "-"): text for name, text in headers.items()}
    check_answer(method, f"/api/v1{path}", status=status, headers=HEADERS | names, body=body)


def test_documented_responses_pass() -> None:
    check("/balance", 200, BALANCE)
    check("/orders/X", 404, NOT_FOUND)
    check("/nothing", 404, {"message": "No."})
    check("/balance", 405, {"message": "No."}, method="PUT")


@pytest.mark.parametrize(
    ("path", "status", "value"),
    [
        pytest.param("/balance", 200, {"success": True, "data": {"balance": 1}}, id="missing"),
        pytest.param(
            "/balance", 200, {**BALANCE, "data": {**BALANCE["data"], "id": 1}}, id="unnamed member"
        ),
        pytest.param(
            "/balance", 200, {**BALANCE, "data": {"balance": "1", "currency": ""}}, id="type"
        ),
        pytest.param("/balance", 200, {**BALANCE, "success": False}, id="success is false"),
        pytest.param("/balance", 200, {"balance": 1, "currency": "USD"}, id="no envelope"),
        pytest.param("/balance", 202, BALANCE, id="undocumented status"),
        pytest.param("/balance", 404, NOT_FOUND, id="undocumented failure"),
        pytest.param("/balance", 404, {"message": "No."}, id="message at a real endpoint"),
        pytest.param("/products/1", 404, NOT_FOUND, id="another endpoint's code"),
        pytest.param("/nothing", 404, NOT_FOUND, id="error object at an unknown path"),
        pytest.param("/products/x", 404, {"message": "No.", "detail": 1}, id="more than message"),
        pytest.param("/nothing", 404, {"message": ""}, id="empty message"),
        pytest.param("/balance", 200, b'{"success": true, "success": true}', id="name twice"),
        pytest.param("/balance", 200, b'{"success": NaN}', id="NaN"),
        pytest.param("/balance", 200, b"<html>", id="HTML"),
    ],
)
def test_undocumented_responses_fail(path: str, status: int, value: Any) -> None:
    with pytest.raises(WrongAnswer):
        check(path, status, value)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Type": "text/html"},
        {"X_Request_Id": ""},
        {"Retry_After": "1"},
        {"Idempotent_Replay": "true"},
    ],
)
def test_wrong_headers_fail(headers: dict[str, str]) -> None:
    with pytest.raises(WrongAnswer):
        check("/balance", 200, BALANCE, **headers)


def test_a_wrong_response_fails_the_test_that_made_the_request(
    merchant: Merchant, client: CheckedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: the same calls pass before the service is made to respond wrongly."""
    merchant.get("/balance")
    client.get("/api/v1/nothing")
    monkeypatch.setattr("wallets.schemas.BalanceSerializer.data", {"balance": 1})
    monkeypatch.setattr(error_messages, "message_response", lambda *_: HttpResponse("<html>"))
    with pytest.raises(WrongAnswer):
        merchant.get("/balance")
    with pytest.raises(WrongAnswer):
        client.get("/api/v1/nothing")
