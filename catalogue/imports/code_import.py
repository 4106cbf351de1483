"""Importing voucher codes from a CSV or XLSX file: a million rows in bounded memory, all or none.

A file is checked before it is imported: in the browser by a person, and in the shell by the command
itself. Each row is sealed and copied into the table. Its digest refuses a repeated code, also one
with other dashes or spaces. After a refusal, the file is read again to find all lines at fault.
Codes are money: messages name the line and never show the code.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path

from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.models import AuditAction
from audit.services import record_action
from catalogue.imports.code_file import Reader, Row, read_path
from catalogue.imports.number_columns import NumberColumns
from catalogue.models import Batch, Shelf
from catalogue.selectors import find_shelf
from catalogue.stock.batches import BatchDetails, FileDigest, add_batch
from catalogue.stock.codes import HALF_BYTES, Code, code_digester, code_sealer
from catalogue.stock.holds import note_of_codes
from core.database.functions import remove_statement_timeout
from core.database.key_ring import check_keys
from core.files.doubts import refuse_doubts
from core.files.sheet_rows import MAX_ROWS
from core.inputs import KEPT_PROBLEMS, InputProblem, raise_problems

ROWS_AT_ONCE = 1000
SAMPLE = 3
IMPORT_LOCK = "hashtext('catalogue.code_import')"
NO_DETAILS = BatchDetails()

# What is wrong with a file. Imports store it in English, and pages translate it.
NO_CODES = gettext_noop("The file contains no codes.")
REPEATED_CODE = gettext_noop("A code is repeated, or is already in stock or sold.")
REPEATED_LINE = gettext_noop("line %(line)s repeats line %(first)s")
STORED_LINE = {
    "in stock": gettext_noop("the code of line %(line)s is already in stock, of %(shelf)s"),
    "sold": gettext_noop("the code of line %(line)s is already sold, of %(shelf)s"),
    "held": gettext_noop("the code of line %(line)s is already held, of %(shelf)s"),
}
WRONG_FILES = (NO_CODES, REPEATED_CODE, REPEATED_LINE, *STORED_LINE.values())

STORED = """
    SELECT code.digest, shelf_id, CASE WHEN order_id IS NOT NULL THEN 'sold'
                                  WHEN hold_id IS NOT NULL THEN 'held' ELSE 'in stock' END
      FROM catalogue_codedigest AS stored JOIN catalogue_vouchercode AS code ON code.id = code_id
     WHERE stored.digest = ANY (%s::uuid[])
