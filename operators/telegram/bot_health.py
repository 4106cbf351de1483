"""Whether the bot is running: a heartbeat in the cache, which expires if it is not renewed.

Reading it does not load python-telegram-bot. `manage.py` loads this module for every command.
"""

import time

from django.conf import settings
from django.core.cache import cache

SECONDS = 60  # longer than one failed long poll and the next one


def key() -> str:
    """The cache key of this bot. It contains the number of the bot, which is not secret."""
    return f"telegram-bot-{settings.TELEGRAM_BOT_TOKEN.partition(':')[0]}"


def beat() -> None:
    """Records that the bot has just reached Telegram."""
    cache.set(key(), time.time(), SECONDS)


def seconds_since_beat() -> int | None:
    """Seconds since the bot reached Telegram; None if the heartbeat has expired."""
    at = cache.get(key())
    return None if at is None else max(0, round(time.time() - at))
