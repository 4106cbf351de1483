"""How each app declares what the audit trail and the timelines read.

A fact is stored once: a booking is a ledger entry, a move an event of a fulfilment, a new price a
row of the price history, everything else an audit entry. Each of these tables is a `Trail`, and
operators/trails.py reads them together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Model, Q, QuerySet

SERVICE = "the service"
ACTORS = {"admin": "Back office", "shell": "Server", "client": "API", "sql": "Database"}

# Rows by their model's label, such as {"accounts.account": ["7"]}.
Objects = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Person:
    """Whose lines to read. Records name a person by user id or by one of these names."""

    names: tuple[str, ...]
    user_id: int | None = None


@dataclass(frozen=True)
class Line:
    """What a row says: who did what to what, when, and from where. It holds no secret.

    `on` is the label and the primary key of the object, `name` what people call it. `who` is empty
    where the record names nobody, such as an announcement. `changes` holds old and new values by
    name.
    """

    at: datetime
    what: str
    on: tuple[str, str]
    name: str = ""
    who: str = ""
    where: str = ""
    note: str = ""
    changes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    request_id: str = ""
    colour: str = ""  # of the theme: success, warning, danger or info
    address: str = ""  # the network address, for readers of the whole audit trail
    by_member: bool = False  # `who` is the email address of a merchant's member
    is_price: bool = False  # a row of a price history


@dataclass(frozen=True)
class Trail:
    """A table whose rows say what somebody did.

    title: what its rows are, for the filter of the audit trail.
    model: the table.
    seen_with: staff who may view this model see the lines.
    rows: the rows to show, without a join, which would let PostgreSQL read them in another order.
    at: the column with the time. It needs an index with the primary key, over just these rows.
    line: what a row says.
    by, about, called: the rows of a person, about objects, and with a reference. Each returns
        alternatives, and each alternative needs an index.
    kinds: what to choose from in the filter besides `title`, by value.
    of_kind: the rows of one of these kinds.
    """

    title: str
    model: type[Model]
    seen_with: type[Model]
    rows: Callable[[], QuerySet[Any]]
    line: Callable[[Any], Line]
    by: Callable[[Person], Sequence[Q]]
    about: Callable[[Objects], Sequence[Q]]
    called: Callable[[str], Sequence[Q]] = lambda name: ()
    at: str = "created_at"
    kinds: Mapping[str, str] = field(default_factory=dict)
    of_kind: Callable[[str], Q] = lambda kind: Q()


def who_and_where(actor: str) -> tuple[str, str]:
    """An actor as records name it, such as `admin:anna`, for people: `anna`, `Back office`."""
    kind, _, name = actor.partition(":")
    if actor == "system":
        return SERVICE, ""
    if not name or kind not in ACTORS:
        return actor, ""
    return (name if kind == "admin" else actor), ACTORS[kind]


def ids_of(rows: QuerySet[Any]) -> list[str]:
    """The primary keys of the rows, as `Objects` holds them."""
    return [str(pk) for pk in rows.order_by("pk").values_list("pk", flat=True)]


def by_name(column: str) -> Callable[[Person], Sequence[Q]]:
    """`Trail.by` for a column that holds a name of a person."""
    return lambda person: [Q(**{column: name}) for name in person.names]


def about_object(label: str, column: str) -> Callable[[Objects], Sequence[Q]]:
    """`Trail.about` for a foreign key to the objects with this label."""

    def about(objects: Objects) -> Sequence[Q]:
        ids = objects.get(label, ())
        return [Q(**{f"{column}__in": ids})] if ids else []

    return about


def price_trail(
    *, title: str, model: type[Model], of: type[Model], column: str, read_with: Sequence[str]
) -> Trail:
    """The trail of a price history: `column` is its foreign key to what has the price, `of`."""

    def line(change: Any) -> Line:
        who, where = who_and_where(change.changed_by)
        priced = getattr(change, column)
        return Line(
            at=change.changed_at,
            what="Price set" if change.before is None else "Price changed",
            on=(of._meta.label_lower, str(priced.pk)),
            name=str(priced),
            who=who,
            where=where,
            changes={"price": (change.before, change.after)},
            is_price=True,
        )

    return Trail(
        title=title,
        model=model,
        seen_with=of,
        at="changed_at",
        rows=lambda: model._default_manager.prefetch_related(*read_with),
        line=line,
        by=by_name("changed_by"),
        about=about_object(of._meta.label_lower, column),
    )
