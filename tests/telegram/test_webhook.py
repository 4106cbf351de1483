"""The webhook refuses everything that is not an update, and everybody who is not Telegram."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest
from pytest_django import Settings
from telegram import Bot, Update
from tornado.httpclient import AsyncHTTPClient

from embedded.processes import free_port
from operators.telegram.webhook import HEADER, Webhook, secret_token

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


TOKEN = "4711:a-token-of-nobody"


def answer(headers: dict[str, str]) -> int:
    """The status of a POST of an update without content to a running webhook."""

    async def post() -> int:
        bot: Any = Bot(TOKEN)
        hook, port = Webhook(bot, _handle), free_port()
        hook.start(host="127.0.0.1", port=port, path="/telegram")
        try:
            answer = await AsyncHTTPClient().fetch(
                f"http://127.0.0.1:{port}/telegram",
                method="POST", headers=headers, body=b"{}", raise_error=False,
            )  # fmt: skip
        finally:
            await hook.stop()
        return answer.code

    return asyncio.run(post())


def secret_of(settings: Settings, *, token: str, key: str) -> str:
    """The secret of a bot of a service with this SECRET_KEY."""
    before = settings.TELEGRAM_BOT_TOKEN, settings.SECRET_KEY
    settings.TELEGRAM_BOT_TOKEN, settings.SECRET_KEY = token, key
    secret = secret_token()
    settings.TELEGRAM_BOT_TOKEN, settings.SECRET_KEY = before
    return secret


def test_only_who_knows_the_secret_may_post(settings: Settings) -> None:
    settings.TELEGRAM_BOT_TOKEN = TOKEN
    key = settings.SECRET_KEY
    wrong = [
        "",
        "x",
        secret_of(settings, token="4712:another-token", key=key),
        secret_of(settings, token=TOKEN, key="another secret key"),
        secret_token()[:-1],
    ]

    assert answer({}) == HTTPStatus.FORBIDDEN
    assert {answer({HEADER: secret}) for secret in wrong} == {HTTPStatus.FORBIDDEN}
    assert answer({HEADER: secret_token()}) == HTTPStatus.BAD_REQUEST  # it was read
