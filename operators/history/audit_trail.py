"""Reads the audit trail: the audit entries that match a filter, newest first.

One statement reads a page, by ranges of indexes, so its cost does not grow with the audit trail
(docs/decisions/0055-one-audit-trail.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import product
from operator import and_
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db.models import F, Model, Q, prefetch_related_objects

from audit.actor import SERVICE, who_and_where
from audit.models import REFERENCE_LENGTH, AuditEntry
from core.backoffice.declarations import Objects
from core.backoffice.registry import back_offices
from core.inputs import is_id

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
NEWEST_FIRST = ("-created_at", "-id")
# Of so many objects of a kind, each is a range of an index in this order. More objects, such as the
# references of a merchant, are one range with a sort: they have few entries. The planner expects
# more of them, and without the sort would walk the index by time past those of all others.
APART = 10
SORTED_NEWEST_FIRST = ((F("created_at") + timedelta(0)).desc(), "-id")

Sees = Callable[[type[Model]], bool]  # whether the reader may view this model


@dataclass(frozen=True)
class Entry:
    """An entry of the audit trail or of a timeline: an audit entry, or another event of an order.
    It holds no secret.

    `on` is the label and the primary key of the object, `name` what people call it. `who` is empty
    if nobody did it, such as an announcement. `changes` holds old and new values by name.
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
    address: str = ""  # the network address, for readers of the audit trail
    by_member: bool = False  # `who` is the email address of a merchant's member


@dataclass(frozen=True)
class EntryPosition:
    """The position of an audit entry in the audit trail: its time and its id."""

    at: datetime
    pk: int

    def __str__(self) -> str:
        return f"{(self.at - EPOCH) // MICROSECOND}.{self.pk}"

    @classmethod
    def of(cls, entry: AuditEntry) -> EntryPosition:
        """The position of this entry."""
        return cls(entry.created_at, entry.pk)

    @classmethod
    def parse(cls, text: str) -> EntryPosition | None:
        """The position that `str` wrote; None for any other text."""
        parts = text.split(".")
        if len(parts) != 2 or not all(map(is_id, parts)):
            return None
        moment, pk = map(int, parts)
        try:
            return cls(EPOCH + moment * MICROSECOND, pk)
        except OverflowError:
            return None


@dataclass(frozen=True)
class EntryQuery:
    """Chooses audit entries. Empty values are ignored.

    by: a username, the name of somebody on the server, or as entries write it: `shell:anna`.
    reference: the reference of an entry, or the ID of its request.
    without: the actions to leave out.
    where: a further condition, which no index serves.
    """

    by: str = ""
    objects: Objects = field(default_factory=dict)
    reference: str = ""
    action: str = ""
    without: Collection[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    where: Q = field(default_factory=Q)


class ManyObjects(Q):
    """The entries about many objects."""


def read_entries(
    query: EntryQuery, *, before: EntryPosition | None = None, limit: int
) -> list[AuditEntry]:
    """The newest entries of the query that are older than a position, with their actors."""
    rows = AuditEntry.objects.exclude(action__in=query.without)
    if query.action:
        rows = rows.filter(action=query.action)
    if query.where:
        rows = rows.filter(query.where)
    if query.since:
        rows = rows.filter(created_at__gte=query.since)
    if query.until:
        rows = rows.filter(created_at__lt=query.until)
    if before:
        rows = rows.filter(
            Q(created_at__lt=before.at) | Q(created_at=before.at, pk__lt=before.pk),
            created_at__lte=before.at,
        )
    first, *others = (
        rows.filter(condition).order_by(*order)[:limit] for condition, order in _ranges(query)
    )
    entries = list(first.union(*others).order_by(*NEWEST_FIRST)[:limit] if others else first)
    prefetch_related_objects(entries, "actor")
    return entries


def read_all(query: EntryQuery, *, at_once: int = 1000) -> Iterator[AuditEntry]:
    """All entries of the query, newest first, in bounded memory."""
    before = None
    while entries := read_entries(query, before=before, limit=at_once):
        yield from entries
        before = EntryPosition.of(entries[-1])


def _ranges(query: EntryQuery) -> Iterator[tuple[Q, Sequence[Any]]]:
    """The ranges of indexes that together find the entries, and how each is put in order."""
    groups: list[list[Q]] = []
    if query.by:
        groups.append(_person_conditions(query.by))
    if query.objects:
        groups.append(
            [one for label, pks in query.objects.items() for one in _object_conditions(label, pks)]
        )
    if query.reference:
        reference = query.reference[:REFERENCE_LENGTH]
        # The indexes leave empty values out: the second condition shows that they can be used.
        groups.append(
            [
                Q(reference=reference) & ~Q(reference=""),
                Q(request_id=query.reference) & ~Q(request_id=""),
            ]
        )
    for together in product(*groups):
        is_sorted = any(isinstance(one, ManyObjects) for one in together)
        yield reduce(and_, together, Q()), SORTED_NEWEST_FIRST if is_sorted else NEWEST_FIRST


def _object_conditions(label: str, pks: Collection[str]) -> list[Q]:
    """The conditions for these objects of a kind."""
    if len(pks) > APART:
        return [ManyObjects(object_type=label, object_id__in=pks)]
    return [Q(object_type=label, object_id=pk) for pk in pks]


def _person_conditions(name: str) -> list[Q]:
    """The entries of a person: of the user, or of a name without a user."""
    user = User.objects.filter(username=name).first()
    written = (name, *(f"{channel}:{name}" for channel in ("admin", "shell", "sql")))
    names = [Q(actor_name=one) & ~Q(actor_name="") for one in written]
    return [*names, Q(actor=user.pk)] if user else names


def entry_of(entry: AuditEntry) -> Entry:
    """An audit entry, read with its actor, as an entry to show."""
    who, where = who_and_where(entry.actor_name)
    return Entry(
        at=entry.created_at,
        what=entry.action_label,
        on=(entry.object_type, entry.object_id),
        name=entry.reference,
        who=entry.actor.get_username() if entry.actor else who or str(SERVICE),
        where=where,
        note=entry.note,
        changes=entry.changes,
        request_id=entry.request_id,
        address=entry.address or "",
        by_member=entry.actor is not None and not entry.actor.is_staff,
    )


def with_parts(label: str, pk: str) -> Objects:
    """A row with the rows whose timeline belongs to its timeline, such as the clients of an
    account."""
    objects: dict[str, list[str]] = {label: [pk]}
    for app in back_offices():
        parts = app.parts.get(label)
        for part, pks in (parts(int(pk)) if parts else {}).items():
            objects.setdefault(part, []).extend(pks)
    return {part: pks for part, pks in objects.items() if pks}


def hidden_actions(sees: Sees) -> list[str]:
    """The actions whose entries a timeline hides from this reader, whatever they are about: they
    need another permission (BackOffice.seen_with)."""
    return [
        action
        for app in back_offices()
        for action, model in app.seen_with.items()
        if not sees(model)
    ]


def sees_label(label: str, sees: Sees) -> bool:
    """Whether the reader may view objects of this label. Entries outlive models, so a label may
    name none: nobody sees those on a timeline."""
    try:
        return sees(apps.get_model(label))
    except LookupError:
        return False
