"""Remembers who looks at an order of the desk at the moment.

The cache remembers it for a while: each open page asks at intervals, and so says that it is still
open. Nothing is written to the database, and without the cache nobody is named.
"""

import time

from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache

STILL_HERE = 2.5  # intervals: one request may come late, or be lost


def note_viewer(fulfilment_id: int, user: User) -> list[str]:
    """Notes that `user` looks at an order. Returns the names of the others who do."""
    try:
        others = _others(fulfilment_id, user)
        seconds = _seconds()
        cache.set(_key(fulfilment_id), {**others, user.get_username(): time.time()}, seconds)
    except Exception:  # of any kind that a cache raises
        return []
    return sorted(others)


def other_viewers(fulfilment_id: int, user: User) -> list[str]:
    """The names of the others who look at an order."""
    try:
        return sorted(_others(fulfilment_id, user))
    except Exception:
        return []


def _others(fulfilment_id: int, user: User) -> dict[str, float]:
    """The others who look at an order, and when their page asked last."""
    seen = time.time() - _seconds()
    viewers: dict[str, float] = cache.get(_key(fulfilment_id)) or {}
    return {name: at for name, at in viewers.items() if at > seen and name != user.get_username()}


def _key(fulfilment_id: int) -> str:
    return f"desk-viewers-{fulfilment_id}"


def _seconds() -> int:
    return round(settings.DESK_REFRESH_SECONDS * STILL_HERE) + 1
