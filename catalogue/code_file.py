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

from tqdm import tqdm

from catalogue.batches import FileDigest
from catalogue.codes import Code, normal_form
from catalogue.workbook import MAGIC, is_workbook, read_workbook
from core.inputs import InputProblem

COLUMNS = ("code", "serial_number", "pin_code")
MAX_COLUMNS = 8  # of a workbook; more than a row may have
DELIMITERS = ",;\t"
MAX_PART_LENGTH = 500
MAX_LINE_BYTES = 16 * 1024
SHOWN_BYTES = 64 * 1024  # the progress of reading is shown in such steps

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
            yield f"line {line}: {row}"
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
        yield f"line 1: {error}"
        return
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    try:
        columns = _read_header(next(reader, []))
        for row in reader:
            if row:
                yield _read_row([part.strip() for part in row], columns, reader.line_num)
    except _BadLine as error:  # unclear where the line ends: later lines cannot be read
        yield f"line {reader.line_num + 1}: {error}"
    except csv.Error as error:
        yield f"line {reader.line_num}: {error}"


class _BadLine(Exception):
    pass


def _read_lines(file: BinaryIO, advance: Advance, digest: FileDigest) -> Iterator[str]:
    encoding, read = "utf-8-sig", 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise _BadLine(f"longer than {MAX_LINE_BYTES} bytes")
        try:
            yield line.decode(encoding)
        except UnicodeDecodeError:
            raise _BadLine("not UTF-8") from None
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
        raise InputProblem(
            "The first line names the columns, separated by commas, semicolons or tabs: code, and"
            " optionally serial_number and pin_code."
        )
    return columns


def _read_row(row: Sequence[str], columns: Sequence[str], line: int) -> Row | str:
    if len(row) != len(columns):
        return f"line {line}: {len(row)} column{'s' * (len(row) != 1)} instead of {len(columns)}"
    parts = dict(zip(columns, row, strict=True))
    together = "".join(row)
    suspect = len(together) > MAX_PART_LENGTH or not together.isprintable()
    for name, part in parts.items() if suspect else ():
        if len(part) > MAX_PART_LENGTH:
            return f"line {line}: {name} is longer than {MAX_PART_LENGTH} characters"
        if not part.isprintable():
            return f"line {line}: {name} contains characters that cannot be printed"
    if not normal_form(parts["code"]):
        return f"line {line}: the code is empty"
    return line, Code(**parts)
