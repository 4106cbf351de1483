"""The objects whose pages a person opened last, for the search (operators/admin/search.py).

They are in the cache: to lose them costs nothing, and a page writes no row for them.
"""

from typing import Any

import structlog
from django.apps import apps
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db.models import Model

logger = structlog.get_logger(__name__)

MOST = 8
SECONDS = 30 * 24 * 3600


def note_opened(user: User, row: Model) -> None:
    """Puts the row first. Two pages opened at the same moment may lose one of them."""
    opened = [row._meta.label_lower, row.pk]
    others = [one for one in _read(user) if one != opened]
    try:
        cache.set(_key(user), [opened, *others][:MOST], SECONDS)
    except Exception as error:  # a page needs no cache
        logger.warning("recent_not_noted", cause=type(error).__name__)


def recent_rows(user: User) -> list[Any]:
    """The rows, the last one first, with one query for each kind. Deleted ones are left out."""
    opened = _read(user)
    keys: dict[str, list[Any]] = {}
    for label, pk in opened:
        keys.setdefault(label, []).append(pk)
    rows = {
        (label, pk): row
        for label, pks in keys.items()
        for pk, row in apps.get_model(label)._default_manager.in_bulk(pks).items()
    }
    return [rows[label, pk] for label, pk in opened if (label, pk) in rows]


def _read(user: User) -> list[list[Any]]:
    try:
        found: list[list[Any]] = cache.get(_key(user)) or []
    except Exception as error:
        logger.warning("recent_not_read", cause=type(error).__name__)
        return []
    return found


def _key(user: User) -> str:
    return f"recent:{user.pk}"
