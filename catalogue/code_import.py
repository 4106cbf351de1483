"""Voucher codes from a file onto a shelf: a million rows in bounded memory, all or nothing.

A code is money, so a problem is named by its line and the code itself is never shown.

    1 stage   every row is sealed and streams into a temporary table
    2 check   repeats, within the file and of all that is or was in stock, by their digests
    3 stock   the rows move over, and the shelf counts them
"""

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from tqdm import tqdm

from catalogue.codes import Code, digest_code, digest_key, seal_code
from catalogue.models import Shelf
from config.inputs import SHOWN_PROBLEMS, InputProblem, refuse

COLUMNS = ("code", "serial_number", "pin_code")
MAX_PART_LENGTH = 500
MAX_LINE_BYTES = 16 * 1024
ROWS_AT_ONCE = 1000

Row = tuple[int, Code]

REPEATS_IN_FILE = """
    WITH repeated AS (
        SELECT digest, min(line) AS first FROM staged_code GROUP BY digest HAVING count(*) > 1
    )
    SELECT line, first, count(*) OVER ()
      FROM staged_code JOIN repeated USING (digest)
     WHERE line <> first ORDER BY line LIMIT %s
"""
REPEATS_OF_STOCK = """
    SELECT line, count(*) OVER ()
      FROM staged_code
     WHERE EXISTS (SELECT FROM catalogue_vouchercode code WHERE code.digest = staged_code.digest)
     ORDER BY line LIMIT %s
"""


def import_codes(
    *, product_id: int, path: Path, variation_id: int | None = None
) -> tuple[Shelf, int]:
    """Puts the codes of a CSV file on a shelf; returns the shelf as it is then, and how many.

    Raises InputProblem with the lines at fault, and sealing.CannotOpen.
    """
    shelf = find_shelf(product_id=product_id, variation_id=variation_id)
    try:
        with path.open("rb") as file, _progress(file) as progress:
            number = add_codes(shelf=shelf, rows=_read_rows(file, progress))
    except (OSError, ValueError) as error:
        if isinstance(error, InputProblem):
            raise
        cause = error.strerror if isinstance(error, OSError) else "not a path"
        raise InputProblem(f"Cannot read {str(path)!r}: {cause}.") from None
    shelf.refresh_from_db()
    return shelf, number


def find_shelf(*, product_id: int, variation_id: int | None) -> Shelf:
    """A product's own shelf, or that of its variation. Raises InputProblem."""
    shelf = Shelf.objects.filter(product=product_id, variation=variation_id).first()
    if shelf is None:
        what = f"product {product_id}"
        if variation_id is not None:
            what = f"variation {variation_id} of {what}"
        raise InputProblem(f"There is no {what}.")
    return shelf


def add_codes(*, shelf: Shelf, rows: Iterable[Row | str]) -> int:
    """Puts codes on a shelf, to be sold in this order; returns how many.

    A row is a line number and its code, or a sentence on what is wrong with a line. Raises
    InputProblem.

    Locks: a sale takes the shelf's row first and codes after it (catalogue/sql/take_codes.sql).
    Here the shelf comes last. Nobody can see the new codes before the commit, so nobody can hold
    one and wait for us, and sales of this shelf go on while a million rows come in. From the UPDATE
    on they wait for the commit; so the foreign keys of all the rows are checked before it.
    """
    key = digest_key()
    with transaction.atomic(), connection.cursor() as cursor:
        _begin(cursor)
        _stage(cursor, rows, key)
        _refuse_repeats(cursor)
        cursor.execute(
            "INSERT INTO catalogue_vouchercode (shelf_id, sealed, digest)"
            " SELECT %s, sealed, digest FROM staged_code ORDER BY line",
            [shelf.pk],
        )
        number: int = cursor.rowcount
        cursor.execute("DROP TABLE staged_code")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")  # as whoever called us found them
        cursor.execute(
            "UPDATE catalogue_shelf SET available_stock = available_stock + %s WHERE id = %s",
            [number, shelf.pk],
        )
    return number


