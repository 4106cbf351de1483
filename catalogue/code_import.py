"""Importing voucher codes from a CSV file: a million rows in bounded memory, all or nothing.

Each row is sealed and copied into the table, where the unique digest refuses repeated codes (the
same code with other dashes or spaces is a repeated code). After such a refusal, the file is read a
second time to find the lines at fault. Codes are money: messages name the line and never show the
code.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path

from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.backends.utils import CursorWrapper

from audit.models import AuditAction
from audit.services import record_action
from catalogue.batches import BatchDetails, FileDigest, add_batch
from catalogue.code_file import Reader, Row, read_path
from catalogue.codes import code_digester, code_sealer
from catalogue.models import Batch, Shelf
from catalogue.selectors import find_shelf
from core.database.functions import remove_statement_timeout
from core.database.key_ring import check_keys
from core.inputs import SHOWN_PROBLEMS, InputProblem, raise_problems

ROWS_AT_ONCE = 1000
IMPORT_LOCK = "hashtext('catalogue.code_import')"
NO_CODES = "The file contains no codes."
NO_DETAILS = BatchDetails()

IN_STOCK_OR_SOLD = "SELECT digest FROM catalogue_vouchercode WHERE digest = ANY (%s)"


class RepeatedCode(InputProblem):
    """A code is twice in the file, or already in the table."""

    def __init__(self) -> None:
        super().__init__("A code is repeated, or is already in stock or sold.")


class ImportRunning(InputProblem):
    """Another import of codes is running."""

    def __init__(self) -> None:
        super().__init__("Another import of codes is running. Start this one when it has ended.")


def import_codes(
    *,
    product_id: int,
    path: Path,
    imported_by: str,
    variation_id: int | None = None,
    details: BatchDetails = NO_DETAILS,
) -> Batch:
    """Imports the codes of a CSV file as a batch, and returns it.

    Raises InputProblem with the lines at fault, or sealing.CannotOpen.
    """
    shelf = find_shelf(product_id=product_id, variation_id=variation_id)
    digest = FileDigest()
    return import_rows(
        shelf=shelf,
        read=partial(read_path, path, digest),
        actor=None,
        imported_by=imported_by,
        details=details,
        digest=digest,
    )


def import_rows(
    *,
    shelf: Shelf,
    read: Reader,
    actor: User | None,
    imported_by: str,
    details: BatchDetails,
    digest: FileDigest,
) -> Batch:
    """Imports the rows of a file as a batch, all or none, with an audit entry; returns the batch.

    `imported_by` is like `admin:anna`; `read` fills `digest`. Raises InputProblem with the lines at
    fault, or sealing.CannotOpen.
    """
    code_digester()  # may register an encryption key, which a rollback would undo
    try:
        with read("Codes") as rows, transaction.atomic():
            number = add_codes(shelf=shelf, rows=rows)
            batch = add_batch(
                shelf=shelf,
                number=number,
                details=details,
                digest=digest,
                imported_by=imported_by,
            )
            record_action(
                actor=actor, action=AuditAction.CODES_IMPORTED, on=shelf, note=f"Codes: {number}"
            )
    except RepeatedCode:
        check_rows(read=read)
        raise
    return batch


def check_rows(*, read: Reader) -> int:
    """Reads the rows of a file and imports nothing; returns how many codes it holds.

    Raises InputProblem with the lines at fault, as an import would, or sealing.CannotOpen.
    """
    with read("Looking for repeats") as rows:
        number = _refuse_repeats(rows)
    if not number:
        raise InputProblem(NO_CODES)
    return number


def add_codes(*, shelf: Shelf, rows: Iterable[Row | str]) -> int:
    """Adds codes to a shelf, to be sold in this order; returns how many.

    A row is a line number and its code, or a sentence that says what is wrong with a line. Raises
    InputProblem.

    Locks: a purchase locks the shelf before the codes (catalogue/sql/take_codes.sql); an import
    updates the shelf last. This cannot deadlock, because nobody sees the new codes before the
    commit. Purchases go on during the import and wait only between the UPDATE and the commit, so
    the foreign keys of all rows are checked before the UPDATE.
    """
    digest, seal = code_digester(), code_sealer()
    lines = (
        f"{shelf.pk}\t\\\\x{seal(code, key).hex()}\t\\\\x{key.hex()}\n"
        for code, key in ((code, digest(code.code)) for _, code in _good_rows(rows))
    )
    with transaction.atomic(), connection.cursor() as cursor:
        _begin_import(cursor)
        try:
            number = _copy(cursor, "catalogue_vouchercode (shelf_id, sealed, digest)", lines)
        except IntegrityError:
            raise RepeatedCode from None
        if not number:
            raise InputProblem(NO_CODES)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")  # as the caller left them
        cursor.execute(
            "UPDATE catalogue_shelf SET available_stock = available_stock + %s WHERE id = %s",
            [number, shelf.pk],
        )
    return number


def _begin_import(cursor: CursorWrapper) -> None:
    """Removes the statement timeout and refuses a second import while one is running.

    A million rows take longer than the API's timeout. Two imports that share codes would wait for
    each other, or deadlock.
    """
    remove_statement_timeout()
    cursor.execute(f"SELECT pg_try_advisory_xact_lock({IMPORT_LOCK})")
    if not cursor.fetchone()[0]:
        raise ImportRunning
    check_keys()  # again, under the lock: the key may have been retired since the process started


def wait_for_import() -> None:
    """Waits until a running import of codes has ended, and holds the next one up until the end of
    the open transaction."""
    remove_statement_timeout()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = 0")
        cursor.execute(f"SELECT pg_advisory_xact_lock({IMPORT_LOCK})")


def _good_rows(rows: Iterable[Row | str]) -> Iterator[Row]:
    """The rows. At the first faulty line, raises InputProblem with it and every later one."""
    remaining = iter(rows)
    for row in remaining:
        if isinstance(row, str):
            raise_problems(chain([row], (other for other in remaining if isinstance(other, str))))
            return
        yield row


def _copy(cursor: CursorWrapper, table: str, lines: Iterator[str]) -> int:
    """Copies lines in COPY's text format into a table; returns how many."""
    number = 0
    with connection.wrap_database_errors, cursor.copy(f"COPY {table} FROM STDIN") as copy:
        while batch := list(islice(lines, ROWS_AT_ONCE)):
            copy.write("".join(batch))
            number += len(batch)
    return number


