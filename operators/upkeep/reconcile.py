"""`reconcile`: compares balances, stock, codes, orders, refunds and records with each other.

Each check is one query that returns one sentence per finding. All checks read one snapshot, so
purchases can continue meanwhile.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext_noop

from core.backoffice.declarations import Check, DecryptCheck, Sealed
from core.backoffice.periods import Period, is_of_periods, tables_of
from core.backoffice.registry import back_offices, declared_rights, sealed_columns
from core.database import rights
from core.database.applied_migrations import newer_migrations
from core.database.functions import snapshot
from core.database.key_ring import key_ring
from core.database.sealing import CannotOpen

FINDINGS_SHOWN = 100  # of one check; the rest are counted
TRIGGERS = sorted(trigger for app in back_offices() for trigger in app.triggers)
CONSTRAINTS = [constraint for app in back_offices() for constraint in app.constraints]


def _guards() -> dict[str, Any]:
    """The triggers, constraints and unique columns that the apps and their models declare."""
    models = apps.get_models()
    unique = [
        (model._meta.db_table, field.column)
        for model in models
        for field in model._meta.local_concrete_fields
        if field.unique
    ]
    return {
        "triggers": TRIGGERS,
        "constraints": [
            *CONSTRAINTS,
            *(constraint.name for model in models for constraint in model._meta.constraints),
        ],
        "tables": [table for table, _ in unique],
        "columns": [column for _, column in unique],
    }


GUARDS = Check(
    gettext_noop("every trigger, constraint and index exists and is active"),
    """
    SELECT format('trigger %%s on %%s is switched off', tgname, tgrelid::regclass)
      FROM pg_trigger
     WHERE tgenabled <> 'O' AND tgrelid IN (SELECT oid FROM pg_class
                                             WHERE relnamespace = 'public'::regnamespace)
    UNION ALL
    SELECT format('trigger %%s is missing', expected)
      FROM unnest(%(triggers)s::text[]) AS expected
     WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = expected)
    UNION ALL
    SELECT format('constraint %%s is missing', expected)
      FROM unnest(%(constraints)s::text[]) AS expected
     WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conname = expected)
       AND NOT EXISTS (SELECT FROM pg_class WHERE relname = expected AND relkind = 'i')
    UNION ALL
    SELECT format('%%s.%%s has no unique index', expected.table, expected.column)
      FROM unnest(%(tables)s::text[], %(columns)s::text[]) AS expected ("table", "column")
     WHERE NOT EXISTS (SELECT FROM pg_index AS index
                         JOIN pg_attribute AS attribute
                           ON attrelid = indrelid AND attnum = indkey[0]
                        WHERE indrelid = expected.table::regclass AND attname = expected.column
                          AND indisunique AND indnkeyatts = 1 AND indpred IS NULL)
    UNION ALL
    SELECT format('constraint %%s on %%s is not validated', conname, conrelid::regclass)
      FROM pg_constraint WHERE NOT convalidated
    UNION ALL
    SELECT format('index %%s is not valid', indexrelid::regclass)
      FROM pg_index WHERE NOT indisvalid
    """,
    _guards,
)

RIGHTS_HELD = Check(
    gettext_noop("the service's database role may do what the code needs"),
    rights.MISSING,
    lambda: rights.parameters(declared_rights()),
)
RIGHTS_EXCEEDED = Check(
    gettext_noop("the service's database role may do nothing else"),
    rights.EXCESSIVE,
    lambda: rights.parameters(declared_rights()),
)

NEWER_SCHEMA = Check(
    gettext_noop("the database has the schema of this version"),
    """
    SELECT 'a newer version has migrated the database, such as ' || newest
           || ': run its reconcile to check triggers, constraints and rights'
      FROM unnest(%(newest)s::text[]) AS newest
    """,
    lambda: {"newest": newer_migrations()[-1:]},
)

CHECKS = [*(check for app in back_offices() for check in app.checks), GUARDS, RIGHTS_HELD]
WARNINGS = [
    *(check for app in back_offices() for check in app.warnings),
    NEWER_SCHEMA,
    RIGHTS_EXCEEDED,
]
OF_THIS_SCHEMA = (GUARDS, RIGHTS_HELD, RIGHTS_EXCEEDED)  # a newer one may have others
DECRYPT_CHECKS = [check for app in back_offices() for check in app.decrypt_checks]
OF_PERIODS = {table for check in CHECKS for table in tables_of(check)}
COUNTED = {name: table for app in back_offices() for name, table in app.counted.items()}


def _silent(name: str) -> None:
    """Reports nothing."""


def reconcile(
    *,
    decrypt: bool = False,
    periods: Sequence[Period] = (),
    weekly: bool = True,
    report: Callable[[str], None] = _silent,
) -> dict[str, Any]:
    """Runs every check over all data: `{"ok", "checked", "findings", "warnings"}`.

    With `periods`, checks of tables that grow with history look only at the rows of these periods.
    Without `weekly`, checks that can only read whole tables are left out. With `decrypt`, it also
    decrypts every sealed value. `report` receives the name of each check before it runs. If a newer
    version has migrated the database, a warning says so, and triggers, constraints and rights are
    not compared. Changes nothing.
    """
    if decrypt:
        with suppress(CannotOpen):  # what it cannot open becomes a finding
            key_ring()  # may register a key, which the transaction below could not
    with snapshot(), connection.cursor() as cursor:
        checked = _count(cursor, periods, weekly=weekly)
        findings: list[dict[str, str]] = []
        left_out = OF_THIS_SCHEMA if newer_migrations() else ()
        for check in CHECKS:
            if check in left_out or (check.weekly and not weekly):
                continue
            report(check.name)
            for sql in _sql_of(check, periods):
                findings += [one for one in _run(cursor, check, sql) if one not in findings]
        if decrypt:
            for sealed in sealed_columns():
                report(sealed.check)
                findings += _as_findings(sealed.check, _unopenable(sealed))
            for keyed in DECRYPT_CHECKS:
                report(keyed.name)
                findings += _as_findings(keyed.name, _damaged_rows(keyed))
        warnings = [
            warning
            for check in WARNINGS
            if check not in left_out
            for warning in _run(cursor, check)
        ]
    return {"ok": not findings, "checked": checked, "findings": findings, "warnings": warnings}


def _sql_of(check: Check, periods: Sequence[Period]) -> list[str]:
    """The statements of the check: one for each period, or one over all rows."""
    if not is_of_periods(check) or not periods:
        return [check.sql]
    return [period.sql_of(check) for period in periods]


def _count(cursor: CursorWrapper, periods: Sequence[Period], *, weekly: bool) -> dict[str, int]:
    """The numbers of rows that the checks look at. Without `weekly`, codes are not counted."""
    counts = {}
    for name, table in COUNTED.items():
        if table == "catalogue_vouchercode" and not weekly:
            continue
        conditions = ["true"]
        if table in OF_PERIODS and periods:
            conditions = [period.condition("id", table) for period in periods]
        counts[name] = 0
        for condition in conditions:
            cursor.execute(f"SELECT count(*) FROM {table} WHERE {condition}")  # noqa: S608  names of ours
            counts[name] += cursor.fetchone()[0]
    return counts


def _run(cursor: CursorWrapper, check: Check, sql: str = "") -> list[dict[str, str]]:
    """The database counts the findings and returns the first: damage may have millions."""
    cursor.execute(
        f"WITH findings (finding) AS MATERIALIZED ({sql or check.sql})"  # noqa: S608  SQL of ours
        f" SELECT finding, (SELECT count(*) FROM findings) FROM findings LIMIT {FINDINGS_SHOWN}",
        check.parameters() if check.parameters else None,
    )
    rows = cursor.fetchall()
    return _shorten(check.name, [sentence for sentence, _ in rows], rows[0][1] if rows else 0)


def _as_findings(name: str, sentences: Iterator[str]) -> list[dict[str, str]]:
    first = list(islice(sentences, FINDINGS_SHOWN))
    return _shorten(name, first, len(first) + sum(1 for _ in sentences))


def _shorten(name: str, sentences: list[str], number: int) -> list[dict[str, str]]:
    more = [f"and {number - len(sentences)} more"] if number > len(sentences) else []
    return [{"check": name, "finding": sentence} for sentence in [*sentences, *more]]


def _unopenable(sealed: Sealed) -> Iterator[str]:
    table, column, identity = sealed.table, sealed.column, ", ".join(sealed.identity)
    with connection.chunked_cursor() as cursor:
        cursor.execute(
            f"SELECT id, {column}, {identity} FROM {table}"  # noqa: S608  names of ours
            f" WHERE {column} IS NOT NULL"
        )
        for pk, value, *named in cursor:
            try:
                sealed.read(value, sealed.row(*named))
            except (CannotOpen, ValueError, TypeError):
                yield f"{table} {pk} cannot be decrypted with CODE_ENCRYPTION_KEYS"


def _damaged_rows(check: DecryptCheck) -> Iterator[str]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(check.sql)
        for name, *columns in cursor:
            try:
                holds = check.holds(*columns)
            except CannotOpen:
                holds = False
            if not holds:
                yield f"{name} was changed, or CODE_ENCRYPTION_KEYS is wrong"
