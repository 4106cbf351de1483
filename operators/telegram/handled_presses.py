"""Which presses were handled: Telegram delivers a press again if the network lost our response.

A press that is handled again moves nothing, but its answer would be sent again, and if Telegram no
longer accepts answers, a message would appear in the chat. The ids of handled presses are therefore
kept in the shared cache for a while. Without the cache, every press counts as new.
"""

import structlog
from django.core.cache import cache

from operators.telegram.bot_health import key

logger = structlog.get_logger(__name__)

SECONDS = 10 * 60  # longer than Telegram accepts an answer to a press


def was_handled(query_id: str) -> bool:
    """Whether a press with this id was handled in the last ten minutes."""
    try:
        return cache.get(_key(query_id)) is not None
    except Exception as error:  # of any kind that a cache raises
        return _unknown(error)


def note_handled(query_id: str) -> bool:
    """Keeps the id; returns False if another process or thread has kept it already."""
    try:
        return bool(cache.add(_key(query_id), 1, SECONDS))
    except Exception as error:
        return not _unknown(error)


def _key(query_id: str) -> str:
    """The ids are unique for each bot."""
    return f"{key()}-press-{query_id}"


def _unknown(error: Exception) -> bool:
    logger.warning("telegram_presses_not_kept", cause=type(error).__name__)
    return False
