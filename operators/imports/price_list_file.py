"""The prices of price lists as a table. A row is a price: its list, its target and its beginning
name it.

What the file does not have stays as it is. A price that has begun is not rewritten: other terms
begin now, and it ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils.translation import gettext_noop

from catalogue.models import PRICE_LIMIT, Category, PriceList, PriceListEntry, Product, Shelf
from catalogue.price_lists import (
    Target,
    Terms,
    add_price_entry,
    end_price_entry,
    move_end_of_price,
)
from core.database.columns import MONEY_DECIMALS
from core.database.functions import database_now
from core.files.cells import plain_text, without_marks
from core.files.table_files import exact_time
from core.files.tables import Columns
from core.files.times import read_time
from core.inputs import InputProblem, is_id
from core.json_output import money_text
from core.numbers import read_number
from figures.price_lines import PriceChange, watch_prices
from operators.imports.catalogue_changes import DANGERS, Change
from operators.imports.table_imports import REPEATED_ROW, Line, Outcome, TableFile, TableKind
from topups.models import TopUpProduct

NOW = "now"  # in the column `until`: the price ends
_LOWER, _SWITCHED = DANGERS[0], DANGERS[3]

# What is wrong with a price. Imports store it in English, and pages translate it.
NO_LIST = gettext_noop("there is no price list with this id")
OTHER_CURRENCY = gettext_noop("the price list is in %(currency)s")
WRONG_ABOUT = gettext_noop("write one of %(words)s")
NO_ID = gettext_noop("write the id of a %(about)s")
NOT_THERE = gettext_noop("there is no %(about)s with this id")
NO_TARGET = gettext_noop("everything has no id: leave it empty")
NOT_FOR_TERMS = gettext_noop("leave it empty for these terms: %(terms)s")
NO_PRICE = gettext_noop("a price is above 0 and below %(limit)s, with up to 4 decimals")
NO_PERCENT = gettext_noop("a percentage is above 0 and below 100, with up to 2 decimals")
ONE_PRICE = gettext_noop("everything cannot have the same price")
ENDS_EARLY = gettext_noop("the price ends before it begins")
IN_THE_PAST = gettext_noop("the price cannot end in the past: write now to end it")
NOT_BEGUN_THEN = gettext_noop(
    "no price of this target began then, and a price cannot begin in the past. Leave it empty for a"
    " price that begins now"
)
HAS_ENDED = gettext_noop(
    "this price has ended and stays as it is. Leave since empty for a price that begins now"
)
NOTHING_ENDS = gettext_noop("this target has no price that could end now")
ENDS_AS_IT_IS = gettext_noop("a price that ends now keeps its terms")
OVERLAPS = gettext_noop("the price in line %(other)s begins before this one ends")
WRONG_PRICES = (
    *(NO_LIST, OTHER_CURRENCY, WRONG_ABOUT, NO_ID, NOT_THERE, NO_TARGET, NOT_FOR_TERMS, NO_PRICE),
    *(NO_PERCENT, ONE_PRICE, ENDS_EARLY, IN_THE_PAST, NOT_BEGUN_THEN, HAS_ENDED, NOTHING_ENDS),
    *(ENDS_AS_IT_IS, OVERLAPS),
)
# A doubt. It is stored and translated, too.
OTHER_NAME = gettext_noop(
    "%(name)s: the file has other names than the service: %(count)s, the first in line %(line)s:"
    " %(text)s in place of %(other)s."
)

ABOUT = {
    "shelf": Shelf,
    "product": Product,
    "category": Category,
    "topup_product": TopUpProduct,
    "everything": None,
}
TERMS = ("fixed", "percent", "regular", "none")
# The limit and the decimals of the numbers, and what is wrong with others.
LIMITS = {
    "price": (PRICE_LIMIT, MONEY_DECIMALS, NO_PRICE),
    "percent_off": (100, 2, NO_PERCENT),
}
COLUMNS = (
    *("price_list", "price_list_name", "about", "id", "name", "terms", "price", "percent_off"),
    *("currency", "since", "until"),
)
NAMES = frozenset({"price_list_name", "name"})  # for people: they are compared, and not needed


@dataclass(frozen=True)
class Row:
    """A row of the file. `since` is None for a price that holds now or begins now, and `until` for
    one without an end."""

    line: Line
    price_list: PriceList
    about: str
    target: Target
    name: str
    terms: Terms
    since: datetime | None
    until: datetime | None
    ends_now: bool

    @property
    def of(self) -> tuple[int, Target]:
        """Its list and its target."""
        return self.price_list.pk, self.target


@dataclass(frozen=True)
class Step:
    """A change that a row leads to. Prices end before others begin: those steps are `first`."""

    row: Row
    make: Callable[[User | str], object]
    first: bool = False


def lists_of(file: TableFile) -> set[int]:
    """The ids of the price lists in a file."""
    return {int(text) for line in file.lines if is_id(text := line.cells["price_list"])}


def apply_prices(file: TableFile, actor: User | str) -> Outcome:
    """Adds, changes and ends prices. Prices that the file does not have stay as they are."""
    rows = _Reader(file).rows()
    file.refuse()
    locked = PriceList.objects.select_for_update(no_key=True).order_by("pk")
    lists = {one.pk: one.name for one in locked.filter(pk__in=lists_of(file))}
    now = database_now()
    plan = _Plan(file, _fill_ends(file, rows, now), now)
    file.refuse()
    watched, before = watch_prices(lists=lists), _entries(lists, now)
    for step in sorted(plan.steps, key=lambda step: not step.first):
        try:
            step.make(actor)
        except InputProblem as problem:
            file.add_problem(step.row.line.number, str(problem))
    file.refuse()
    after = _entries(lists, now)
    names = {row.of: f"{row.name} ({row.about} {row.line.cells['id']})" for row in rows}
    changes = [
        *(_price_change(lists, one) for one in watched.changes() if one.price_list in lists),
        *_entry_changes(lists, names, before, after, now),
    ]
    left = len(before.keys() & after.keys() - plan.found)
    return Outcome({"prices_in_lists": plan.counts}, changes, left)


KIND = TableKind(
    name="prices in lists",
    columns=Columns(
        known=COLUMNS,
        required=tuple(name for name in COLUMNS if name not in NAMES),
        raw=NAMES,
        dates=frozenset({"since", "until"}),
        short_rows=True,
    ),
    apply=apply_prices,
    lists=lists_of,
)


class _Reader:
    """Reads the rows of a file. What is wrong with them becomes problems of the file."""

    def __init__(self, file: TableFile) -> None:
        self._file = file
        self._lists = PriceList.objects.in_bulk()
        self._names = {
            about: _names_of(about, {one.cells["id"] for one in file.lines}) for about in ABOUT
        }

    def rows(self) -> list[Row]:
        """The rows without a problem."""
        return [row for line in self._file.lines if (row := self._row(line))]

    def _row(self, line: Line) -> Row | None:
        problems = len(self._file.problems)
        price_list = self._price_list(line)
        about, target, name = self._target(line)
        terms = self._terms(line, about)
        since = self._value(line, "since", read_time)
        ends_now = line.cells["until"].lower() == NOW
        until = None if ends_now else self._value(line, "until", read_time)
        if since and until and until <= since:
            self._file.add_problem(line.number, ENDS_EARLY, "until")
        if price_list is None or len(self._file.problems) > problems:
            return None
        self._compare_name(line, "price_list_name", price_list.name)
        self._compare_name(line, "name", name)
        return Row(line, price_list, about, target, name, terms, since, until, ends_now)

    def _value(self, line: Line, name: str, read: Callable[[str], Any]) -> Any:
        """The value, or None if the cell is empty or wrong."""
        text = line.cells[name]
        try:
            return read(text) if text else None
        except InputProblem as problem:
            self._file.add_problem(line.number, str(problem), name)
            return None

    def _price_list(self, line: Line) -> PriceList | None:
        text, currency = line.cells["price_list"], line.cells["currency"]
        price_list = self._lists.get(int(text)) if is_id(text) else None
        if price_list is None:
            self._file.add_problem(line.number, NO_LIST, "price_list")
        elif currency != price_list.currency:
            problem = OTHER_CURRENCY % {"currency": price_list.currency}
            self._file.add_problem(line.number, problem, "currency")
        return price_list

    def _target(self, line: Line) -> tuple[str, Target, str]:
        about, text = line.cells["about"].lower(), line.cells["id"]
        if about not in ABOUT:
            self._file.add_problem(line.number, WRONG_ABOUT % {"words": ", ".join(ABOUT)}, "about")
        elif about == "everything":
            if text:
                self._file.add_problem(line.number, NO_TARGET, "id")
        elif not is_id(text):
            self._file.add_problem(line.number, NO_ID % {"about": about}, "id")
        elif int(text) not in self._names[about]:
            self._file.add_problem(line.number, NOT_THERE % {"about": about}, "id")
        else:
            return about, Target(**{f"{about}_id": int(text)}), self._names[about][int(text)]
        return about, Target(), about

    def _terms(self, line: Line, about: str) -> Terms:
        terms = line.cells["terms"].lower()
        if terms not in TERMS:
            self._file.add_problem(line.number, WRONG_ABOUT % {"words": ", ".join(TERMS)}, "terms")
            return Terms()
        if terms == "fixed" and about == "everything":
            self._file.add_problem(line.number, ONE_PRICE, "price")
        return Terms(
            for_sale=terms != "none",
            price=self._number(line, "price", is_needed=terms == "fixed"),
            percent_off=self._number(line, "percent_off", is_needed=terms == "percent"),
        )

    def _number(self, line: Line, name: str, *, is_needed: bool) -> Decimal | None:
        text = line.cells[name]
        if not is_needed:
            if text:
                problem = NOT_FOR_TERMS % {"terms": line.cells["terms"].lower()}
                self._file.add_problem(line.number, problem, name)
            return None
        limit, decimals, problem = LIMITS[name]
        try:
            number = read_number(text) if text else Decimal(0)
        except InputProblem as wrong:
            self._file.add_problem(line.number, str(wrong), name)
            return None
        if not 0 < number < limit or number != round(number, decimals):
            self._file.add_problem(line.number, problem % {"limit": f"{limit:,}"}, name)
        return number

    def _compare_name(self, line: Line, column: str, name: str) -> None:
        """Adds a doubt if the person read another name than that of the id."""
        text = line.cells[column]
        if text and _plain(text) != _plain(name):
            self._file.doubts.add(
                OTHER_NAME, name=column, line=line.number, text=text[:100], other=name
            )


def _plain(name: str) -> str:
    return " ".join(without_marks(plain_text(name.strip(), is_name=True)).split())


def _names_of(about: str, texts: Iterable[str]) -> dict[int, str]:
    """The names of the rows of a kind with these ids."""
    model: Any = ABOUT[about]
    if model is None:
        return {}
    rows = model.objects.filter(pk__in=[int(text) for text in texts if is_id(text)])
    if model is Shelf:
        rows = rows.select_related("product", "variation__product")
    return {row.pk: str(row) for row in rows}


def _fill_ends(file: TableFile, rows: Sequence[Row], now: datetime) -> list[Row]:
    """The rows in order of their beginning. A row without an end ends where the next one about the
    same target begins. Rows that overlap, or begin together, become problems."""
    by_target: dict[tuple[int, Target], list[Row]] = defaultdict(list)
    for row in rows:
        by_target[row.of].append(row)
    found: list[Row] = []
    for some in by_target.values():
        ordered = sorted(some, key=lambda row: row.since or now)
        for row, following in zip(ordered, [*ordered[1:], None], strict=True):
            if following is not None and (following.since or now) == (row.since or now):
                problem = REPEATED_ROW % {"first": row.line.number}
                file.add_problem(following.line.number, problem)
            elif following is not None and row.until and row.until > (following.since or now):
                problem = OVERLAPS % {"other": following.line.number}
                file.add_problem(row.line.number, problem, "until")
            elif following is not None and row.until is None and not row.ends_now:
                found.append(_with_end(row, following.since))
                continue
            found.append(row)
    return found


def _with_end(row: Row, until: datetime | None) -> Row:
    return Row(**{**vars(row), "until": until})


class _Plan:
    """The changes of the rows. `counts` are the rows by what happens, and `found` the ids of the
    entries that they name."""

    def __init__(self, file: TableFile, rows: Sequence[Row], now: datetime) -> None:
        self._file, self._now = file, now
        self.counts = {"created": 0, "updated": 0, "unchanged": 0}
        self.found: set[int] = set()
        self.steps: list[Step] = []
        self._stored: dict[tuple[int, Target], list[PriceListEntry]] = defaultdict(list)
        lists = {row.price_list.pk for row in rows}
        for one in PriceListEntry.objects.filter(price_list__in=lists).order_by("valid_from"):
            self._stored[one.price_list_id, target_of(one)].append(one)
        lines: dict[int, int] = {}
        for row in rows:
            entry = self._entry_of(row)
            if entry is not None and lines.setdefault(entry.pk, row.line.number) != row.line.number:
                problem = REPEATED_ROW % {"first": lines[entry.pk]}
                file.add_problem(row.line.number, problem)
                continue
            self._add(row, entry)
        self.found = set(lines)

    def _entry_of(self, row: Row) -> PriceListEntry | None:
        """The stored entry that the row names: it begins then, or holds now."""
        stored = self._stored[row.of]
        if row.since is None:
            return next((one for one in stored if _holds(one, self._now)), None)
        same = [one for one in stored if _same_time(row.since, one.valid_from)]
        exact = [one for one in same if one.valid_from == row.since]
        return next(iter([*exact, *same]), None)

    def _add(self, row: Row, entry: PriceListEntry | None) -> None:
        if problem := self._problem(row, entry):
            self._file.add_problem(row.line.number, problem[1], problem[0])
            return
        same_terms = entry is not None and terms_of(entry) == row.terms
        same_end = not row.ends_now and entry is not None and _same_end(row, entry)
        if same_terms and same_end:
            self.counts["unchanged"] += 1
            return
        for name in ("price", "percent_off"):
            if not same_terms and row.line.cells[name]:
                self._file.doubt_number(row.line, name)
        self.counts["created" if entry is None else "updated"] += 1
        self.steps += self._steps(row, entry, same_terms=same_terms)

    def _problem(self, row: Row, entry: PriceListEntry | None) -> tuple[str, str] | None:
        """The column and what is wrong with the row."""
        now = self._now
        if entry is None:
            if row.ends_now:
                return "until", NOTHING_ENDS
            if row.since is not None and row.since < now:
                return "since", NOT_BEGUN_THEN
        elif entry.valid_until is not None and entry.valid_until <= now:
            is_same = terms_of(entry) == row.terms and _same_end(row, entry)
            return None if is_same and not row.ends_now else ("since", HAS_ENDED)
        elif row.ends_now and terms_of(entry) != row.terms:
            return "terms", ENDS_AS_IT_IS
        if row.until is not None and row.until <= now:
            return "until", IN_THE_PAST
        return None

    def _steps(self, row: Row, entry: PriceListEntry | None, *, same_terms: bool) -> Iterator[Step]:
        if entry is None:
            yield _step_to_add(row, row.since)
            return
        if row.ends_now:
            yield _step_to_end(row, entry)
        elif same_terms:
            is_shorter = row.until is not None and (
                entry.valid_until is None or row.until < entry.valid_until
            )
            yield _step_to_move_end(row, entry, first=is_shorter)
        elif entry.valid_from > self._now:
            yield _step_to_end(row, entry)
            yield _step_to_add(row, entry.valid_from)
        else:  # it ends when the new one begins
            yield _step_to_add(row, None)


def _step_to_add(row: Row, since: datetime | None) -> Step:
    def make(actor: User | str) -> None:
        add_price_entry(
            price_list_id=row.price_list.pk,
            target=row.target,
            terms=row.terms,
            valid_from=since,
            valid_until=row.until,
            actor=actor,
        )

    return Step(row, make)


def _step_to_end(row: Row, entry: PriceListEntry) -> Step:
    return Step(row, lambda actor: end_price_entry(entry_id=entry.pk, actor=actor), first=True)


def _step_to_move_end(row: Row, entry: PriceListEntry, *, first: bool) -> Step:
    def make(actor: User | str) -> None:
        move_end_of_price(entry_id=entry.pk, until=row.until, actor=actor)

    return Step(row, make, first=first)


def _holds(entry: PriceListEntry, now: datetime) -> bool:
    return entry.valid_from <= now and (entry.valid_until is None or entry.valid_until > now)


def _same_time(written: datetime, stored: datetime) -> bool:
    """Whether a time of a file is that of an entry. Spreadsheets may drop parts of a second."""
    return written == stored or written == stored.replace(microsecond=0)


def _same_end(row: Row, entry: PriceListEntry) -> bool:
    if row.until is None or entry.valid_until is None:
        return row.until is entry.valid_until
    return _same_time(row.until, entry.valid_until)


def target_of(entry: PriceListEntry) -> Target:
    return Target(entry.category_id, entry.product_id, entry.shelf_id, entry.topup_product_id)


def terms_of(entry: PriceListEntry) -> Terms:
    return Terms(entry.for_sale, entry.price, entry.percent_off)


# --- What changes --------------------------------------------------------------------------------


def _price_change(lists: Mapping[int, str], one: PriceChange) -> Change:
    """A change of what a thing costs, from a time on."""
    danger = ""
    if one.old is None or one.new is None:
        danger = _SWITCHED
    elif one.new < one.old:
        danger = _LOWER
    return Change(
        danger=danger,
        kind=one.key[0],
        id=str(one.key[1]),
        name=one.becomes.name,
        value="price",
        before=_money(one.old),
        after=_money(one.new),
        one_before=_exact(one.old_of_code),
        one_after=_exact(one.new_of_code),
        list=lists[one.price_list or 0],
        since="" if one.start is None else exact_time(one.start),
    )


def _money(price: Decimal | None) -> str:
    return "" if price is None else money_text(price)


def _exact(price: Decimal | None) -> str:
    return "" if price is None else f"{price:.4f}"


def _entries(lists: Collection[int], now: datetime) -> dict[int, PriceListEntry]:
    """The entries that had not ended at this time."""
    is_open = Q(valid_until=None) | Q(valid_until__gt=now)
    return PriceListEntry.objects.filter(is_open, price_list__in=lists).in_bulk()


def _entry_changes(
    lists: Mapping[int, str],
    names: Mapping[tuple[int, Target], str],
    before: Mapping[int, PriceListEntry],
    after: Mapping[int, PriceListEntry],
    now: datetime,
) -> Iterator[Change]:
    """The changes of the prices themselves, as the file names them."""
    by_target: dict[tuple[int, Target], list[PriceListEntry]] = defaultdict(list)
    for entry in before.values():
        by_target[entry.price_list_id, target_of(entry)].append(entry)
    period = now, database_now()
    begins = {
        (entry.price_list_id, target_of(entry), _time(entry.valid_from, period))
        for pk, entry in after.items()
        if pk not in before
    }

    def change(entry: PriceListEntry, value: str, old: str, new: str, since: str) -> Change:
        of = entry.price_list_id, target_of(entry)
        about = names.get(of, "")
        return Change(
            danger="",
            kind="price_list_entry",
            id="",
            name=about,
            value=value,
            before=old,
            after=new,
            list=lists[entry.price_list_id],
            since="" if since == NOW else since,
        )

    for pk, entry in sorted(after.items()):
        of = entry.price_list_id, target_of(entry)
        earlier = before.get(pk)
        if earlier is None:
            since = _time(entry.valid_from, period)
            covered = next((one for one in by_target[of] if _covers(one, entry.valid_from)), None)
            words, until = "", None
            if covered is not None:
                words, until = words_of(covered), covered.valid_until
            if words != words_of(entry) or until == entry.valid_until:
                yield change(entry, "terms", words, words_of(entry), since)
            if until != entry.valid_until:
                old, new = _time(until, period), _time(entry.valid_until, period)
                yield change(entry, "until", old, new, since)
        elif earlier.valid_until != entry.valid_until:
            end = _time(entry.valid_until, period)
            if (*of, end) not in begins:
                yield change(entry, "until", _time(earlier.valid_until, period), end, "")
    for pk, entry in sorted(before.items()):
        since = _time(entry.valid_from, period)
        if pk not in after and (entry.price_list_id, target_of(entry), since) not in begins:
            yield change(entry, "terms", words_of(entry), "", since)


def _covers(entry: PriceListEntry, time: datetime) -> bool:
    return entry.valid_from <= time and (entry.valid_until is None or entry.valid_until > time)


def _time(time: datetime | None, period: tuple[datetime, datetime]) -> str:
    """A time as a change names it. `period` is that of the import: what began or ended in it did so
    now."""
    if time is None:
        return ""
    return NOW if period[0] <= time <= period[1] else exact_time(time)


# --- Writing -------------------------------------------------------------------------------------


def words_of(entry: PriceListEntry) -> str:
    """The terms of an entry in the words of the file, such as `percent 12.50`."""
    number = entry.percent_off if entry.price is None else entry.price
    return f"{_word_of(entry)} {_money(number)}".strip()


def _word_of(entry: PriceListEntry) -> str:
    if not entry.for_sale:
        return "none"
    if entry.price is not None:
        return "fixed"
    return "regular" if entry.percent_off is None else "percent"


def _about(entry: PriceListEntry) -> str:
    names = (name for name in ABOUT if getattr(entry, f"{name}_id", None) is not None)
    return next(names, "everything")


def _name_of(entry: PriceListEntry) -> str:
    if entry.topup_product_id is not None:
        return str(getattr(entry, "topup_name", ""))
    return str(entry.shelf or entry.product or entry.category or "")


# What the list of prices writes into its files.
EXPORTED: Mapping[str, Callable[[Any], Any]] = {
    "price_list": lambda entry: entry.price_list_id,
    "price_list_name": lambda entry: entry.price_list.name,
    "about": _about,
    "id": lambda entry: getattr(entry, f"{_about(entry)}_id", None),
    "name": _name_of,
    "terms": _word_of,
    "price": lambda entry: entry.price,
    "percent_off": lambda entry: entry.percent_off,
    "currency": lambda entry: entry.price_list.currency,
    "since": lambda entry: exact_time(entry.valid_from),
    "until": lambda entry: "" if entry.valid_until is None else exact_time(entry.valid_until),
}
