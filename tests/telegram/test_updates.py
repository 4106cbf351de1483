"""Malformed responses and updates from the Bot API."""

import json
from typing import Any

import pytest
from telegram.error import TelegramError

from operators.telegram.updates.bot import UpdatesRequest

VALID: dict[str, Any] = {
    "update_id": 7,
    "message": {"message_id": 1, "date": 1, "chat": {"id": 1, "type": "group"}},
}


@pytest.mark.parametrize(
    "payload",
    [
        *(b"null", b"5", b'"text"', b"[1]", b"[" * 100_000, b"<html>"),
        *(b'{"result": 5}', b'{"result": null}', b'{"result": {"a": 1}}', b'{"result": [5]}'),
        *(b'{"result": [{}]}', b'{"result": [{"update_id": null}]}'),
        *(b'{"result": [{"update_id": "5"}]}', b'{"result": [{"update_id": true}]}'),
    ],
)
def test_malformed_response_is_a_failed_fetch(payload: bytes) -> None:
    with pytest.raises(TelegramError):
        UpdatesRequest.parse_json_payload(payload)


@pytest.mark.parametrize(
    "content",
    [
        {"callback_query": 5},
        {"message": {"date": "soon"}},
        *({"message": {**VALID["message"], "date": date}} for date in (float("inf"), 1e15)),
    ],
)
def test_malformed_update_is_confirmed_with_the_others(content: Any) -> None:
    updates = [VALID, {"update_id": 8, **content}]
    answer = UpdatesRequest.parse_json_payload(json.dumps({"ok": True, "result": updates}).encode())
    assert answer["result"] == [VALID, {"update_id": 8}]


def test_refusal_is_passed_on_unchanged() -> None:
    said = {"ok": False, "error_code": 429, "parameters": {"retry_after": 3}}
    assert UpdatesRequest.parse_json_payload(json.dumps(said).encode()) == said
