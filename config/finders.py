"""How each app declares what the search field of the back office finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import Combinable

MAX_FOUND = 5  # rows that one finder returns
SHORTEST_NAME = 2
ID_DIGITS = 18  # every number of 18 digits fits into a bigint


@dataclass(frozen=True)
class Finder:
    """Finds rows by what somebody typed.

    kind: what the rows are, for people.
    model: the rows. Staff who may view it find them.
    find: the rows that match, at most a few. Each read uses an index, or a table that does not grow
        with the number of orders. The text has no white space around it and is never empty.
    describe: a name for a row, and what distinguishes it from others.
    secret: the text is a secret if this finder knows it. No other finder then gets the text.
    """

    kind: str
    model: type[Model]
    find: Callable[[str], Iterable[Any]]
    describe: Callable[[Any], tuple[str, str]] = lambda row: (str(row), "")
    secret: bool = False


def named(rows: QuerySet[Any], text: str, *, field: str = "name") -> QuerySet[Any]:
    """The rows whose name contains the text or whose id is the text, ordered by name."""
    wanted = Q(pk=int(text)) if is_id(text) else Q(pk=None)
    if len(text) >= SHORTEST_NAME:
        wanted |= Q(**{f"{field}__icontains": text})
    return rows.filter(wanted).order_by(field, "pk")[:MAX_FOUND]


def is_id(text: str) -> bool:
    """Whether the text can be the id of a row."""
    return text.isascii() and text.isdecimal() and len(text) <= ID_DIGITS


def newest_first() -> Combinable:
    """Orders by the id, newest first, with a sort.

    The plain id would let PostgreSQL walk the primary key past every row that does not match.
    """
    return F("pk") * -1