"""


@dataclass(frozen=True)
class CheckedFile:
    """The result of a check without mistakes: the name of the sheet that is read, the number
    of its codes, the outlines of the first and last ones (`Code.outline`), how many have each
    length and kind of character, and the doubts, each to be confirmed."""

    sheet: str
    codes: int
    sample: list[str]
    last: list[str]
    shapes: dict[str, dict[str, int]]
    doubts: list[str]


class NoCodes(InputProblem):
    """The file has no lines below its first."""

    def __init__(self) -> None:
        super().__init__(NO_CODES)


class BadLine(InputProblem):
    """A line of the file cannot be read."""


class RepeatedCode(InputProblem):
    """A code is twice in the file, or already in the table."""

    def __init__(self) -> None:
        super().__init__(REPEATED_CODE)


class ImportRunning(InputProblem):
    """Another import of codes is running."""

    def __init__(self) -> None:
        super().__init__(_("Another import of codes is running. Start this one when it has ended."))


def import_codes(
    *,
    product_id: int,
    path: Path,
    imported_by: str,
    variation_id: int | None = None,
    details: BatchDetails = NO_DETAILS,
    confirmed: Collection[str] = (),
) -> Batch:
    """Imports the codes of a file as a batch, and returns it. `confirmed` are the ids of the doubts
    that a person has confirmed (core/files/doubts.py).

    Raises InputProblem with the lines at fault, Doubtful, or sealing.CannotOpen.
    """
    shelf = find_shelf(product_id=product_id, variation_id=variation_id)
    digest = FileDigest()
    read = partial(read_path, path, digest)
    if path.is_file():  # what comes through a pipe can be read only once
        refuse_doubts(check_rows(read=read).doubts, confirmed)
    return import_rows(
        shelf=shelf,
        read=read,
        actor=None,
        imported_by=imported_by,
        details=details,
        digest=digest,
        confirmed=confirmed,
    )


def check_codes(
    *, product_id: int, path: Path, variation_id: int | None = None
) -> tuple[Shelf, CheckedFile]:
    """Reads a file as `import_codes` does and imports nothing; returns the shelf and what it found.
    Raises what that raises."""
    shelf = find_shelf(product_id=product_id, variation_id=variation_id)
    return shelf, check_rows(read=partial(read_path, path, FileDigest()))


def import_rows(
    *,
    shelf: Shelf,
    read: Reader,
    actor: User | None,
    imported_by: str,
    details: BatchDetails,
    digest: FileDigest,
    confirmed: Collection[str],
    before_sale: Callable[[], None] = lambda: None,
    note: str = "",
) -> Batch:
    """Imports the rows of a file as a batch, all or none, with an audit entry; returns the batch.

    `imported_by` is like `admin:anna`; `read` fills `digest`; `confirmed` are the ids of doubts;
    the audit entry has the `note`; `before_sale` may refuse the codes before they are for sale.
    Raises InputProblem with the lines at fault, Doubtful, or sealing.CannotOpen.
    """
    code_digester()  # may register an encryption key, which a rollback would undo
    columns = NumberColumns()
    try:
        with read("Codes") as file, transaction.atomic():
            number = add_codes(
                shelf=shelf,
                rows=columns.watch(file.rows),
                expires_on=details.expires_on,
                before_sale=before_sale,
            )
            refuse_doubts([*file.table.doubts.sentences(), *columns.doubts()], confirmed)
            batch = add_batch(
                shelf=shelf,
                number=number,
                details=details,
                digest=digest,
                imported_by=imported_by,
            )
            record_action(
                actor=actor,
                action=AuditAction.CODES_IMPORTED,
                on=shelf,
                reference=str(shelf),
                note=note_of_codes(number, note),
            )
    except (BadLine, RepeatedCode):
        with suppress(NoCodes):  # from a pipe, which cannot be read twice
            check_rows(read=read)
        raise
    return batch


def check_rows(*, read: Reader) -> CheckedFile:
    """Reads the rows of a file and imports nothing.

    Raises InputProblem with all lines at fault, or sealing.CannotOpen.
    """
    columns, sample, number = NumberColumns(), list[str](), 0
    last = deque[Code](maxlen=SAMPLE)

    def good(rows: Iterable[Row | str]) -> Iterator[Row | str]:
        nonlocal number
        for row in columns.watch(rows):
            if not isinstance(row, str):
                number += 1
                if len(sample) < SAMPLE:
                    sample.append(row[1].outline())
                else:
                    last.append(row[1])
            yield row

    with read("Looking for mistakes") as file:
        raise_problems(_find_mistakes(good(file.rows)), kept=KEPT_PROBLEMS)
    if not number:
        raise NoCodes
    return CheckedFile(
        sheet=file.table.sheet,
        codes=number,
        sample=sample,
        last=[code.outline() for code in last],
        shapes=columns.shapes(),
        doubts=[*file.table.doubts.sentences(), *columns.doubts()],
    )


def add_codes(
    *,
    shelf: Shelf,
    rows: Iterable[Row | str],
    expires_on: date | None = None,
    before_sale: Callable[[], None] = lambda: None,
) -> int:
    """Adds codes to a shelf, to be sold in this order until the end of the day `expires_on` in UTC;
    returns how many.

    A row is a line number and its code, or a sentence that says what is wrong with a line. Raises
    InputProblem.

    Locks: a purchase locks the shelf before the codes (catalogue/sql/take_codes.sql); an import
    updates the shelf last. This cannot deadlock, because nobody sees the new codes before the
    commit. Purchases go on during the import and wait only between the UPDATE and the commit, so
    the foreign keys of all rows are checked before the UPDATE.
    """
    digest, seal, expiry = code_digester(), code_sealer(), expires_on or "\\N"
    lines = (
        f"{shelf.pk}\t\\\\x{seal(code, key).hex()}\t\\\\x{key.hex()}\t{expiry}\n"
        for code, key in ((code, digest(code.code)) for _, code in _good_rows(rows))
    )
    with transaction.atomic(), connection.cursor() as cursor:
        _begin_import(cursor)
        try:
            number = _copy(
                cursor, "catalogue_vouchercode (shelf_id, sealed, digest, expires_on)", lines
            )
        except IntegrityError:
            raise RepeatedCode from None
        if not number:
            raise NoCodes
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")  # as the caller left them
        before_sale()
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
    """The rows. Raises BadLine at the first faulty one."""
    for row in rows:
        if isinstance(row, str):
            raise BadLine(row)
        yield row


def _copy(cursor: CursorWrapper, table: str, lines: Iterator[str]) -> int:
    """Copies lines in COPY's text format into a table; returns how many."""
    number = 0
    with connection.wrap_database_errors, cursor.copy(f"COPY {table} FROM STDIN") as copy:
        while batch := list(islice(lines, ROWS_AT_ONCE)):
            copy.write("".join(batch))
            number += len(batch)
    return number


