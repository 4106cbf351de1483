"""Whether the bot is alive: it leaves a sign in the cache, which is gone when it has not been
renewed. Anybody can look, without python-telegram-bot."""

import time
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse

from config.api.envelope import json_response

SECONDS = 60  # longer than a long poll with a failed one before it


def key() -> str:
    """Where the sign of this bot is: its number, which is no secret, tells it from others."""
    return f"telegram-bot-{settings.TELEGRAM_BOT_TOKEN.partition(':')[0]}"


def beat(mode: str) -> None:
    """Says that Telegram was reached just now."""
    cache.set(key(), {"mode": mode, "at": time.time()}, SECONDS)


def read_health() -> dict[str, Any] | None:
    """How the bot gets its updates and how long ago it reached Telegram; None: not lately."""
    sign = cache.get(key())
    if sign is None:
        return None
    return {"mode": sign["mode"], "seconds_ago": max(0, round(time.time() - sign["at"]))}


def readyz_bot(request: HttpRequest) -> HttpResponse:
    """200 while the bot reaches Telegram, otherwise 503."""
    try:
        health = read_health()
    except Exception:  # whatever is wrong with the cache, the probe answers
        health = None
    if health is None:
        return json_response(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "unready"})
    return json_response(HTTPStatus.OK, {"status": "ok", **health})
