"""Audit entries as lines of the audit trail (core/trails.py)."""

from collections.abc import Sequence

from django.db.models import Q

from audit.models import AuditAction, AuditEntry
from core.trails import SERVICE, Line, Objects, Person, Trail, who_and_where


def _line(entry: AuditEntry) -> Line:
    who, where = who_and_where(entry.actor_name)
    return Line(
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


def _by(person: Person) -> Sequence[Q]:
    by_name = [Q(actor_name=name) & ~Q(actor_name="") for name in person.names]
    return [*by_name, *([Q(actor=person.user_id)] if person.user_id else [])]


def _about(objects: Objects) -> Sequence[Q]:
    return [Q(object_type=label, object_id__in=ids) for label, ids in objects.items()]


def _called(name: str) -> Sequence[Q]:
    # The index leaves empty values out: the second condition shows that it can be used.
    return [Q(reference=name) & ~Q(reference=""), Q(request_id=name) & ~Q(request_id="")]


TRAIL = Trail(
    title="Actions",
    model=AuditEntry,
    seen_with=AuditEntry,
    rows=lambda: AuditEntry.objects.prefetch_related("actor"),
    line=_line,
    by=_by,
    about=_about,
    called=_called,
    kinds=dict(AuditAction.choices),
    of_kind=lambda kind: Q(action=kind),
)