def _refuse_repeats(rows: Iterable[Row | str]) -> int:
    """Raises InputProblem with the lines of repeated codes; returns the number of codes if there
    are none.

    SQLite holds the digests in a temporary file. The service's database role may not create a
    table, not even a temporary one (docs/decisions/0050-two-database-roles.md).
    """
    digest = code_digester()
    keyed = ((line, digest(code.code)) for line, code in _good_rows(rows))
    codes, number, problems = 0, 0, list[str]()
    with closing(sqlite3.connect("")) as seen:
        seen.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY, line INTEGER) WITHOUT ROWID")
        while batch := list(islice(keyed, ROWS_AT_ONCE)):
            codes += len(batch)
            for problem in _repeats(batch, seen):
                number += 1
                if number <= SHOWN_PROBLEMS:
                    problems.append(problem)
    if number:
        raise InputProblem(
            f"{number} repeated codes: {'; '.join(problems)}",
            problems=problems,
            more=number - len(problems),
        )
    return codes


def _repeats(batch: Sequence[tuple[int, bytes]], seen: sqlite3.Connection) -> Iterator[str]:
    """A sentence for each line whose digest is stored, or in `seen`; adds the others to `seen`."""
    with connection.cursor() as cursor:
        cursor.execute(IN_STOCK_OR_SOLD, [[digest for _, digest in batch]])
        stored = {bytes(digest) for (digest,) in cursor}
    for line, digest in batch:
        if digest in stored:
            yield f"line {line} is already in stock or sold"
        added = seen.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", [digest, line])
        if not added.rowcount:
            first = seen.execute("SELECT line FROM seen WHERE digest = ?", [digest]).fetchone()
            yield f"line {line} repeats line {first[0]}"
