"""Reading files of voucher codes, CSV or XLSX: a million rows in bounded memory.

Messages name the line at fault and never show a code.
"""

import csv
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import BufferedReader, RawIOBase
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from django.utils.translation import gettext_noop
from tqdm import tqdm

from catalogue.batches import FileDigest
from catalogue.codes import Code, normal_form
from catalogue.workbook import MAGIC, is_workbook, read_workbook
from core.csv_cells import WRONG_CSV, csv_problem
from core.inputs import InputProblem

COLUMNS = ("code", "serial_number", "pin_code")
MAX_COLUMNS = 8  # of a workbook; more than a row may have
DELIMITERS = ",;\t"
MAX_PART_LENGTH = 500
MAX_LINE_BYTES = 16 * 1024
SHOWN_BYTES = 64 * 1024  # the progress of reading is shown in such steps

# What is wrong with a file or a line. Imports store it in English, and pages translate it.
WRONG_LINE = gettext_noop("line %(line)s: %(problem)s")
WRONG_HEADER = gettext_noop(
    "The first line names the columns, separated by commas, semicolons or tabs: code, and"
    " optionally serial_number and pin_code."
)
ONE_COLUMN = gettext_noop("1 column instead of %(expected)s")
WRONG_COLUMNS = gettext_noop("%(number)s columns instead of %(expected)s")
LONG_PART = gettext_noop("%(name)s is longer than %(most)s characters")
UNPRINTABLE_PART = gettext_noop("%(name)s contains characters that cannot be printed")
EMPTY_CODE = gettext_noop("the code is empty")
LONG_LINE = gettext_noop("longer than %(most)s bytes")
NOT_UTF_8 = gettext_noop("not UTF-8")
WRONG_LINES = (
    *(WRONG_LINE, WRONG_HEADER, ONE_COLUMN, WRONG_COLUMNS, LONG_PART, UNPRINTABLE_PART),
    *(EMPTY_CODE, LONG_LINE, NOT_UTF_8, *WRONG_CSV),
)

Row = tuple[int, Code]
# Opens a file and reads its rows from the start. The argument names the work that a user waits for.
Reader = Callable[[str], AbstractContextManager[Iterator[Row | str]]]
Advance = Callable[[int], object]  # called with the number of bytes read since the last call


@contextmanager
def read_path(path: Path, digest: FileDigest, doing: str) -> Iterator[Iterator[Row | str]]:
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
) -> Iterator[Iterator[Row | str]]:
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


def _parse_rows(
    file: "BufferedReader[Any]", advance: Advance, digest: FileDigest
) -> Iterator[Row | str]:
    """Each row is a line number and its code, or a sentence that says what is wrong with a line."""
    digest.begin()
    if is_workbook(file.peek(len(MAGIC))):
        return _parse_workbook(file, advance, digest)
    return _parse_text(file, advance, digest)


def _parse_workbook(file: BinaryIO, advance: Advance, digest: FileDigest) -> Iterator[Row | str]:
    content, rows, number = read_workbook(file, columns=MAX_COLUMNS)
    digest.add(content)
    unread, share = len(content), len(content) // number + 1
    columns: list[str] = []
    for line, row in rows:
        advance(min(share, unread))
        unread -= min(share, unread)
        if isinstance(row, str):
            yield WRONG_LINE % {"line": line, "problem": row}
        elif columns:
            last = max(place for place, part in enumerate(row, start=1) if part)
            yield _read_row(row[: max(last, len(columns))], columns, line)
        else:
            columns = _read_header([name for name in row if name])
    advance(unread)
    if not columns:
        _read_header([])


def _parse_text(file: BinaryIO, advance: Advance, digest: FileDigest) -> Iterator[Row | str]:
    lines = _read_lines(file, advance, digest)
    try:
        first = next(lines, "")
    except _BadLine as error:
        yield WRONG_LINE % {"line": 1, "problem": error}
        return
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    try:
        columns = _read_header(next(reader, []))
        for row in reader:
            if row:
                yield _read_row([part.strip() for part in row], columns, reader.line_num)
    except _BadLine as error:  # unclear where the line ends: later lines cannot be read
        yield WRONG_LINE % {"line": reader.line_num + 1, "problem": error}
    except csv.Error as error:
        yield WRONG_LINE % {"line": reader.line_num, "problem": csv_problem(error)}


class _BadLine(Exception):
    pass


def _read_lines(file: BinaryIO, advance: Advance, digest: FileDigest) -> Iterator[str]:
    encoding, read = "utf-8-sig", 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise _BadLine(LONG_LINE % {"most": MAX_LINE_BYTES})
        try:
            yield line.decode(encoding)
        except UnicodeDecodeError:
            raise _BadLine(NOT_UTF_8) from None
        encoding = "utf-8"
        digest.add(line)
        read += len(line)
        if read >= SHOWN_BYTES:
            advance(read)
            read = 0
    advance(read)


def _read_header(row: Sequence[str]) -> list[str]:
    columns = [re.sub("[ -]+", "_", name.strip().lower()) for name in row]
    if "code" not in columns or set(columns) - set(COLUMNS) or len(columns) > len(set(columns)):
        raise InputProblem(WRONG_HEADER)
    return columns


def _read_row(row: Sequence[str], columns: Sequence[str], line: int) -> Row | str:
    parts = dict(zip(columns, row, strict=False))
    if problem := _problem_of(row, columns, parts):
        return WRONG_LINE % {"line": line, "problem": problem}
    return line, Code(**parts)


def _problem_of(row: Sequence[str], columns: Sequence[str], parts: dict[str, str]) -> str:
    if len(row) != len(columns):
        template = ONE_COLUMN if len(row) == 1 else WRONG_COLUMNS
        return template % {"number": len(row), "expected": len(columns)}
    together = "".join(row)
    suspect = len(together) > MAX_PART_LENGTH or not together.isprintable()
    for name, part in parts.items() if suspect else ():
        if len(part) > MAX_PART_LENGTH:
            return LONG_PART % {"name": name, "most": MAX_PART_LENGTH}
        if not part.isprintable():
            return UNPRINTABLE_PART % {"name": name}
    if not normal_form(parts["code"]):
        return EMPTY_CODE
    return ""
