"""Talking to the Bot API from where there is no event loop: one message sent, or one edited.

What can go wrong is told in the terms in which the caller decides. No error of this module holds
the token, and none drags along an error that might.
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

from operators.telegram.message import Message, Rows
from operators.telegram.platform_settings import Target

MAX_DESCRIPTION = 200
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
GONE = ("message to edit not found", "message_id_invalid", "message can't be edited")

Answer = TypeVar("Answer")


class Trouble(Exception):
    """A call that did not do what it should."""


class NotNow(Trouble):
    """Telegram asks to wait: nothing was done."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"Telegram asks to wait for {wait.total_seconds():.0f} s.")
        self.wait = wait


class Unreachable(Trouble):
    """Nothing was done, by fault of the network, of Telegram or of the token: try later."""


class AnswerLost(Trouble):
    """It may have been done or not; Telegram cannot be asked which."""


class Refused(Trouble):
    """It will never be done as things are: the chat is gone, the bot was removed."""


class MessageGone(Trouble):
    """There is no such message to edit any more."""


class ChatMoved(Trouble):
    """The group has become a supergroup, with another id; nothing was done."""

    def __init__(self, chat_id: int) -> None:
        super().__init__(f"The chat is now {chat_id}.")
        self.chat_id = chat_id


def send(*, target: Target, message: Message, reply_to: int | None = None) -> int:
    """Posts the message, as an answer to another one if that is still there; returns its id.

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
    """Makes a message look like this; done as well where it already does.

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
    """The buttons as python-telegram-bot wants them."""
    if not rows:
        return None
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(one.label, callback_data=one.data) for one in row] for row in rows]
    )


def base_url() -> str:
    """What python-telegram-bot puts the token behind."""
    return f"{settings.TELEGRAM_API_URL.rstrip('/')}/bot"


def make_request() -> HTTPXRequest:
    """A connection with our patience, which the caller shuts down. Getting one (TCP, then TLS) ends
    well before all patience does: what was not connected to was surely not sent."""
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
    """Made once for each process: to read the certificates takes longer than many a call."""
    return httpx.create_ssl_context()


def describe(error: BaseException) -> str:
    """What an error says, in one short line, without the token."""
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
    raise trouble  # outside of the handlers, so that it has no context


async def _with_bot(carry_out: Callable[[Bot], Awaitable[Answer]]) -> Answer:
    """A bot for one call; it is not initialized, which would be a call more."""
    request = make_request()
    try:
        bot = Bot(
            settings.TELEGRAM_BOT_TOKEN,
            base_url=base_url(),
            request=request,
            get_updates_request=request,
        )
        # The timeouts of the connection are for each of its steps; this one is for all of them.
        return await asyncio.wait_for(carry_out(bot), settings.TELEGRAM_TIMEOUT_SECONDS)
    finally:
        await request.shutdown()


def _as_timedelta(length: timedelta | int) -> timedelta:
    return length if isinstance(length, timedelta) else timedelta(seconds=length)
