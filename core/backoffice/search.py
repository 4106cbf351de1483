"""The search of both sites: asks the finders that the apps declare (core/backoffice/).

Staff find what they may view. Members find rows of their own account: a finder serves them only if
it can be limited to one (`of_account`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Model, Q, QuerySet
from django.db.models.expressions import Combinable
from django.utils.translation import gettext

from core.backoffice.declarations import Finder
from core.backoffice.registry import back_offices
from core.database.functions import StatementTimeout, statement_timeout
from core.inputs import is_id
from core.texts import inside_sentence, values_in

MAX_HITS = 5  # rows that one finder returns to staff
SHORTEST_NAME = 2
SECONDS = 2  # that a statement of a finder may take
LONGEST = 200  # a longer text is no reference, key, code or name


@dataclass(frozen=True)
class Hit:
    """A row that matches: its kind, a name, what distinguishes it from others, and whether the text
    was a secret."""

    kind: str
    row: Model
    name: str
    about: str
    is_secret: bool = False


def find_for_staff(
    text: str, *, sees: Callable[[type[Model]], bool]
) -> tuple[list[Hit], list[str]]:
    """The rows that match the text, and the kinds whose search took longer than SECONDS. Only
    models that the reader may view are searched.

    A text that is a complete secret, such as a voucher code, is compared by its digest or its
    prefix only. No other statement gets it, and no other row is returned.
    """
    text = _clean(text)
    finders = _finders() if text else []
    for finder in finders:
        if finder.secret and (rows := list(finder.find(text))):
            return (list(_hits(finder, rows)) if sees(finder.model) else []), []
    visible = [finder for finder in finders if not finder.secret and sees(finder.model)]
    replaced = {finder.replaces for finder in visible}
    waiting = [finder for finder in reversed(visible) if finder.model not in replaced]
    hits: dict[tuple[type[Model], Any], Hit] = {}
    slow = []
    while waiting:
        try:
            with statement_timeout(SECONDS):
                while waiting:
                    finder = waiting.pop()
                    hits |= {
                        (type(hit.row), hit.row.pk): hit for hit in _hits(finder, finder.find(text))
                    }
        except StatementTimeout:
            slow.append(inside_sentence(finder.kind))
    return list(hits.values()), slow


def kinds_out_of_reach(*, sees: Callable[[type[Model]], bool]) -> list[str]:
    """The kinds of rows that `find_for_staff` does not return to this reader."""
    kinds = {False: set[str](), True: set[str]()}
    for finder in _finders():
        kinds[sees(finder.model)].add(inside_sentence(finder.kind))
    return sorted(kinds[False] - kinds[True])


def find_for_member(text: str, *, account: Model, limit: int) -> Mapping[type[Model], list[Any]]:
    """At most `limit` rows of this account for each model that members search, newest first."""
    text = _clean(text)
    return {
        finder.model: list(finder.of_account(text, account=account, limit=limit)) if text else []
        for finder in _finders()
        if finder.of_account
    }


def by_name(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """The rows whose name contains the text or whose id is the text, ordered by name."""
    matches = Q(pk=int(text)) if is_id(text) else Q(pk=None)
    if len(text) >= SHORTEST_NAME:
        matches |= Q(name__icontains=text)
    return rows.filter(matches).order_by("name", "pk")[:MAX_HITS]


def by_number(rows: QuerySet[Any], text: str, name: str) -> QuerySet[Any]:
    """The row whose number the text is: alone, or in its name, in English or in the reader's
    language. `name` is a message such as "Case %(name)s"."""
    for words in ("%(name)s", name, gettext(name)):
        values = values_in(text.casefold(), words.casefold())
        number = values["name"].removeprefix("#") if values else ""
        if is_id(number):
            return rows.filter(pk=int(number))
    return rows.none()


def newest_first() -> Combinable:
    """Orders by the id, newest first, with a sort.

    The plain id would let PostgreSQL walk the primary key past every row that does not match.
    """
    return F("pk") * -1


def _clean(text: str) -> str:
    """The text without NUL and white space around it; empty if nothing can match it."""
    text = text.replace("\x00", "").strip()
    return text if len(text) <= LONGEST else ""


def _finders() -> list[Finder]:
    """From the highest layer down: an order comes before its requests."""
    return [finder for app in reversed(back_offices()) for finder in app.finders]


def _hits(finder: Finder, rows: Iterable[Any]) -> Iterator[Hit]:
    for row in rows:
        yield Hit(finder.kind, row, *finder.describe(row), is_secret=finder.secret)
