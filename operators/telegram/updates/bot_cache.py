"""The bot's entries in the shared cache: its heartbeat, the presses that it has handled, and the
chats in which it has answered a stranger.

Telegram delivers a press again if the network lost our response. A press that is handled again
moves nothing, but its answer would be sent again, and if Telegram no longer accepts answers, a
message would appear in the chat. The ids of handled presses are therefore stored for a while.
Without the cache, every press counts as new, and every stranger is answered.

This module does not load python-telegram-bot: `manage.py` loads it for every command.
"""

import time

import structlog
from django.conf import settings
from django.core.cache import cache

from operators.frame.limits import ALIVE_SECONDS

logger = structlog.get_logger(__name__)

PRESS_SECONDS = 10 * 60  # longer than Telegram accepts an answer to a press
STRANGER_SECONDS = 60  # between two answers to strangers in one chat


def key() -> str:
    """The cache key of this bot. It contains the number of the bot, which is not secret."""
    return f"telegram-bot-{settings.TELEGRAM_BOT_TOKEN.partition(':')[0]}"


def beat() -> None:
    """Records that the bot has just reached Telegram."""
    cache.set(key(), time.time(), ALIVE_SECONDS)


def seconds_since_beat() -> int | None:
    """Seconds since the bot reached Telegram; None if the heartbeat has expired."""
    at = cache.get(key())
    return None if at is None else max(0, round(time.time() - at))


def was_handled(query_id: str) -> bool:
    """Whether a press with this id was handled in the last ten minutes."""
    try:
        return cache.get(_press_key(query_id)) is not None
    except Exception as error:  # of any kind that a cache raises
        _log_lost_cache(error)
        return False


def note_handled(query_id: str, seconds: int = PRESS_SECONDS) -> bool:
    """Stores the id; returns False if another process or thread has stored it already."""
    try:
        return bool(cache.add(_press_key(query_id), 1, seconds))
    except Exception as error:
        _log_lost_cache(error)
        return True


def may_answer_stranger(chat_id: int) -> bool:
    """Whether no stranger was answered in this chat in the last minute; the caller answers one now.

    Telegram limits what a bot sends to a group, and the announcements need that limit.
    """
    return note_handled(f"stranger-{chat_id}", STRANGER_SECONDS)


def _press_key(query_id: str) -> str:
    """The ids are unique for each bot."""
    return f"{key()}-press-{query_id}"


def _log_lost_cache(error: Exception) -> None:
    logger.warning("telegram_presses_not_stored", cause=type(error).__name__)
