"""Calls of the Bot API from synchronous code: send one message, or edit one.

Each kind of failure is an exception of its own, because callers react differently to each. No
exception of this module contains the token or is chained to one that might.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import cache
from ssl import SSLContext
from typing import TypeVar

import httpx
from django.conf import settings
from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    ReplyParameters,
)
from telegram.constants import ParseMode
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    InvalidToken,
    RetryAfter,
    TelegramError,
)
from telegram.request import HTTPXRequest

from operators.telegram.chats import Target
from operators.telegram.messages.buttons import Rows
from operators.telegram.messages.message import Message

MAX_DESCRIPTION = 200
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
GONE = ("message to edit not found", "message_id_invalid", "message can't be edited")

Answer = TypeVar("Answer")


class Trouble(Exception):
    """A call failed, or its result is unknown."""


class NotNow(Trouble):
    """Telegram asks to wait. Nothing was done."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"Telegram asks to wait for {wait.total_seconds():.0f} s.")
        self.wait = wait


class Unreachable(Trouble):
    """Nothing was done, because of the network, Telegram or the token. Try later."""


class AnswerLost(Trouble):
    """The result is unknown, and the Bot API has no call that returns it."""


class Refused(Trouble):
    """Telegram refuses for good, for example because the chat is gone or the bot was removed."""


class MessageGone(Trouble):
    """The message to edit no longer exists."""


class ChatMoved(Trouble):
    """The group became a supergroup with another id. Nothing was done."""

    def __init__(self, chat_id: int) -> None:
        super().__init__(f"The chat is now {chat_id}.")
        self.chat_id = chat_id


def send(*, target: Target, message: Message, reply_to: int | None = None) -> int:
    """Posts the message, as a reply to `reply_to` if that message exists; returns its id.

    Raises NotNow, Unreachable, AnswerLost, Refused or ChatMoved.
    """

    async def carry_out(bot: Bot) -> int:
        sent = await bot.send_message(
            chat_id=target.chat_id,
            message_thread_id=target.topic_id,
            text=message.text,
            parse_mode=ParseMode.HTML,
            reply_markup=markup(message.rows),
            link_preview_options=NO_PREVIEW,
            reply_parameters=ReplyParameters(reply_to, allow_sending_without_reply=True)
            if reply_to
            else None,
        )
        return sent.message_id

    return _call(carry_out)


def edit(*, chat_id: int, message_id: int, message: Message) -> None:
    """Changes the text and buttons of a message. No change at all is also a success.

    Raises NotNow, Unreachable, AnswerLost, Refused, MessageGone or ChatMoved.
    """

    async def carry_out(bot: Bot) -> None:
        try:
            await bot.edit_message_text(
                chat_id=chat_id,
                message_id=message_id,
                text=message.text,
                parse_mode=ParseMode.HTML,
                reply_markup=markup(message.rows),
                link_preview_options=NO_PREVIEW,
            )
        except BadRequest as error:
            if "message is not modified" not in str(error).lower():
                raise

    _call(carry_out)


def markup(rows: Rows) -> InlineKeyboardMarkup | None:
    """The buttons in the form python-telegram-bot takes; None if there are none."""
    if not rows:
        return None
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(one.label, callback_data=one.data) for one in row] for row in rows]
    )


def base_url() -> str:
    """The address to which python-telegram-bot appends the token."""
    return f"{settings.TELEGRAM_API_URL.rstrip('/')}/bot"


def make_request() -> HTTPXRequest:
    """A connection with our timeouts; the caller shuts it down.

    The timeout for connecting (TCP, then TLS) is shorter than that for the whole call. A call that
    times out while connecting was certainly not sent.
    """
    seconds = settings.TELEGRAM_TIMEOUT_SECONDS
    return HTTPXRequest(
        connection_pool_size=1,
        connect_timeout=seconds / 3,
        read_timeout=seconds,
        write_timeout=seconds,
        pool_timeout=seconds,
        httpx_kwargs={"verify": _tls()},
    )


@cache
def _tls() -> SSLContext:
    """Made once per process: reading the certificates takes longer than many calls."""
    return httpx.create_ssl_context()


def describe(error: BaseException) -> str:
    """The error in one short line, without the token."""
    kind, text = type(error).__name__, str(error)
    if not text.startswith(kind):
        text = f"{kind}: {text}"
    if settings.TELEGRAM_BOT_TOKEN:
        text = text.replace(settings.TELEGRAM_BOT_TOKEN, "***")
    return " ".join(text.split())[:MAX_DESCRIPTION]


def _call(carry_out: Callable[[Bot], Awaitable[Answer]]) -> Answer:
    try:
        return asyncio.run(_with_bot(carry_out))
    except RetryAfter as error:
        trouble: Trouble = NotNow(_as_timedelta(error.retry_after))
    except ChatMigrated as error:
        trouble = ChatMoved(error.new_chat_id)
    except BadRequest as error:
        gone = any(words in str(error).lower() for words in GONE)
        trouble = (MessageGone if gone else Refused)(describe(error))
    except Forbidden as error:
        trouble = Refused(describe(error))
    except InvalidToken:
        trouble = Unreachable("Telegram does not accept TELEGRAM_BOT_TOKEN.")
    except TelegramError as error:
        never_sent = isinstance(error.__cause__, NEVER_SENT)
        trouble = (Unreachable if never_sent else AnswerLost)(describe(error))
    except TimeoutError:
        trouble = AnswerLost("Telegram did not answer in time.")
    raise trouble  # outside the handlers, so that it has no context


async def _with_bot(carry_out: Callable[[Bot], Awaitable[Answer]]) -> Answer:
    """Makes a bot for one call. It is not initialized, because that would be another call."""
    request = make_request()
    try:
        bot = Bot(
            settings.TELEGRAM_BOT_TOKEN,
            base_url=base_url(),
            request=request,
            get_updates_request=request,
        )
        # The connection has a timeout for each step; this one is for the whole call.
        return await asyncio.wait_for(carry_out(bot), settings.TELEGRAM_TIMEOUT_SECONDS)
    finally:
        await request.shutdown()


def _as_timedelta(length: timedelta | int) -> timedelta:
    return length if isinstance(length, timedelta) else timedelta(seconds=length)
