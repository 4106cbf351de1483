"""The search field of the back office: asks the finders that the apps declare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet

from config.backoffice.registry import back_offices
from config.finders import MAX_FOUND, SHORTEST_NAME, Finder
from orders.models import Order
from topups.models import Fulfilment

LONGEST = 200  # what is longer is no reference, key, code or name


@dataclass(frozen=True)
class Hit:
    """A row that was found: its kind, a name, and what distinguishes it from others."""

    kind: str
    row: Model
    name: str
    about: str


def _staff(text: str) -> QuerySet[User]:
    if len(text) < SHORTEST_NAME:
        return User.objects.none()
    named = Q(username__icontains=text) | Q(email__icontains=text)
    return User.objects.filter(named, is_staff=True).order_by("username")[:MAX_FOUND]


STAFF = Finder("Staff", User, _staff, lambda user: (user.get_username(), user.email))
# From the highest layer down: an order comes before its requests.
FINDERS = [*(finder for app in reversed(back_offices()) for finder in app.finders), STAFF]


def find(text: str, *, sees: Callable[[type[Model]], bool]) -> list[Hit]:
    """What matches the text, as far as the reader may see it.

    A text that is a complete secret, such as a voucher code, is compared by its digest or its
    prefix only. No other statement gets it, and nothing else is found.
    """
    text = text.replace("\x00", "").strip()
    if not text or len(text) > LONGEST:
        return []
    for finder in FINDERS:
        if finder.secret:
            known = list(finder.find(text))
            if known:
                return list(_hits(finder, known)) if sees(finder.model) else []
    hits = {
        (type(hit.row), hit.row.pk): hit
        for finder in FINDERS
        if not finder.secret and sees(finder.model) and not _is_shown_twice(finder, sees)
        for hit in _hits(finder, finder.find(text))
    }
    return list(hits.values())


def _hits(finder: Finder, rows: Iterable[Any]) -> Iterator[Hit]:
    for row in rows:
        yield Hit(finder.kind, row, *finder.describe(row))


def _is_shown_twice(finder: Finder, sees: Callable[[type[Model]], bool]) -> bool:
    """An order is one thing: who may see its page needs no second link to the desk."""
    return finder.model is Fulfilment and sees(Order)
