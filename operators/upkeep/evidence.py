"""Evidence outside the host: a file a day (UTC) of audit entries and signed roots.

A job takes the files to a store that cannot be rewritten (deploy/evidence/). `manage.py
verify_evidence` compares them with the database, whose owner can delete entries.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import orjson

from audit.models import EXPIRING_ACTIONS, AuditEntry
from core.database.functions import database_now
from core.database.ids import MARGIN
from core.files.log_files import read_events
from core.inputs import InputProblem
from core.json_output import dumps
from wallets.evidence.roots import EVENT as ROOT
from wallets.evidence.roots import stored_root
from wallets.evidence.verification import verify_ledger
from wallets.models import SignedRoot

DAY = timedelta(days=1)
HEAD, ENTRY = "evidence_day", "audit_entry"
NAME = "evidence-{}.log"
MAY_EXPIRE = timedelta(days=90)  # audit/sql/append_only.sql


def export_evidence(folder: Path) -> list[str]:
    """Writes a file for each day that ended an hour ago and has none. Returns their names."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    written = []
    day = _first_day(folder)
    while day and day + DAY <= (database_now() - MARGIN).astimezone(UTC).date():
        path = folder / NAME.format(day)
        new = path.with_suffix(".new")
        with new.open("wb") as file:
            file.writelines(dumps(line) + b"\n" for line in _lines(day))
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
        written.append(path.name)
        day += DAY
    return written


def verify_evidence(files: Sequence[Path]) -> dict[str, Any]:
    """Compares the files of days with the audit trail, and their roots with the ledger.

    Returns what `verify_ledger` does, with `days` and `audit_entries`. A finding is an entry that
    is missing in the database, was changed or was added later, and a day without a file between
    others. Entries about looking and signing in may be missing after 90 days.
    """
    days: dict[date, dict[int, dict[str, Any]]] = defaultdict(dict)
    counts: dict[date, int] = {}
    for line in read_events(files, HEAD, ENTRY):
        values = line.values or {}
        try:
            day = date.fromisoformat(values["day"])
            if values["event"] == HEAD:
                counts[day] = int(values["audit_entries"])
            else:
                days[day][int(values["id"])] = values
        except (KeyError, TypeError, ValueError):
            raise InputProblem(f"{line.place}: this line is damaged") from None
    if not counts:
        raise InputProblem("The files have no day of evidence. Give those of the store.")
    findings = []
    for day in _days(min(counts), max(counts)):
        if day not in counts:
            findings.append(f"the file of {day} is missing")
        elif counts[day] != len(days[day]):
            findings.append(f"the file of {day} lacks entries")
        else:
            findings += _compare(day, days[day])
    result = verify_ledger(files=files)
    return {
        **result,
        "ok": result["ok"] and not findings,
        "days": len(counts),
        "audit_entries": sum(counts.values()),
        "findings": [*findings, *result["findings"]],
    }


def _compare(day: date, exported: dict[int, dict[str, Any]]) -> Iterator[str]:
    stored = {entry["id"]: entry for entry in _entries(day)}
    expired = day + MAY_EXPIRE < database_now().date()
    for pk, entry in exported.items():
        if pk not in stored:
            if not (expired and entry["action"] in EXPIRING_ACTIONS):
                yield f"audit entry {pk} of {day} is missing in the database"
        elif orjson.loads(dumps(stored[pk])) != entry:
            yield f"audit entry {pk} of {day} was changed"
    for pk in stored.keys() - exported.keys():
        yield f"audit entry {pk} of {day} was added later"


def _first_day(folder: Path) -> date | None:
    """The day after the last file, else that of the first audit entry."""
    names = [path.stem.removeprefix("evidence-") for path in folder.glob(NAME.format("????-??-??"))]
    if names:
        return date.fromisoformat(max(names)) + DAY
    first = AuditEntry.objects.order_by("created_at").values_list("created_at", flat=True).first()
    return first.astimezone(UTC).date() if first else None


def _lines(day: date) -> Iterator[dict[str, Any]]:
    entries = list(_entries(day))
    yield {"event": HEAD, "day": str(day), "audit_entries": len(entries)}
    yield from entries
    since, until = _bounds(day)
    for row in SignedRoot.objects.filter(signed_at__gte=since, signed_at__lt=until):
        yield {"event": ROOT, **stored_root(row).as_json()}


def _entries(day: date) -> Iterator[dict[str, Any]]:
    since, until = _bounds(day)
    rows = AuditEntry.objects.filter(created_at__gte=since, created_at__lt=until)
    for row in rows.order_by("created_at", "pk").values().iterator():
        yield {"event": ENTRY, "day": str(day), **row}


def _bounds(day: date) -> tuple[datetime, datetime]:
    since = datetime.combine(day, time(), UTC)
    return since, since + DAY


def _days(first: date, last: date) -> Iterator[date]:
    while first <= last:
        yield first
        first += DAY
