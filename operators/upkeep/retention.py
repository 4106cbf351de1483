"""Deletes old data. Each app declares in its `backoffice.py` what is deleted, and when.

It works through each table by primary key, a window of rows per transaction. A window takes a
bounded number of locks for a moment, never waits for one, and skips rows that others have locked:
the next run takes them. The kinds take turns, a window each, so a large table does not use up the
time of the others. A run that was interrupted loses nothing: the next one starts again and finds
less.
"""

import time
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from core.backoffice.declarations import Expiring
from core.backoffice.registry import back_offices, declared_rights
from core.database.functions import database_now
from core.inputs import InputProblem

WINDOW = 5000  # rows looked at in one transaction
REPORT_EVERY = 2.0  # seconds
EXPIRING = [expiring for app in back_offices() for expiring in app.expiring]
KINDS = [expiring.kind for expiring in EXPIRING]

Report = Callable[[str, int], None]


def delete_old_data(
    *,
    apply: bool,
    kinds: Collection[str] = (),
    seconds: float = float("inf"),
    report: Report = lambda kind, rows: None,
) -> dict[str, Any]:
    """Deletes old rows of these kinds, or of all; without `apply` it only counts them.

    After `seconds` it starts no new window. Calls `report` with each kind and the rows found so
    far. Returns `applied`, `finished` and the number of rows by kind. The audit trail gets an entry
    before the first deletion and one with the numbers at the end, also after an error.
    """
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise InputProblem(f"There is no kind {unknown[0]!r}. Kinds: {', '.join(KINDS)}.")
    end = time.monotonic() + seconds
    cuts = [_Cut(each, apply=apply) for each in EXPIRING if not kinds or each.kind in kinds]
    rows = {cut.kind: 0 for cut in cuts}
    reported = time.monotonic()
    if apply:
        _record("Started")
    try:
        while (open_cuts := [cut for cut in cuts if not cut.done]) and time.monotonic() < end:
            for cut in open_cuts:
                rows[cut.kind] += cut.next_window()
                if cut.done or time.monotonic() > reported + REPORT_EVERY:
                    reported = time.monotonic()
                    report(cut.kind, rows[cut.kind])
                if time.monotonic() >= end:
                    break
    finally:
        if apply:
            deleted = ", ".join(f"{kind} {number}" for kind, number in rows.items() if number)
            _record(f"Deleted: {deleted or 'nothing'}")
    return {"applied": apply, "finished": all(cut.done for cut in cuts), "rows": rows}


class _Cut:
    """One pass through the table of one kind."""

    def __init__(self, expiring: Expiring, *, apply: bool) -> None:
        days = settings.RETENTION_DAYS[expiring.days]
        self.kind = expiring.kind
        self.done = False
        self._before = database_now() - timedelta(days=days)
        self._last: Any = expiring.start  # the key of the last row looked at
        self._table, self._key = expiring.table, expiring.key
        is_old = f"{expiring.key} > %(first)s AND {expiring.key} <= %(last)s AND ({expiring.old})"
        # A lock needs the right to update, which the service lacks where nothing is ever updated.
        lock = " FOR UPDATE SKIP LOCKED" if "UPDATE" in declared_rights()[expiring.table] else ""
        # The names are declared in the code.
        locked = (
            f"{expiring.key} = ANY (ARRAY(SELECT {expiring.key} FROM {expiring.table}"  # noqa: S608
            f" WHERE {is_old}{lock}))"
        )
        if not apply:
            self._sql = f"SELECT FROM {expiring.table} WHERE {is_old}"
        elif expiring.emptied:
            self._sql = f"UPDATE {expiring.table} SET {expiring.emptied} WHERE {locked}"  # noqa: S608
        else:
            self._sql = f"DELETE FROM {expiring.table} WHERE {locked}"  # noqa: S608

    def next_window(self) -> int:
        """Handles the next rows in a transaction of their own. Returns how many were old."""
        first, self._last = self._last, self._find_last()
        if self._last is None:
            self.done = True
            return 0
        with connection.cursor() as cursor:
            cursor.execute(self._sql, {"first": first, "last": self._last, "before": self._before})
            old: int = cursor.rowcount
        return old

    def _find_last(self) -> Any:
        """The key of the last row of the next window; None when no row is left."""
        sql = (
            f"SELECT max(key) FROM (SELECT {self._key} AS key FROM {self._table}"  # noqa: S608
            f" WHERE {self._key} > %(last)s ORDER BY {self._key} LIMIT {WINDOW}) AS next"
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, {"last": self._last})
            row = cursor.fetchone()
        return row[0] if row else None


def _record(note: str) -> None:
    record_action(actor=None, action=AuditAction.OLD_DATA_DELETED, on=AuditEntry, note=note)
