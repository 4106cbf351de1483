"""The webhook: Telegram posts updates, and repeats each until the answer is 200."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from hmac import compare_digest
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac
from telegram import Bot, Update
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from operators.telegram.secret_keys import accepted_secret_keys
from operators.telegram.updates import read_update

MAX_BODY = 1024 * 1024
HEADER = "X-Telegram-Bot-Api-Secret-Token"


def secret_token() -> str:
    """The secret Telegram sends with each update. It is derived from SECRET_KEY and the token."""
    return _secret_tokens()[0]


def is_from_telegram(shown: str) -> bool:
    """Whether `shown` is our secret. After a rotation of SECRET_KEY, Telegram sends the old one
    until the bot has registered the new one."""
    return any(compare_digest(shown.encode(), token.encode()) for token in _secret_tokens())


def _secret_tokens() -> list[str]:
    return [
        salted_hmac(
            "operators.telegram.webhook",
            settings.TELEGRAM_BOT_TOKEN,
            secret=key,
            algorithm="sha256",
        ).hexdigest()
        for key in accepted_secret_keys()
    ]


class Webhook:
    """A web server on the event loop of this process, for the one path Telegram posts to."""

    def __init__(self, bot: Bot, handle: Callable[[Update], Awaitable[None]]) -> None:
        self._bot = bot
        self._handle = handle
        self._in_hand: set[asyncio.Future[None]] = set()
        self._server: HTTPServer | None = None

    def start(self, *, host: str, port: int, path: str) -> None:
        """Starts to listen. Raises OSError if it cannot."""
        routes = [(re.escape(path), _Handler, {"webhook": self})]
        self._server = Application(routes).listen(port, host, max_body_size=MAX_BODY)

    async def stop(self) -> None:
        """Accepts no more updates, and finishes those in progress."""
        if self._server is not None:
            self._server.stop()
            while self._in_hand:
                await asyncio.wait(self._in_hand)
            await asyncio.sleep(0)  # lets the last answer be sent
            await self._server.close_all_connections()

    async def take(self, body: bytes) -> HTTPStatus:
        """Decides on one update, even if Telegram closes the connection meanwhile."""
        try:
            content = json.loads(body)
        except (RecursionError, ValueError):
            content = None
        update = read_update(content, self._bot)
        if update is None:
            return HTTPStatus.BAD_REQUEST
        handling = asyncio.ensure_future(self._handle(update))
        self._in_hand.add(handling)
        handling.add_done_callback(self._in_hand.discard)
        await asyncio.shield(handling)
        return HTTPStatus.OK


class _Handler(RequestHandler):
    def initialize(self, webhook: Webhook) -> None:
        self._webhook = webhook

    def set_default_headers(self) -> None:
        self.clear_header("Server")

    async def post(self) -> None:
        shown = self.request.headers.get(HEADER, "")
        if not is_from_telegram(shown):
            self.set_status(HTTPStatus.FORBIDDEN)
            return
        self.set_status(await self._webhook.take(self.request.body))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        self.finish()
