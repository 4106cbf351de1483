"""Reading files of voucher codes, CSV or XLSX: a million rows in bounded memory.

Messages name the line at fault and never show a code. Reading goes on after a mistake, so that one
check finds all of them.
"""

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

from catalogue.imports.workbook import MAGIC, is_workbook, read_workbook
from catalogue.stock.batches import FileDigest
from catalogue.stock.codes import Code, normal_form
from core.files.csv_cells import WRONG_CSV, read_rows
from core.inputs import InputProblem

COLUMNS = ("code", "serial_number", "pin_code")
MAX_COLUMNS = 8  # of a workbook; more than a row may have
DELIMITERS = ",;\t"
MAX_PART_LENGTH = 500
MAX_LINE_BYTES = 16 * 1024
TOO_LONG = "\ud800\n"  # read in place of such a line; no file can contain it
NO_TEXT = re.compile("[\ud800-\udfff]")  # stand for a long line, and for bytes that are not UTF-8
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
            yield from _read_row(row[: max(last, len(columns))], columns, line)
        else:
            columns = _read_header([name for name in row if name])
    advance(unread)
    if not columns:
        _read_header([])


def _parse_text(file: BinaryIO, advance: Advance, digest: FileDigest) -> Iterator[Row | str]:
    lines = _read_lines(file, advance, digest)
    first = next(lines, "")
    rows = read_rows(chain([first], lines), max(DELIMITERS, key=first.count))
    line, header = next(rows, (1, []))
    if problem := header if isinstance(header, str) else text_problem("".join(header)):
        yield WRONG_LINE % {"line": line, "problem": problem}
        return
    columns = _read_header(header)
    for line, row in rows:
        if isinstance(row, str):
            yield WRONG_LINE % {"line": line, "problem": row}
        elif row:
            yield from _read_row([part.strip() for part in row], columns, line)


def _read_lines(file: BinaryIO, advance: Advance, digest: FileDigest) -> Iterator[str]:
    """The lines. TOO_LONG stands for a line that is too long, and a surrogate for a byte that is
    not UTF-8."""
    encoding, read, is_start = "utf-8-sig", 0, True
    while line := file.readline(MAX_LINE_BYTES + 1):
        is_end, is_long = line.endswith(b"\n"), len(line) > MAX_LINE_BYTES
        if is_start:
            yield TOO_LONG if is_long else line.decode(encoding, "surrogateescape")
        is_start = is_end or not is_long
        encoding = "utf-8"
        digest.add(line)
        read += len(line)
        if read >= SHOWN_BYTES:
            advance(read)
            read = 0
    advance(read)


def text_problem(text: str) -> str:
    """The mistake in the bytes that became this text; empty if there is none."""
    if not NO_TEXT.search(text):
        return ""
    return LONG_LINE % {"most": MAX_LINE_BYTES} if TOO_LONG[0] in text else NOT_UTF_8


def _read_header(row: Sequence[str]) -> list[str]:
    columns = [re.sub("[ -]+", "_", name.strip().lower()) for name in row]
    if "code" not in columns or set(columns) - set(COLUMNS) or len(columns) > len(set(columns)):
        raise InputProblem(WRONG_HEADER)
    return columns


def _read_row(row: Sequence[str], columns: Sequence[str], line: int) -> list[Row | str]:
    """The code of a row, or a sentence for each mistake. If the code itself is right, it follows
    alone, so that its repeats are found."""
    parts = dict(zip(columns, row, strict=False))
    problems = _problems_of(row, columns, parts)
    if not problems:
        return [(line, Code(**parts))]
    sentences = [WRONG_LINE % {"line": line, "problem": one} for one in problems.values()]
    alone = [] if "" in problems or "code" in problems else [(line, Code(parts["code"]))]
    return [*sentences, *alone]


def _problems_of(
    row: Sequence[str], columns: Sequence[str], parts: dict[str, str]
) -> dict[str, str]:
    """The mistakes of a row by the name of the part; the name of the whole row is empty."""
    together = "".join(row)
    is_printable = together.isprintable()
    if not is_printable and (problem := text_problem(together)):
        return {"": problem}
    if len(row) != len(columns):
        template = ONE_COLUMN if len(row) == 1 else WRONG_COLUMNS
        return {"": template % {"number": len(row), "expected": len(columns)}}
    problems: dict[str, str] = {}
    suspect = len(together) > MAX_PART_LENGTH or not is_printable
    for name, part in parts.items() if suspect else ():
        if len(part) > MAX_PART_LENGTH:
            problems[name] = LONG_PART % {"name": name, "most": MAX_PART_LENGTH}
        elif not part.isprintable():
            problems[name] = UNPRINTABLE_PART % {"name": name}
    if not normal_form(parts["code"]):
        problems.setdefault("code", EMPTY_CODE)
    return problems
