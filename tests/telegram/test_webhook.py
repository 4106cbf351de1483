"""The webhook refuses everything that is not an update."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest
from telegram import Bot, Update

from operators.telegram.webhook import Webhook

DATED = b'{"update_id": 1, "message": {"message_id": 1, "date": %s, "chat": {"id": 1, "type": ""}}}'


async def _handle(update: Update) -> None:
    raise AssertionError(update)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"null", b"[]", b"5", b"{}", b"[" * 100_000, DATED % b"1e400", DATED % b"1e15"],
)
def test_malformed_update_is_refused(body: bytes) -> None:
    bot: Any = Bot("4711:a-token-of-nobody")

    assert asyncio.run(Webhook(bot, _handle).take(body)) == HTTPStatus.BAD_REQUEST
