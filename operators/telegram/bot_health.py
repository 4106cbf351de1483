"""Whether the bot is running: a heartbeat in the cache, which expires if it is not renewed.

Reading it does not load python-telegram-bot. `manage.py` loads this module for every command.
"""

import time
from typing import Any

from django.conf import settings
from django.core.cache import cache

SECONDS = 60  # longer than one failed long poll and the next one


def key() -> str:
    """The cache key of this bot. It contains the number of the bot, which is not secret."""
    return f"telegram-bot-{settings.TELEGRAM_BOT_TOKEN.partition(':')[0]}"


def beat(mode: str) -> None:
    """Records that the bot has just reached Telegram; `mode` is `polling` or `webhook`."""
    cache.set(key(), {"mode": mode, "at": time.time()}, SECONDS)


def read_health() -> dict[str, Any] | None:
    """How the bot receives updates, and seconds since it reached Telegram; None if it expired."""
    sign = cache.get(key())
    if sign is None:
        return None
    return {"mode": sign["mode"], "seconds_ago": max(0, round(time.time() - sign["at"]))}
