"""Reads the audit trail: the audit entries that match a filter, newest first.

One statement reads a page, by ranges of indexes, so it costs the same however long the trail is
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
from django.db.models import Model, Q, prefetch_related_objects

from audit.actor import SERVICE, who_and_where
from audit.models import REFERENCE_LENGTH, AuditEntry
from core.backoffice.declarations import Objects
from core.backoffice.registry import back_offices
from core.inputs import is_id

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
NEWEST_FIRST = ("-created_at", "-id")

Sees = Callable[[type[Model]], bool]  # whether the reader may view this model


@dataclass(frozen=True)
class TimelineEntry:
    """Who did what to what, when, and from where: an audit entry, or another row of the timeline of
    an order. It holds no secret.

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
class Place:
    """The place of an audit entry in the trail: its time and its id."""

    at: datetime
    pk: int

    def __str__(self) -> str:
        return f"{(self.at - EPOCH) // MICROSECOND}.{self.pk}"

    @classmethod
    def of(cls, entry: AuditEntry) -> Place:
        """The place of this entry."""
        return cls(entry.created_at, entry.pk)

    @classmethod
    def parse(cls, text: str) -> Place | None:
        """The place that `str` wrote; None for any other text."""
        parts = text.split(".")
        if len(parts) != 2 or not all(map(is_id, parts)):
            return None
        moment, pk = map(int, parts)
        try:
            return cls(EPOCH + moment * MICROSECOND, pk)
        except OverflowError:
            return None


@dataclass(frozen=True)
class Wanted:
    """Which audit entries to read. Empty values are ignored.

    by: a username, or another name that entries use, such as `shell:anna`.
    reference: the reference of an entry, or the ID of its request.
    without: the actions to leave out.
    """

    by: str = ""
    objects: Objects = field(default_factory=dict)
    reference: str = ""
    action: str = ""
    without: Collection[str] = ()
    since: datetime | None = None
    until: datetime | None = None


def read_entries(wanted: Wanted, *, before: Place | None = None, limit: int) -> list[AuditEntry]:
    """The newest entries that are wanted and stand before a place, with their actors."""
    rows = AuditEntry.objects.exclude(action__in=wanted.without)
    if wanted.action:
        rows = rows.filter(action=wanted.action)
    if wanted.since:
        rows = rows.filter(created_at__gte=wanted.since)
    if wanted.until:
        rows = rows.filter(created_at__lt=wanted.until)
    if before:
        rows = rows.filter(
            Q(created_at__lt=before.at) | Q(created_at=before.at, pk__lt=before.pk),
            created_at__lte=before.at,
        )
    first, *others = (
        rows.filter(condition).order_by(*NEWEST_FIRST)[:limit] for condition in _conditions(wanted)
    )
    found = list(first.union(*others).order_by(*NEWEST_FIRST)[:limit] if others else first)
    prefetch_related_objects(found, "actor")
    return found


def read_all(wanted: Wanted, *, at_once: int = 1000) -> Iterator[AuditEntry]:
    """All entries that are wanted, newest first, in bounded memory."""
    before = None
    while found := read_entries(wanted, before=before, limit=at_once):
        yield from found
        before = Place.of(found[-1])


def _conditions(wanted: Wanted) -> Iterator[Q]:
    """The conditions that together find what is wanted. Each is a range of an index."""
    groups: list[list[Q]] = []
    if wanted.by:
        groups.append(_by(wanted.by))
    if wanted.objects:
        groups.append(
            [Q(object_type=label, object_id__in=pks) for label, pks in wanted.objects.items()]
        )
    if wanted.reference:
        reference = wanted.reference[:REFERENCE_LENGTH]
        # The indexes leave empty values out: the second condition shows that they can be used.
        groups.append(
            [
                Q(reference=reference) & ~Q(reference=""),
                Q(request_id=wanted.reference) & ~Q(request_id=""),
            ]
        )
    for together in product(*groups):
        yield reduce(and_, together, Q())


def _by(name: str) -> list[Q]:
    """The entries of a person: of the user, or of a name without a user."""
    user = User.objects.filter(username=name).first()
    names = [Q(actor_name=one) & ~Q(actor_name="") for one in (name, f"admin:{name}")]
    return [*names, Q(actor=user.pk)] if user else names


def timeline_entry(entry: AuditEntry) -> TimelineEntry:
    """What an audit entry says, read with its actor."""
    who, where = who_and_where(entry.actor_name)
    return TimelineEntry(
        at=entry.created_at,
        what=entry.get_action_display(),
        on=(entry.object_type, entry.object_id),
        name=entry.reference,
        who=entry.actor.get_username() if entry.actor else who or SERVICE,
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


def is_seen(label: str, sees: Sees) -> bool:
    """Whether the reader may view objects of this label. Entries outlive models, so a label may
    name none: nobody sees those on a timeline."""
    try:
        return sees(apps.get_model(label))
    except LookupError:
        return False
