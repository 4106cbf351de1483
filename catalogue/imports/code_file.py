"""Reading files of voucher codes, CSV or XLSX: a million rows in bounded memory.

Messages name the line at fault and never show a code. Reading goes on after a mistake, so that one
check finds all of them.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from io import BufferedReader, RawIOBase
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

from django.utils.translation import gettext_noop
from tqdm import tqdm

from catalogue.stock.batches import FileDigest
from catalogue.stock.codes import Code, normal_form
from core.files.tables import WRONG_LINE, Columns, Table, open_table
from core.files.tables import Row as TableRow
from core.files.xml_parts import Limits
from core.inputs import InputProblem

COLUMNS = Columns(
    known=tuple(one.name for one in fields(Code)),
    required=("code",),
    keys=frozenset(one.name for one in fields(Code)),
    are_secret=True,
    # A million codes with serial number and PIN have 13 million elements, in 250 MB.
    most=Limits(elements=13_500_000, unpacked_bytes=320 * 1024 * 1024),
)
MAX_PART_LENGTH = 500
PLAIN_STARTS = frozenset(ascii_letters + digits)  # of codes whose normal form is not empty

# What is wrong with a line. Imports store it in English, and pages translate it.
LONG_PART = gettext_noop("%(name)s is longer than %(most)s characters")
EMPTY_CODE = gettext_noop("the code is empty")
WRONG_LINES = (LONG_PART, EMPTY_CODE)

Row = tuple[int, Code]
# Opens a file and reads its rows from the start. The argument names the work that a user waits for.
Reader = Callable[[str], AbstractContextManager["CodeTable"]]
Advance = Callable[[int], object]  # called with the number of bytes read since the last call


@dataclass
class CodeTable:
    """The rows of a file of codes: each is a line number and its code, or a sentence that says what
    is wrong with a line. `table` has the name of the sheet and the doubts."""

    rows: Iterator[Row | str]
    table: Table


@contextmanager
def read_path(path: Path, digest: FileDigest, doing: str) -> Iterator[CodeTable]:
    """The rows of a file, with a progress bar on stderr if reading takes over a second.

    Raises InputProblem if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size or None
            with tqdm(total=size, unit="B", unit_scale=True, desc=doing, delay=1) as progress:
                yield _parse_rows(file, progress.update, digest)
    except OSError as error:
        raise InputProblem(f"Cannot read {str(path)!r}: {error.strerror}.") from None


@contextmanager
def read_pieces(
    pieces: Callable[[], Iterator[bytes]], advance: Advance, digest: FileDigest, doing: str
) -> Iterator[CodeTable]:
    """The rows of a file that comes in pieces. `partial(read_pieces, pieces, advance, digest)` is a
    Reader."""
    with BufferedReader(_Pieces(pieces())) as file:
        yield _parse_rows(file, advance, digest)


class _Pieces(RawIOBase):
    """A file whose content comes in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def _parse_rows(file: "BufferedReader[Any]", advance: Advance, digest: FileDigest) -> CodeTable:
    digest.begin()
    table = open_table(file, COLUMNS, advance=advance, watch=digest.add)
    return CodeTable(_codes(table), table)


def _codes(table: Table) -> Iterator[Row | str]:
    names, is_plain = table.names, table.names == list(COLUMNS.known)[: len(table.names)]
    place = names.index("code")
    for row in table.rows:
        cells = row.cells
        is_long = sum(map(len, cells)) > MAX_PART_LENGTH
        if row.problems or is_long or _is_empty(cells[place]):
            yield from _wrong_row(row, names)
        elif is_plain:
            yield row.line, Code(*cells)
        else:
            yield row.line, Code(**dict(zip(names, cells, strict=True)))


def _is_empty(code: str) -> bool:
    return code[:1] not in PLAIN_STARTS and not normal_form(code)


def _wrong_row(row: TableRow, names: list[str]) -> list[Row | str]:
    """A sentence for each mistake. If the code itself is right, it follows alone, so that its
    repeats are found."""
    parts = dict(zip(names, row.cells, strict=False))
    problems = dict(row.problems)
    for name, part in parts.items():
        if len(part) > MAX_PART_LENGTH:
            problems[name] = LONG_PART % {"name": name, "most": MAX_PART_LENGTH}
    if parts and "code" not in problems and not normal_form(parts["code"]):
        problems["code"] = EMPTY_CODE
    if not problems:
        return [(row.line, Code(**parts))]
    sentences = [WRONG_LINE % {"line": row.line, "problem": one} for one in problems.values()]
    alone = [] if "" in problems or "code" in problems else [(row.line, Code(parts["code"]))]
    return [*sentences, *alone]