def _find_mistakes(rows: Iterable[Row | str]) -> Iterator[str]:
    """A sentence for each faulty line, and for each code that is repeated or stored."""
    digest, remaining, seen = code_digester(), iter(rows), _FirstLines()
    while batch := list(islice(remaining, ROWS_AT_ONCE)):
        digests = {row[0]: digest(row[1].code) for row in batch if not isinstance(row, str)}
        stored = _places(digests.values())
        for row in batch:
            if isinstance(row, str):
                yield row
                continue
            line = row[0]
            if found := stored.get(digests[line]):
                state, shelf = found
                yield STORED_LINE[state] % {"line": line, "shelf": shelf}
            if first := seen.find(digests[line], line):
                yield REPEATED_LINE % {"line": line, "first": first}


def _places(digests: Iterable[bytes]) -> dict[bytes, tuple[str, str]]:
    """The state and the shelf of the codes with these digests that are stored."""
    with connection.cursor() as cursor:
        # One text, because psycopg dumps a list value by value.
        halves = ",".join([one[:HALF_BYTES].hex() for one in digests])
        cursor.execute(STORED, [f"{{{halves}}}"])
        rows = cursor.fetchall()
    shelves = Shelf.objects.select_related("product", "variation__product").in_bulk(
        {shelf for _digest, shelf, _state in rows}
    )
    return {bytes(digest): (state, str(shelves[shelf])) for digest, shelf, state in rows}


class _FirstLines:
    """The first line of each digest, for as many lines as a file may have, in at most 25 MB. It
    compares 64 bits of keyed digests; the database compares 128."""

    SLOTS = 2 * MAX_ROWS

    def __init__(self) -> None:
        self._keys = memoryview(bytearray(8 * self.SLOTS)).cast("Q")
        self._lines = memoryview(bytearray(4 * self.SLOTS)).cast("I")

    def find(self, digest: bytes, line: int) -> int:
        """The earlier line with this digest. If there is none, 0, and this line is the first."""
        key = int.from_bytes(digest[:8]) or 1
        slot = key % self.SLOTS
        while found := self._keys[slot]:
            if found == key:
                return self._lines[slot]
            slot = (slot + 1) % self.SLOTS
        self._keys[slot], self._lines[slot] = key, line
        return 0
