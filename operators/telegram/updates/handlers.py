"""Handles updates: the only module that uses both Telegram and the database.

presses.py and texts.py decide what to do, on the single thread that the ORM has in this process.
Updates are therefore carried out in the order of arrival, while answers to Telegram are sent in the
background.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import structlog
from asgiref.sync import sync_to_async
from django.db import InterfaceError, OperationalError, close_old_connections
from telegram import CallbackQuery, ChatMember, LinkPreviewOptions, Message, Update, User
from telegram.constants import CallbackQueryLimit, ChatType, ParseMode
from telegram.error import BadRequest, NetworkError, RetryAfter, TelegramError
from telegram.ext import (
    Application,
    CallbackQueryHandler,
    ChatMemberHandler,
    CommandHandler,
    ContextTypes,
    MessageHandler,
    filters,
)

from operators.telegram.bot_api import describe, markup
from operators.telegram.updates import presses, texts
from operators.telegram.updates.presses import Query, Verdict

logger = structlog.get_logger(__name__)

SOON = 4.0  # seconds until a press gets some answer; Telegram accepts one for about 15
TRIES = 4
INSISTING = 12.0  # seconds; later, Telegram would no longer accept the answer
PAUSE = 0.5  # seconds before a failed answer is sent again; doubles each time
OUTSIDE = (ChatMember.LEFT, ChatMember.BANNED)
COMMANDS = ["queue", "mine", "order", "chat", "help", "start", "link"]
LATER = "This takes longer than usual. The order's message will show the result."
# If the connection died at the commit, the result is unknown. Pressing again is safe.
AWAY = "The database is not available. Press again in a moment: nothing is done twice."
BROKEN = "Something failed; the error is logged. Check the order before you press again."
AWAY_TYPED = "The database is not available. Try again in a moment."

Result = TypeVar("Result")


class Background:
    """Coroutines that run beside the handling of updates. None of them may raise."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs `work` with the present context, such as the id in log lines."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def finish(self, seconds: float) -> None:
        """Waits until all is done, for at most this long; what is left is cancelled and logged."""
        if not self._running:
            return
        _, late = await asyncio.wait(self._running, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            logger.warning("telegram_answers_abandoned", count=len(late))
            await asyncio.wait(late)


class Handlers:
    """The handlers of updates. A handler returns once its decision is in the database:
    answers and edits go on in the background, so that one that hangs delays no other update."""

    def __init__(self, background: Background) -> None:
        self._background = background

    def add_to(self, application: "Application[Any, Any, Any, Any, Any, Any]") -> None:
        """Registers every update the bot handles. It ignores edited messages and channels."""
        application.add_handler(CallbackQueryHandler(self.on_press))
        for name in COMMANDS:
            handle = partial(self.on_command, name=name)
            application.add_handler(CommandHandler(name, handle, filters.UpdateType.MESSAGE))
        reply = filters.REPLY & filters.TEXT & ~filters.COMMAND & filters.UpdateType.MESSAGE
        application.add_handler(MessageHandler(reply, self.on_reply))
        joined = ChatMemberHandler(self.on_added, ChatMemberHandler.MY_CHAT_MEMBER)
        application.add_handler(joined)
        application.add_error_handler(self.on_error)

    async def on_press(self, update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
        """Decides what the press does, and starts its answer."""
        query = update.callback_query
        assert query is not None  # noqa: S101  CallbackQueryHandler passes no other updates
        message = query.message
        press = Query(
            query_id=query.id,
            telegram_user_id=query.from_user.id,
            data=query.data,
            chat_id=message.chat.id if message else None,
            message_id=message.message_id if message else None,
        )
        deciding = asyncio.ensure_future(in_database(partial(presses.carry_out, press)))
        self._background.start(_run_and_report(update, _answer_press(query, deciding)))
        await asyncio.wait([deciding])

    async def on_command(
        self, update: Update, context: ContextTypes.DEFAULT_TYPE, *, name: str
    ) -> None:
        """Answers in the chat of the command."""
        message = update.message
        if message is None or message.from_user is None or message.sender_chat is not None:
            return  # written in the name of a group or a channel
        command = texts.Command(
            telegram_user_id=message.from_user.id,
            chat_id=message.chat.id,
            private=message.chat.type == "private",
            name=name,
            words=" ".join((message.text or "").split()[1:]),
            topic_id=message.message_thread_id if message.is_topic_message else None,
        )
        text = await in_database(partial(texts.answer_command, command))
        if text is not None:
            self._background.start(_run_and_report(update, _insist_on_reply(message, text)))

    async def on_reply(self, update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
        """Adds a reply to an order's message as a note."""
        message = update.message
        if message is None or message.from_user is None or message.sender_chat is not None:
            return  # written in the name of a group or a channel
        if message.reply_to_message is None or message.text is None:
            return
        reply = texts.Reply(
            telegram_user_id=message.from_user.id,
            chat_id=message.chat.id,
            message_id=message.message_id,
            to=message.reply_to_message.message_id,
            text=message.text,
        )
        text = await in_database(partial(texts.add_note, reply))
        if text is not None:
            self._background.start(_run_and_report(update, _insist_on_reply(message, text)))

    async def on_added(self, update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
        """Tells staff who add the bot to a group its id, in private: others may be in the group."""
        change = update.my_chat_member
        if change is None or change.chat.type not in (ChatType.GROUP, ChatType.SUPERGROUP):
            return
        if change.old_chat_member.status not in OUTSIDE or change.new_chat_member.status in OUTSIDE:
            return
        added = texts.Added(
            telegram_user_id=change.from_user.id,
            chat_id=change.chat.id,
            title=change.chat.title or "",
        )
        text = await in_database(partial(texts.answer_added, added))
        if text is not None:
            self._background.start(
                _run_and_report(update, _insist_in_private(change.from_user, text))
            )

    async def on_error(self, update: object, context: ContextTypes.DEFAULT_TYPE) -> None:
        """Reports a failure to the person. The update still counts as handled.

        An unconfirmed update would block all later ones, and would be carried out at an unexpected
        time. The person can press again.
        """
        if context.error is not None:
            self._background.start(_report(update, context.error))


async def _run_and_report(update: Update, work: Coroutine[Any, Any, None]) -> None:
    """Does the work of the background. Its failure is reported as that of a handler is."""
    try:
        await work
    except Exception as error:
        await _report(update, error)


async def _report(update: object, error: Exception) -> None:
    away = isinstance(error, (OperationalError, InterfaceError))
    logger.error(
        "telegram_update_failed",
        cause=describe(error),
        exc_info=None if away or isinstance(error, TelegramError) else error,
    )
    if isinstance(error, TelegramError) or not isinstance(update, Update):
        return
    if update.callback_query is not None:
        await answer(update.callback_query, AWAY if away else BROKEN, alert=True)
    elif update.message is not None:
        await _insist_on_reply(update.message, AWAY_TYPED if away else BROKEN)


async def _answer_press(query: CallbackQuery, deciding: "asyncio.Future[Verdict | None]") -> None:
    """Answers every press soon. If the decision takes longer, its result is sent afterwards."""
    done, _ = await asyncio.wait([deciding], timeout=SOON)
    is_answered = False
    if done:
        verdict = deciding.result()
        if verdict is not None:
            is_answered = await answer(query, verdict.text, alert=verdict.alert)
    else:
        await answer(query, LATER)
        try:
            verdict = await deciding
        except (OperationalError, InterfaceError):
            verdict = Verdict(AWAY, alert=True, name=query.from_user.first_name)
    if verdict is None:
        return  # the same press again: its answer is on its way
    if verdict.ask is not None:
        await _ask(query, verdict)
    if not is_answered:
        await _reply_in_chat(query, verdict)


async def in_database(work: Callable[[], Result]) -> Result:
    """Runs `work` on the ORM's thread, with a fresh database connection."""
    return await sync_to_async(partial(_with_fresh_connection, work), thread_sensitive=True)()


async def answer(query: CallbackQuery, text: str, *, alert: bool = False) -> bool:
    """Answers a press; returns whether Telegram accepted the answer. Never raises."""
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
    """Shows the question below the message. A sweep removes it if the operator does not answer."""
    press = verdict.ask
    assert press is not None  # noqa: S101  the caller checked it
    keyboard = markup(verdict.rows)
    is_visible = await _insist(partial(query.edit_message_reply_markup, reply_markup=keyboard))
    follow_up = partial(presses.follow_up_question, press, verdict.name, is_visible=is_visible)
    await in_database(follow_up)


async def _reply_in_chat(query: CallbackQuery, verdict: Verdict) -> None:
    """Posts what the order's message does not show, for staff whose press got no answer in time."""
    if verdict.alert and verdict.name and isinstance(query.message, Message):
        text = f"{verdict.name}: {verdict.text}"
        await _insist(partial(query.message.reply_text, text, do_quote=True))


async def _insist_on_reply(message: Message, text: str) -> None:
    await _insist(partial(_reply, message, text))


async def _insist_in_private(user: User, text: str) -> None:
    """Fails for a person who has never written to the bot. `/chat` in the group then answers."""
    await _insist(partial(user.send_message, text, parse_mode=ParseMode.HTML))


async def _reply(message: Message, text: str) -> None:
    await message.reply_text(
        text, parse_mode=ParseMode.HTML, link_preview_options=LinkPreviewOptions(is_disabled=True)
    )


async def _insist(say: Callable[[], Any]) -> bool:
    """Sends an answer, and retries for a limited time; returns whether it arrived.

    Telegram refuses a repeated answer. If an earlier try was not confirmed, a refusal means that
    it had arrived.
    """
    try:
        async with asyncio.timeout(INSISTING):
            return await _say_again(say)
    except TimeoutError:
        logger.warning("telegram_answer_failed", cause="no answer in time")
        return False


async def _say_again(say: Callable[[], Any]) -> bool:
    for number in range(TRIES):
        try:
            await say()
        except RetryAfter as error:
            wait = error.retry_after
            await asyncio.sleep(wait if isinstance(wait, int) else wait.total_seconds())
        except BadRequest as error:
            if "not modified" in str(error).lower():
                return True
            logger.warning("telegram_answer_failed", cause=describe(error), number=number)
            return number > 0
        except NetworkError as error:
            logger.warning("telegram_answer_failed", cause=describe(error), number=number)
            await asyncio.sleep(PAUSE * 2**number)
        except TelegramError as error:
            logger.warning("telegram_answer_failed", cause=describe(error))
            return False
        else:
            return True
    return False
