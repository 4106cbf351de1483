"""Updates to decisions and back: the only part that talks both to Telegram and to the database.

Decisions are made by presses.py and chat_commands.py, each in one go, on the one thread that the
ORM has here: so updates are carried out in the order in which they came, while answers to Telegram
go out side by side.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import structlog
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, close_old_connections
from telegram import CallbackQuery, LinkPreviewOptions, Message, Update
from telegram.constants import CallbackQueryLimit, ParseMode
from telegram.error import BadRequest, NetworkError, RetryAfter, TelegramError
from telegram.ext import (
    Application,
    CallbackQueryHandler,
    CommandHandler,
    ContextTypes,
    filters,
)

from operators.telegram import chat_commands, presses
from operators.telegram.bot_api import describe, markup
from operators.telegram.presses import Pressed, Verdict

logger = structlog.get_logger(__name__)

SOON = 4.0  # seconds until a press is answered at all; Telegram takes answers for about 15
TRIES = 4
INSISTING = 12.0  # seconds; after that Telegram would not take the answer, and others wait
PAUSE = 0.5  # seconds before an answer that went wrong is given again, then twice as many
COMMANDS = ["queue", "mine", "order", "help", "start", "link"]
LATER = "This takes longer than usual. What came of it will be shown here."
# Whether it was done is unknown where the connection died at the commit; pressing is safe.
AWAY = "The database cannot be reached. Please press again in a moment; nothing is done twice."
BROKEN = "Sorry, that went wrong, and was logged. Look at the order before you press again."
AWAY_TYPED = "The database cannot be reached. Please try again in a moment."

Result = TypeVar("Result")


def add_handlers(application: "Application[Any, Any, Any, Any, Any, Any]") -> None:
    """All that the bot hears. Edited messages, channels and other bots it does not."""
    application.add_handler(CallbackQueryHandler(on_press))
    for name in COMMANDS:
        typed = partial(on_command, name=name)
        application.add_handler(CommandHandler(name, typed, filters.UpdateType.MESSAGE))
    application.add_error_handler(on_error)


async def on_press(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Answers every press soon; where the decision takes longer, what it was is told later."""
    query = update.callback_query
    assert query is not None  # noqa: S101  its handler is for these
    message = query.message
    pressed = Pressed(
        telegram_user_id=query.from_user.id,
        data=query.data,
        chat_id=message.chat.id if message else None,
        message_id=message.message_id if message else None,
    )
    deciding = asyncio.ensure_future(in_database(partial(presses.carry_out, pressed)))
    done, _ = await asyncio.wait([deciding], timeout=SOON)
    if done:
        verdict = deciding.result()
        told = await answer(query, verdict.text, alert=verdict.alert)
    else:
        await answer(query, LATER)
        try:
            verdict = await deciding
        except (OperationalError, InterfaceError):
            verdict = Verdict(AWAY, alert=True, name=query.from_user.first_name)
        told = False
    if verdict.ask is not None:
        await _ask(query, verdict)
    if not told:
        await _tell_in_chat(query, verdict)


async def on_command(update: Update, context: ContextTypes.DEFAULT_TYPE, *, name: str) -> None:
    """Answers where it was asked."""
    message = update.message
    if message is None or message.from_user is None or message.sender_chat is not None:
        return  # written as a group or a channel, so by nobody
    typed = chat_commands.Typed(
        telegram_user_id=message.from_user.id,
        chat_id=message.chat.id,
        private=message.chat.type == "private",
        name=name,
        words=" ".join((message.text or "").split()[1:]),
    )
    text = await in_database(partial(chat_commands.answer, typed))
    if text is not None:
        await _insist(partial(_reply, message, text))


async def on_error(update: object, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Says that something went wrong. The update counts as handled all the same: a person presses
    again, while an update that is left unconfirmed holds up all behind it, and would be carried
    out at a time when nobody expects it."""
    error = context.error
    away = isinstance(error, (OperationalError, InterfaceError))
    logger.error(
        "telegram_update_failed",
        cause=describe(error) if error else "",
        exc_info=None if away or isinstance(error, TelegramError) else error,
    )
    if isinstance(error, TelegramError) or not isinstance(update, Update):
        return
    if update.callback_query is not None:
        await answer(update.callback_query, AWAY if away else BROKEN, alert=True)
    elif update.message is not None:
        await _insist(partial(_reply, update.message, AWAY_TYPED if away else BROKEN))


async def in_database(work: Callable[[], Result]) -> Result:
    """Runs it on the ORM's thread, on a connection that is not stale."""
    return await sync_to_async(partial(_with_fresh_connection, work), thread_sensitive=True)()


async def answer(query: CallbackQuery, text: str, *, alert: bool = False) -> bool:
    """Ends the waiting of whoever pressed; returns whether they read it. Never raises."""
    limit = int(CallbackQueryLimit.ANSWER_CALLBACK_QUERY_TEXT_LENGTH)
    short = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return await _insist(partial(query.answer, short, show_alert=alert))


def _with_fresh_connection(work: Callable[[], Result]) -> Result:
    close_old_connections()
    try:
        return work()
    finally:
        close_old_connections()


async def _ask(query: CallbackQuery, verdict: Verdict) -> None:
    """Puts the question below the message; a sweep takes it away when nobody answers."""
    press = verdict.ask
    assert press is not None  # noqa: S101  the caller looked
    keyboard = markup(verdict.rows)
    await _insist(partial(query.edit_message_reply_markup, reply_markup=keyboard))
    await in_database(partial(presses.ask, press))


async def _tell_in_chat(query: CallbackQuery, verdict: Verdict) -> None:
    """For staff whose press was not answered in time: what the message itself does not show."""
    if verdict.alert and verdict.name and isinstance(query.message, Message):
        text = f"{verdict.name}: {verdict.text}"
        await _insist(partial(query.message.reply_text, text, do_quote=True))


async def _reply(message: Message, text: str) -> None:
    await message.reply_text(
        text, parse_mode=ParseMode.HTML, link_preview_options=LinkPreviewOptions(is_disabled=True)
    )


async def _insist(say: Callable[[], Any]) -> bool:
    """Says it, again where Telegram or the network fails, and not for ever; returns whether it was
    heard. What was said before and not confirmed is refused the second time: that counts as heard.
    """
    try:
        async with asyncio.timeout(INSISTING):
            return await _say_again(say)
    except TimeoutError:
        logger.warning("telegram_not_told", cause="no answer in time")
        return False


async def _say_again(say: Callable[[], Any]) -> bool:
    for number in range(TRIES):
        try:
            await say()
        except RetryAfter as asked:
            wait = asked.retry_after
            await asyncio.sleep(wait if isinstance(wait, int) else wait.total_seconds())
        except BadRequest as error:
            if "not modified" in str(error).lower():
                return True
            logger.warning("telegram_not_told", cause=describe(error), number=number)
            return number > 0
        except NetworkError as error:
            logger.warning("telegram_not_told", cause=describe(error), number=number)
            await asyncio.sleep(PAUSE * 2**number)
        except TelegramError as error:
            logger.warning("telegram_not_told", cause=describe(error))
            return False
        else:
            return True
    return False
