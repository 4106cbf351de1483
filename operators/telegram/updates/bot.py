"""The bot's process: fetches updates, handles them, and then confirms them.

python-telegram-bot's own Updater confirms an update as soon as it is fetched, and loses it if the
process is killed before the update was handled. This process sends the next `offset` only after
the decisions on the whole batch are in the database. An update may be handled twice, which is
harmless (presses.py), but none is lost.

Answers to people are sent in the background: one that hangs must not delay the presses of others.
A killed process loses the answers that it was sending. The orders' messages still show the result.
"""

import asyncio
import signal
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, TypeVar

import structlog
from django.conf import settings
from telegram import BotCommand, Update
from telegram.error import InvalidToken, RetryAfter, TelegramError
from telegram.ext import Application, ApplicationBuilder
from telegram.request import HTTPXRequest

from core.queue import task_application
from operators.telegram.bot_api import base_url, describe
from operators.telegram.updates import bot_cache
from operators.telegram.updates.handlers import Background, Handlers, in_database
from operators.telegram.updates.texts import MENU

logger = structlog.get_logger(__name__)

Bot = Application[Any, Any, Any, Any, Any, Any]
Result = TypeVar("Result")

KINDS = [Update.MESSAGE, Update.CALLBACK_QUERY, Update.MY_CHAT_MEMBER]
POLL = timedelta(seconds=10)
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
CONNECTIONS = 32
ANSWERING = 4.0  # seconds for one answer; leaves time for another try
FINISHING = 15.0  # seconds for the last answers when the bot stops: longer than handlers.INSISTING


class Rejected(Exception):
    """Telegram does not accept the token."""


class UpdatesRequest(HTTPXRequest):
    """Fetches updates. One that cannot be parsed is logged and replaced with an empty one.

    It is then confirmed with the others. Telegram sends an unconfirmed update again and again.
    """

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Raises TelegramError if the payload is not an answer of the Bot API."""
        try:
            answer = dict(HTTPXRequest.parse_json_payload(payload))
            if "result" in answer:
                answer["result"] = [_readable(update) for update in answer["result"]]
        except (KeyError, RecursionError, TypeError, ValueError):
            raise TelegramError("This is not an answer of the Bot API.") from None
        return answer


def run_bot() -> None:
    """Runs until SIGTERM or SIGINT, and finishes the updates and answers in progress first.

    Raises Rejected.
    """
    task_application()  # before the first press that queues a task
    asyncio.run(_run())


async def _run() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    answers = Background()
    bot = build_bot(answers)
    try:
        if await _connect(bot, stop):
            await _poll(bot, stop)
    finally:
        await answers.finish(FINISHING)
        await bot.shutdown()


def build_bot(answers: Background) -> Bot:
    """An application without an Updater: this module fetches the updates. Answers to people are
    sent by `answers`."""
    bot = (
        ApplicationBuilder()
        .token(settings.TELEGRAM_BOT_TOKEN)
        .base_url(base_url())
        .updater(None)
        .request(_request(HTTPXRequest, connections=CONNECTIONS, seconds=ANSWERING))
        .get_updates_request(
            _request(UpdatesRequest, connections=1, seconds=settings.TELEGRAM_TIMEOUT_SECONDS)
        )
        .build()
    )
    Handlers(answers).add_to(bot)
    return bot


def _request(kind: type[HTTPXRequest], *, connections: int, seconds: float) -> HTTPXRequest:
    return kind(
        connection_pool_size=connections,
        connect_timeout=seconds,
        read_timeout=seconds,
        write_timeout=seconds,
        pool_timeout=seconds,
    )


async def _connect(bot: Bot, stop: asyncio.Event) -> bool:
    """Connects, retrying until Telegram is reachable; False if the bot must stop before that."""
    pause = SHORTEST_PAUSE
    while not stop.is_set():
        try:
            await _unless(stop, _introduce(bot))
        except InvalidToken:
            raise Rejected("Telegram does not accept TELEGRAM_BOT_TOKEN.") from None
        except TelegramError as error:
            pause = await _wait_to_retry(stop, error, pause)
        else:
            return not stop.is_set()
    return False


async def _introduce(bot: Bot) -> None:
    await bot.initialize()
    await bot.bot.set_my_commands([BotCommand(name, text) for name, text in MENU.items()])
    logger.info("telegram_bot_started", username=bot.bot.username)


async def _poll(bot: Bot, stop: asyncio.Event) -> None:
    """Fetches updates, decides on them, and confirms them with the next fetch."""
    offset: int | None = None
    pause = SHORTEST_PAUSE
    while not stop.is_set():
        fetch = bot.bot.get_updates(offset, timeout=POLL, allowed_updates=KINDS)
        try:
            updates = await _unless(stop, fetch)
        except Exception as error:  # of any kind: a proxy may answer in place of Telegram
            pause = await _wait_to_retry(stop, error, pause)
            continue
        pause = SHORTEST_PAUSE
        await _beat()
        if updates:
            await asyncio.gather(*(_handle(bot, update) for update in updates))
            offset = updates[-1].update_id + 1
    if offset is not None:
        await _confirm(bot, offset)


async def _confirm(bot: Bot, offset: int) -> None:
    """Confirms the last batch without waiting for more. If this fails, its updates come again."""
    try:
        await bot.bot.get_updates(offset, limit=1, timeout=0, allowed_updates=KINDS)
    except TelegramError as error:
        logger.warning("telegram_not_confirmed", cause=describe(error))


async def _handle(bot: Bot, update: Update) -> None:
    """Decides on one update. Its errors go to the error handler, which logs them."""
    structlog.contextvars.bind_contextvars(request_id=f"telegram-{update.update_id}")
    await bot.process_update(update)


async def _beat() -> None:
    try:
        # On the thread that handles updates: a heartbeat proves that this thread works, too.
        await in_database(bot_cache.beat)
    except Exception as error:  # a lost cache must not stop the bot
        logger.warning("telegram_heartbeat_failed", cause=describe(error))


async def _wait_to_retry(stop: asyncio.Event, error: Exception, pause: float) -> float:
    """Waits after a failure, for as long as Telegram asks; returns the next pause in seconds."""
    logger.warning("telegram_unreachable", cause=describe(error))
    seconds = pause
    if isinstance(error, RetryAfter):
        wait = error.retry_after
        seconds = wait if isinstance(wait, int) else wait.total_seconds()
    await _wait(stop, seconds)
    return min(pause * 2, LONGEST_PAUSE)


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    await asyncio.wait([waiting := asyncio.ensure_future(stop.wait())], timeout=seconds)
    waiting.cancel()


async def _unless(stop: asyncio.Event, work: Awaitable[Result]) -> Result | None:
    """The result, or None if the bot must stop first; fetched updates are then not confirmed."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.wait([working])
    return None


def _readable(update: Any) -> Any:
    """The update, or an empty one with its number if it cannot be parsed."""
    number = update["update_id"]
    if type(number) is not int:
        raise TypeError(number)
    try:
        Update.de_json(update)
    except Exception as error:  # python-telegram-bot lets errors of any kind through
        logger.warning("telegram_update_unreadable", cause=type(error).__name__)
        return {"update_id": number}
    return update
