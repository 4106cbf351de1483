"""Reads the audit trail: every table that the apps declare, as one list, newest first.

Each table is read by a range of an index, one page at a time, and the pages are merged here. A page
costs the same however long the history is, and no fact is stored a second time
(docs/decisions/0055-one-audit-trail.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from heapq import merge
from itertools import islice, product
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet

from core.backoffice.registry import back_offices
from core.inputs import is_id
from core.trails import Line, Objects, Person, Trail

TRAILS: list[Trail] = [trail for app in back_offices() for trail in app.trails]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
OF_ONE_FORM = timedelta(seconds=5)  # between the price that a form saves, and its audit entry

# An object, or None for a row of a form, which is named by its kind and id; a name; a value.
Price = tuple[tuple[str, str] | None, str, Decimal | None]
Sees = Callable[[type[Model]], bool]  # whether the reader may view this model


@dataclass(frozen=True, order=True)
class Place:
    """The place of a line in the list: later is newer. Lines of one moment are ordered by table."""

    at: datetime
    trail: int
    pk: int

    def __str__(self) -> str:
        return f"{(self.at - EPOCH) // MICROSECOND}.{self.trail}.{self.pk}"

    @classmethod
    def parse(cls, text: str) -> Place | None:
        """The place that `str` wrote; None for any other text."""
        parts = text.split(".")
        if len(parts) != 3 or not all(map(is_id, parts)):
            return None
        moment, trail, pk = map(int, parts)
        try:
            return cls(EPOCH + moment * MICROSECOND, trail, pk)
        except OverflowError:
            return None


@dataclass(frozen=True)
class Wanted:
    """What to read. `kind` is the title of a trail or one of its kinds; empty texts are ignored.
    Rows of the kinds in `without` are left out."""

    person: Person | None = None
    objects: Objects = field(default_factory=dict)
    called: str = ""
    kind: str = ""
    without: Collection[str] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Found:
    """A line, and its place."""

    place: Place
    line: Line


def read_trail(
    wanted: Wanted, *, trails: Sequence[Trail], before: Place | None = None, limit: int
) -> list[Found]:
    """The newest lines of these trails that are wanted and stand before a place, newest first."""
    lists = [
        _read(number, rows.filter(restriction), before, limit)
        for number, trail in enumerate(TRAILS)
        if trail in trails
        for rows in [_rows(trail, wanted)]
        for restriction in _restrictions(trail, wanted)
    ]
    newest = merge(*lists, key=lambda found: found.place, reverse=True)
    return list(islice(_each_once(newest), limit))


def read_all(wanted: Wanted, *, trails: Sequence[Trail], at_once: int = 1000) -> Iterator[Line]:
    """All lines that are wanted, newest first, in bounded memory."""
    before = None
    while found := read_trail(wanted, trails=trails, before=before, limit=at_once):
        yield from without_repeats([one.line for one in found])
        before = found[-1].place


def find_person(name: str) -> Person:
    """A member of staff by username, or another name that records use, such as `shell:anna`."""
    user = User.objects.filter(username=name).first()
    names = (name, f"admin:{name}")
    return Person(names=names, user_id=user.pk if user else None)


def with_parts(label: str, pk: str) -> Objects:
    """A row with the rows whose history belongs to its history, such as the clients of an
    account."""
    objects: dict[str, list[str]] = {label: [pk]}
    for app in back_offices():
        parts = app.parts.get(label)
        for part, pks in (parts(int(pk)) if parts else {}).items():
            objects.setdefault(part, []).extend(pks)
    return {part: pks for part, pks in objects.items() if pks}


def hidden_kinds(sees: Sees) -> list[str]:
    """The actions whose audit entries a timeline hides from this reader, whatever they are about:
    they need another permission (BackOffice.seen_with)."""
    return [
        kind for app in back_offices() for kind, model in app.seen_with.items() if not sees(model)
    ]


def is_seen(label: str, sees: Sees) -> bool:
    """Whether the reader may view objects of this label. Entries outlive models, so a label may
    name none: nobody sees those on a timeline."""
    try:
        return sees(apps.get_model(label))
    except LookupError:
        return False


def without_repeats(lines: Sequence[Line]) -> list[Line]:
    """Leaves out a new price that an audit entry shows as well.

    A trigger keeps each price, and a form of the back office keeps all that it changed.
    """
    told = [(line.who, line.at, _prices_of_form(line)) for line in lines if not line.is_price]
    return [
        line
        for line in lines
        if not line.is_price
        or not any(
            who == line.who
            and timedelta(0) <= at - line.at < OF_ONE_FORM
            and not prices.isdisjoint(_names_of_price(line))
            for who, at, prices in told
        )
    ]


def _names_of_price(line: Line) -> set[Price]:
    """How an audit entry may name this new price: on the page of its object, or as a row of the
    page of another, such as a shelf on the page of its product."""
    label, pk = line.on
    price = _price(line.changes["price"][1])
    kind = apps.get_model(label)._meta.verbose_name
    return {(line.on, "price", price), (None, f"{kind} {pk}: price", price)}


def _prices_of_form(line: Line) -> set[Price]:
    """The new prices that an audit entry tells, by object, or by the name of a row of a form."""
    return {
        (line.on if name == "price" else None, name, _price(new))
        for name, (_, new) in line.changes.items()
        if name == "price" or name.endswith(": price")
    }


def _price(value: Any) -> Decimal | None:
    """A price as a number, because 1.5 and 1.50 are one; None is no price."""
    try:
        return None if value is None else Decimal(str(value))
    except ArithmeticError:
        return None


def _restrictions(trail: Trail, wanted: Wanted) -> list[Q]:
    """The conditions of the reads that together find what is wanted. Each uses an index."""
    if wanted.kind and wanted.kind != trail.title and wanted.kind not in trail.kinds:
        return []
    groups: list[Sequence[Q]] = []
    if wanted.person:
        groups.append(trail.by(wanted.person))
    if wanted.objects:
        groups.append(trail.about(wanted.objects))
    if wanted.called:
        groups.append(trail.called(wanted.called))
    of_kind = trail.of_kind(wanted.kind) if wanted.kind in trail.kinds else Q()
    for kind in wanted.without:
        if kind in trail.kinds:
            of_kind &= ~trail.of_kind(kind)
    found = []
    for together in product(*groups):
        condition = of_kind
        for one in together:
            condition &= one
        found.append(condition)
    return found


def _rows(trail: Trail, wanted: Wanted) -> QuerySet[Any]:
    """The rows of the wanted time."""
    rows = trail.rows()
    if wanted.since:
        rows = rows.filter(**{f"{trail.at}__gte": wanted.since})
    if wanted.until:
        rows = rows.filter(**{f"{trail.at}__lt": wanted.until})
    return rows


def _read(number: int, rows: QuerySet[Any], before: Place | None, limit: int) -> list[Found]:
    trail = TRAILS[number]
    if before:
        rows = rows.filter(_before(trail.at, number, before))
    newest = rows.order_by(f"-{trail.at}", "-pk")[:limit]
    return [Found(Place(getattr(row, trail.at), number, row.pk), trail.line(row)) for row in newest]


def _before(at: str, number: int, place: Place) -> Q:
    if number == place.trail:
        earlier: Mapping[str, Any] = {f"{at}__lt": place.at}
        return Q(**{f"{at}__lte": place.at}) & (
            Q(**earlier) | Q(**{at: place.at, "pk__lt": place.pk})
        )
    return Q(**{f"{at}__lte" if number < place.trail else f"{at}__lt": place.at})


def _each_once(found: Iterable[Found]) -> Iterator[Found]:
    """Two restrictions may find the same row."""
    last = None
    for one in found:
        if one.place != last:
            yield one
        last = one.place