def _begin(cursor: CursorWrapper) -> None:
    cursor.execute("SET LOCAL statement_timeout = 0")
    cursor.execute("SET LOCAL work_mem = '64MB'")
    # One import at a time: two that share codes would wait for each other, or deadlock.
    cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('catalogue.code_import'))")
    if not cursor.fetchone()[0]:
        raise InputProblem("Another import of codes is running; start this one when it is done.")
    cursor.execute("CREATE TEMPORARY TABLE staged_code (line integer, digest bytea, sealed bytea)")


def _stage(cursor: CursorWrapper, rows: Iterable[Row | str], key: bytes) -> None:
    remaining = iter(rows)
    batch: list[str] = []
    total = 0
    with cursor.copy("COPY staged_code FROM STDIN") as copy:
        for row in remaining:
            if isinstance(row, str):  # nothing will be imported: only look for more of them
                refuse(chain([row], (other for other in remaining if isinstance(other, str))))
                return
            line, code = row
            digest = digest_code(code.code, key=key)
            batch.append(f"{line}\t\\\\x{digest.hex()}\t\\\\x{seal_code(code).hex()}\n")
            total += 1
            if total % ROWS_AT_ONCE == 0:
                copy.write("".join(batch))
                batch.clear()
        copy.write("".join(batch))
    if not total:
        raise InputProblem("The file holds no codes.")


def _refuse_repeats(cursor: CursorWrapper) -> None:
    cursor.execute("ANALYZE staged_code")
    cursor.execute(REPEATS_IN_FILE, [SHOWN_PROBLEMS])
    in_file = cursor.fetchall()
    cursor.execute(REPEATS_OF_STOCK, [SHOWN_PROBLEMS])
    of_stock = cursor.fetchall()
    shown = [(line, f"line {line} repeats line {first}") for line, first, _ in in_file]
    shown += [(line, f"line {line} is in stock already, or sold") for line, _ in of_stock]
    total = sum(rows[0][-1] for rows in (in_file, of_stock) if rows)
    if total:
        sentences = "; ".join(sentence for _, sentence in sorted(shown)[:SHOWN_PROBLEMS])
        raise InputProblem(f"{total} repeated codes: {sentences}")


def _progress(file: BinaryIO) -> "tqdm[Any]":
    """A bar on stderr, for an import that takes longer than a moment."""
    size = os.fstat(file.fileno()).st_size
    return tqdm(total=size or None, unit="B", unit_scale=True, desc="Codes", delay=1)


def _read_rows(file: BinaryIO, progress: "tqdm[Any]") -> Iterator[Row | str]:
    reader = csv.reader(_read_lines(file, progress), strict=True)
    try:
        columns = _read_header(next(reader, []))
        for row in reader:
            if row:
                yield _read_row(row, columns, reader.line_num)
    except _BadLine as error:  # where the line ends is unclear, so nothing after it makes sense
        yield f"line {reader.line_num + 1}: {error}"
    except csv.Error as error:
        yield f"line {reader.line_num}: {error}"


class _BadLine(Exception):
    pass


def _read_lines(file: BinaryIO, progress: "tqdm[Any]") -> Iterator[str]:
    encoding = "utf-8-sig"
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise _BadLine(f"longer than {MAX_LINE_BYTES} bytes")
        try:
            yield line.decode(encoding)
        except UnicodeDecodeError:
            raise _BadLine("not UTF-8") from None
        encoding = "utf-8"
        progress.update(len(line))


def _read_header(row: Sequence[str]) -> list[str]:
    columns = [name.strip().lower() for name in row]
    if "code" not in columns or set(columns) - set(COLUMNS) or len(columns) > len(set(columns)):
        raise InputProblem(
            "The first line names the columns: code, and if there are any serial_number and"
            " pin_code, with commas between them."
        )
    return columns


def _read_row(row: Sequence[str], columns: Sequence[str], line: int) -> Row | str:
    if len(row) != len(columns):
        return f"line {line}: {len(row)} columns instead of {len(columns)}"
    parts = dict(zip(columns, map(str.strip, row), strict=True))
    for name, part in parts.items():
        if len(part) > MAX_PART_LENGTH:
            return f"line {line}: {name} is longer than {MAX_PART_LENGTH} characters"
        if not part.isprintable():
            return f"line {line}: {name} holds characters that cannot be printed"
    if not parts["code"]:
        return f"line {line}: the code is empty"
    return line, Code(**parts)
