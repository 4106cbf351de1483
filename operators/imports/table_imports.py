"""Imports of tables whose rows are compared with what is stored, such as prices in lists.

A check carries everything out and rolls back. Rows that a file does not have stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext_noop

from catalogue.imports.catalogue_import import at_place
from core.files.cells import NumberText
from core.files.doubts import Doubts, doubt_id, refuse_doubts
from core.files.tables import WRONG_LINE, Columns, read_bytes
from core.inputs import KEPT_PROBLEMS, InputProblem, raise_problems
from core.numbers import other_reading, read_number
from operators.imports.catalogue_changes import Change, as_stored, rank_of
from operators.imports.catalogue_table import TWO_NUMBERS, WRONG_CELL
from operators.imports.low_prices import (
    changing_prices,
    lock_prices,
    two_people_lower_rates,
    two_people_set_low_prices,
)

MOST_ROWS = 5_000  # of a file

# What is wrong with a file. Imports store it in English, and pages translate it.
MANY_ROWS = gettext_noop("The file has more than %(most)s rows. Split it into smaller ones.")
NO_ROWS = gettext_noop("The file has no rows below the names of the columns.")
REPEATED_ROW = gettext_noop("repeats line %(first)s")
WRONG_TABLE_IMPORTS = (MANY_ROWS, NO_ROWS, REPEATED_ROW)


class Line(NamedTuple):
    """A line of a file: its number, and its texts by name."""

    number: int
    cells: dict[str, str]


@dataclass(frozen=True)
class TableFile:
    """A file that was read. Its rows may add problems and doubts."""

    lines: list[Line]
    problems: list[str]
    doubts: Doubts
    sheet: str

    def add_problem(self, line: int, problem: str, name: str = "") -> None:
        """Adds a problem of a line, or of its value with this name."""
        template, said = (WRONG_CELL, at_place(name, problem)) if name else (WRONG_LINE, problem)
        self.problems.append(template % {"line": line, "problem": said})

    def refuse(self) -> None:
        """Raises InputProblem if there are problems."""
        raise_problems(self.problems, kept=KEPT_PROBLEMS)

    def doubt_number(self, line: Line, name: str) -> None:
        """Adds a doubt if the value has a point that may be between thousands."""
        text = line.cells[name]
        if not isinstance(text, NumberText) and (other := other_reading(text)):
            one = f"{read_number(text).normalize():f}"
            self.doubts.add(
                TWO_NUMBERS, name=name, line=line.number, text=text, one=one, other=other
            )


@dataclass(frozen=True)
class Outcome:
    """The changes of a file: rows by kind, and each change. `left` counts the rows that are stored,
    not in the file, and stay as they are."""

    counts: dict[str, dict[str, int]]
    changes: list[Change]
    left: int


@dataclass(frozen=True)
class TableKind:
    """A kind of table. `name` is for the request for a second person. `apply` changes the rows, in
    a transaction; the other argument is who does it. `lists` finds the ids of the price lists whose
    entries it may change; None for a table of exchange rates."""

    name: str
    columns: Columns
    apply: Callable[[TableFile, User | str], Outcome]
    lists: Callable[[TableFile], Collection[int]] | None = None


class ChangesMoved(Exception):
    """An import would change something else than staff confirmed. Nothing was changed. `result` is
    what would change."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__("Something else would change.")
        self.result = result


def check_table(kind: TableKind, content: bytes) -> dict[str, Any]:
    """The changes that an import would make now. Raises InputProblem."""
    file = _read(kind, content)
    with changing_prices():
        lock_prices()
        result = _result(file, kind.apply(file, "check"))
        transaction.set_rollback(True)
    return result


def import_table(
    kind: TableKind,
    content: bytes,
    *,
    actor: User | str,
    seen: str | None = None,
    confirmed: Collection[str] = (),
) -> dict[str, Any]:
    """Imports everything or nothing, and returns what it changed.

    `seen` is the digest of the changes that the person confirmed. Raises InputProblem, Doubtful
    unless the ids of all doubts are `confirmed`, ChangesMoved, and LowPrices if some prices or
    rates need a second person.
    """
    file, person = _read(kind, content), actor if isinstance(actor, User) else None
    # The same prices or rates in another file may last longer, so two people agree on the file.
    about = f"{kind.name} of file {sha256(content).hexdigest()[:16]}"
    with (
        two_people_lower_rates(actor=person, about=about)
        if kind.lists is None
        else two_people_set_low_prices(lists=kind.lists(file), actor=person, about=about)
    ):
        result = _result(file, kind.apply(file, actor))
        refuse_doubts(result["doubts"], confirmed)
        if seen is not None and result["digest"] != seen:
            raise ChangesMoved(result)
    return result


def check_path(kind: TableKind, path: Path) -> dict[str, Any]:
    """`check_table` for the shell: the doubts are by their ids."""
    return _for_shell(check_table(kind, _content_of(path)))


def import_path(
    kind: TableKind, path: Path, *, actor: str, confirmed: Collection[str]
) -> dict[str, Any]:
    """`import_table` for the shell."""
    return _for_shell(import_table(kind, _content_of(path), actor=actor, confirmed=confirmed))


def _content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputProblem(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError:  # the path contains NUL
        raise InputProblem("Cannot read the file.") from None


def _for_shell(result: dict[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in result.items() if name not in ("digest", "counts")}
    doubts = {doubt_id(one): one for one in result["doubts"]}
    return {**result["counts"], **shown, "doubts": doubts}


def _read(kind: TableKind, content: bytes) -> TableFile:
    table = read_bytes(content, kind.columns)
    file = TableFile([], [], table.doubts, table.sheet)
    for line, cells, wrong in table.rows:
        for problem in wrong.values():
            file.add_problem(line, problem)
        if not wrong:
            texts = dict.fromkeys(kind.columns.known, "")
            texts |= zip(table.names, cells, strict=False)
            file.lines.append(Line(line, texts))
        if len(file.lines) > MOST_ROWS:
            raise InputProblem(MANY_ROWS % {"most": f"{MOST_ROWS:,}"})
        if len(file.problems) >= KEPT_PROBLEMS:
            break
    if not file.lines and not file.problems:
        raise InputProblem(NO_ROWS)
    return file


def _result(file: TableFile, outcome: Outcome) -> dict[str, Any]:
    file.refuse()
    changes = sorted(outcome.changes, key=rank_of)
    return {
        "counts": outcome.counts,
        "left": outcome.left,
        "sheet": file.sheet,
        "doubts": file.doubts.sentences(),
        **as_stored(changes),
        "digest": sha256(orjson.dumps([asdict(one) for one in changes])).hexdigest(),
    }
