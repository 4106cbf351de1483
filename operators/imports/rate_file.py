"""Exchange rates as a table. A row is a rate: two currencies and its first day name it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils.translation import gettext_noop

from audit.models import AuditAction
from audit.services import record_action
from core.database.columns import validate_currency
from core.files.tables import Columns
from core.files.times import read_day
from core.inputs import InputProblem
from core.numbers import read_number
from core.texts import in_english
from figures.models import ExchangeRate
from operators.imports.catalogue_changes import DANGERS, Change
from operators.imports.table_imports import REPEATED_ROW, Line, Outcome, TableFile, TableKind

COLUMNS = ("currency", "into", "day", "rate")
FAR = 2  # times the rate before, or its half
_FAR, _OTHER = DANGERS[-2:]

# What is wrong with a rate. Imports store it in English, and pages translate it.
NO_CURRENCY = gettext_noop("write three capital letters, such as USD")
SAME_CURRENCY = gettext_noop("the two currencies are the same")
NO_RATE = gettext_noop("a rate is above 0, with up to 10 digits before the point and 10 after it")
WRONG_RATES = (NO_CURRENCY, SAME_CURRENCY, NO_RATE)

Pair = tuple[str, str]
Key = tuple[str, str, date]


def apply_rates(file: TableFile, actor: User | str) -> Outcome:
    """Adds and changes rates. Rates that the file does not have stay as they are."""
    rows = _read(file)
    file.refuse()
    with connection.cursor() as cursor:  # the form and other files wait
        cursor.execute("LOCK TABLE figures_exchangerate IN SHARE ROW EXCLUSIVE MODE")
    stored = {(one.currency, one.into, one.day): one for one in ExchangeRate.objects.all()}
    counts, changes = {"created": 0, "updated": 0, "unchanged": 0}, []
    days = _days(stored)
    for key, (line, rate) in rows.items():
        row = stored.get(key)
        if row is not None and row.rate == rate:
            counts["unchanged"] += 1
            continue
        before = None if row is None else row.rate
        earlier = before or _rate_before(key, stored, days)
        is_near = earlier is not None and earlier / FAR < rate < earlier * FAR
        if not is_near:
            file.doubt_number(line, "rate")
        counts["created" if row is None else "updated"] += 1
        danger = _FAR if earlier and not is_near else _OTHER if row else ""
        changes.append(_change(key, danger, before, rate))
        _save(row or ExchangeRate(currency=key[0], into=key[1], day=key[2]), rate, actor)
    left = len(stored.keys() - rows.keys())
    return Outcome({"exchange_rates": counts}, changes, left)


KIND = TableKind(
    name="exchange rates",
    columns=Columns(known=COLUMNS, required=COLUMNS, dates=frozenset({"day"}), short_rows=True),
    apply=apply_rates,
)


def _read(file: TableFile) -> dict[Key, tuple[Line, Decimal]]:
    """The rates of the file. Rows with a problem are left out."""
    rows: dict[Key, tuple[Line, Decimal]] = {}
    for line in file.lines:
        try:
            key = (*_pair(file, line), read_day(line.cells["day"].strip()))
        except InputProblem as problem:
            file.add_problem(line.number, str(problem), "day")
            continue
        try:
            rate = read_number(line.cells["rate"])
        except InputProblem as problem:
            file.add_problem(line.number, str(problem), "rate")
            continue
        if not 0 < rate < 10**10 or rate != round(rate, 10):
            file.add_problem(line.number, NO_RATE, "rate")
        elif key in rows:
            file.add_problem(line.number, REPEATED_ROW % {"first": rows[key][0].number})
        else:
            rows[key] = (line, rate)
    return rows


def _pair(file: TableFile, line: Line) -> Pair:
    currency, into = line.cells["currency"], line.cells["into"]
    for name, text in (("currency", currency), ("into", into)):
        try:
            validate_currency(text)
        except ValidationError:
            file.add_problem(line.number, NO_CURRENCY, name)
    if currency == into:
        file.add_problem(line.number, SAME_CURRENCY, "into")
    return currency, into


def _days(stored: Mapping[Key, ExchangeRate]) -> dict[Pair, list[date]]:
    """The days of the rates of each two currencies, in order."""
    days: dict[Pair, list[date]] = defaultdict(list)
    for currency, into, day in sorted(stored):
        days[currency, into].append(day)
    return days


def _rate_before(
    key: Key, stored: Mapping[Key, ExchangeRate], days: Mapping[Pair, list[date]]
) -> Decimal | None:
    """The stored rate before this day, or else the first one after it."""
    currency, into, day = key
    known = days.get((currency, into), [])
    if not known:
        return None
    place = max(0, bisect_left(known, day) - 1)
    return stored[currency, into, known[place]].rate


def _change(key: Key, danger: str, before: Decimal | None, rate: Decimal) -> Change:
    currency, into, day = key
    return Change(
        danger=danger,
        kind="exchange_rate",
        id="",
        name=f"{currency} → {into}",
        value="rate",
        before="" if before is None else _plain(before),
        after=_plain(rate),
        since=day.isoformat(),
    )


def _plain(rate: Decimal) -> str:
    return f"{rate.normalize():f}"


def _english_name(row: ExchangeRate) -> str:
    with in_english():
        return str(row)


def _save(row: ExchangeRate, rate: Decimal, actor: User | str) -> None:
    is_new, before = row.pk is None, row.rate
    row.rate = rate
    row.save()
    new = {"currency": row.currency, "into": row.into, "day": row.day.isoformat()}
    record_action(
        actor=actor,
        action=AuditAction.ADDED if is_new else AuditAction.CHANGED,
        on=row,
        reference=_english_name(row),
        changes={name: (None, value) for name, value in new.items() if is_new}
        | {"rate": (None if is_new else _plain(before), _plain(rate))},
    )
