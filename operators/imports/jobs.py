"""The life of an import: uploaded, checked, confirmed, imported.

    checking → ready → importing → imported
        ↓   ↘ discarded    ↓
        refused, or stopped → checking, if a person tries again

A file with problems is refused; a corrected file is another import. A person stops a check or an
import, and so does the sweep if a worker ended twice. A file that is ready or stopped may be
discarded. If other prices would change than the check showed, or a low price needs a second person,
an import changes nothing and is ready again. While other prices are being changed, a check or an
import keeps its state and is continued later.

A worker of the queue `imports` checks and imports; the message to it holds only an id. What a
worker did not finish, the next one does, once: a file that ends its worker must not do so for ever.
The check changes nothing, and an import is one transaction with its state, so it happens once.
Staff may stop a check or an import, and try a stopped one again. The worker notices within a
second, or, while it reads a catalogue or PostgreSQL checks a constraint, when that has ended.

The file is sealed in the request that uploads it, and deleted in the transaction that ends the
import. The browser sends a large file in parts, each in a request of its own. A file that waits for
a person is discarded a day after its last step. It is never written to the disk, or sent to the
broker, in clear text (docs/decisions/0057-imports-in-the-browser.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from hashlib import sha256
from time import monotonic
from typing import Any
from uuid import UUID, uuid5

import structlog
from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from audit.actor import on_behalf_of
from audit.models import AuditAction
from audit.services import record_action
from catalogue.imports.code_file import read_pieces
from catalogue.imports.code_import import ImportRunning, check_rows, import_rows
from catalogue.models import Shelf
from catalogue.stock.batches import BatchDetails, FileDigest
from core.database.columns import ACTOR_LENGTH
from core.database.key_ring import check_keys, key_ring
from core.database.sealing import CannotOpen
from core.files.doubts import refuse_doubts
from core.inputs import InputProblem
from core.queue import enqueue
from operators.imports import catalogue_file, price_list_file, rate_file
from operators.imports.catalogue_changes import as_stored
from operators.imports.catalogue_file import (
    PriceDifference,
    PricesChanged,
    doubts_of,
    parse_catalogue,
    preview_rows,
    sheet_of,
)
from operators.imports.low_prices import (
    LowPrices,
    PricesBusy,
    ask_to_import_codes,
    asked_and_confirmed,
    two_people_import_codes,
)
from operators.imports.models import (
    FILE_NAME_LENGTH,
    OPEN,
    RUNNING,
    WAITING,
    FileImport,
    FilePart,
    ImportKind,
    ImportState,
    row_of_import,
    row_of_part,
    seal_file,
)
from operators.imports.table_imports import ChangesMoved, check_table, import_table

logger = structlog.get_logger(__name__)

PART_BYTES = 1024 * 1024  # of a file that the browser sends in parts
REQUEST_BYTES = 2 * 1024 * 1024  # of a file that comes in one request
# A million codes with serial numbers and PINs are about 40 MB. Other files come in one request.
MAX_BYTES = {**dict.fromkeys(ImportKind, REQUEST_BYTES), ImportKind.CODES: 64 * 1024 * 1024}
TABLES = {
    ImportKind.PRICE_LISTS: price_list_file.KIND,
    ImportKind.EXCHANGE_RATES: rate_file.KIND,
}
ATTEMPTS = 2  # of a step, until a person decides
STUCK_AFTER = timedelta(seconds=60)  # without a report of progress
KEPT_FOR = timedelta(days=1)
REPORT_SECONDS = 1.0  # between two reports of progress
QUIET_SECONDS = 600  # while a file is read, the transaction that holds its lock is idle
LOCK_NAME = "imports.fileimport"  # of the advisory locks of imports at work
SHOWN_PRICES = 100
REPORT = "UPDATE imports_fileimport SET done = %s, touched_at = now() WHERE id = %s AND state = %s"
# These are stored in English, and pages translate them.
LOST_FILE = gettext_noop("The stored file can no longer be decrypted. Upload it again.")
UNFINISHED = gettext_noop(
    "The work on this file ended twice before it was done. Save the file again, or as CSV, and"
    " upload it. If that fails, too, ask an administrator to look at the log of the imports worker."
)
STOPPED_BY = gettext_noop("Stopped by %(name)s.")


class Superseded(Exception):
    """The import was stopped while a worker carried it out. Nothing was imported."""


class AtWork(Exception):
    """Another worker is carrying out this import."""


def upload_file(
    *,
    kind: ImportKind,
    content: bytes,
    file_name: str,
    shelf: Shelf | None,
    actor: User,
    token: UUID,
    details: BatchDetails | None = None,
) -> FileImport:
    """Stores a file, sealed, and has a worker check it. `token` identifies the form: sending it
    again with the same file returns the same import. Raises InputProblem.

    `shelf` is where codes go, and `details` describe them; None for other files.
    """
    if len(content) > MAX_BYTES[kind]:
        raise InputProblem(
            _("The file is larger than %(size)s. Split it into smaller files.")
            % {"size": size_in_words(kind)}
        )
    if not content:
        raise InputProblem(_("The file is empty."))
    # The browser's Back leads to the same form. Another file in it is another import. The form's
    # token is random and not stored, so nobody can guess a code by its digest.
    about = f"{kind} {shelf and shelf.pk} {actor.pk} {sha256(content).hexdigest()}"
    return _add_import(
        token=uuid5(token, about),
        kind=kind,
        content=content,
        size=len(content),
        file_name=file_name,
        shelf=shelf,
        actor=actor,
        details=details,
    )


def add_part(*, upload: UUID, number: int, content: bytes, actor: User) -> None:
    """Stores a part of a file of codes, sealed. A part that is sent twice is stored once.

    Raises InputProblem.
    """
    most = MAX_BYTES[ImportKind.CODES] // PART_BYTES
    if not (0 <= number < most and 0 < len(content) <= PART_BYTES):
        raise InputProblem(
            _("A part has at most %(bytes)s bytes, and a file %(parts)s parts.")
            % {"bytes": PART_BYTES, "parts": most}
        )
    check_keys()
    FilePart.objects.get_or_create(
        upload=upload,
        number=number,
        defaults={
            "size": len(content),
            "sealed": seal_file(content, row_of_part(upload, number)),
            "created_by": actor,
        },
    )


def finish_upload(
    *,
    upload: UUID,
    size: int,
    file_name: str,
    shelf: Shelf,
    actor: User,
    details: BatchDetails | None = None,
) -> FileImport:
    """Has a worker check a file of codes whose parts are stored. Sending it again returns the same
    import. Raises InputProblem if parts are missing."""
    parts = FilePart.objects.filter(upload=upload, created_by=actor)
    stored = parts.aggregate(size=Sum("size"))["size"]
    known = FileImport.objects.filter(token=upload, created_by=actor)
    if stored != size and not known.exists():
        raise InputProblem(_("The upload is not complete. Choose the file again."))
    return _add_import(
        token=upload,
        kind=ImportKind.CODES,
        content=b"",
        size=size,
        file_name=file_name,
        shelf=shelf,
        actor=actor,
        details=details,
    )


def _add_import(
    *,
    token: UUID,
    kind: ImportKind,
    content: bytes,
    size: int,
    file_name: str,
    shelf: Shelf | None,
    actor: User,
    details: BatchDetails | None,
) -> FileImport:
    check_keys()
    with transaction.atomic():
        row, created = FileImport.objects.get_or_create(
            token=token,
            defaults={
                "kind": kind,
                "file_name": _printable_name(file_name),
                "size": size,
                "shelf": shelf,
                "sealed": seal_file(content, row_of_import(token)),
                "created_by": actor,
                "batch": details.as_json() if details else {},
            },
        )
        if created:
            record_action(actor=actor, action=AuditAction.ADDED, on=row, reference=row.file_name)
    if created:
        _queue(row.pk)
    return row


def size_in_words(kind: ImportKind) -> str:
    """The largest size of a file of this kind, in words."""
    kibibytes = MAX_BYTES[kind] // 1024
    return f"{kibibytes // 1024} MB" if kibibytes >= 1024 else f"{kibibytes} KB"


def confirm_import(*, pk: int, actor: User, seen: str, confirmed: Collection[str] = ()) -> bool:
    """Has a worker import a checked file, or asks for a second person, if the cost of codes needs
    one. `seen` is the `version` that the person read, and
    `confirmed` are the ids of its doubts. False if it was not ready any more, or was checked again
    since. Raises Doubtful unless each doubt is confirmed."""
    row = FileImport.objects.defer("sealed").get(pk=pk)
    if row.version != seen or row.state != ImportState.READY:
        return False
    result = row.result
    refuse_doubts(result.get("doubts", []), confirmed)
    if row.shelf is not None:
        details, about = BatchDetails.read(row.batch), _about_codes(row)
        with transaction.atomic():
            if low := ask_to_import_codes(row.shelf, details, actor=actor, about=about):
                _ask_to_confirm(row, {**result, "waits": low, "asked_by": actor.pk})
                return True
    return _change_state(
        pk,
        [ImportState.READY],
        ImportState.IMPORTING,
        actor,
        attempts=0,
        done=0,
        confirmed_by=actor,
        result={**result, "confirmed": list(confirmed)},
    )


def retry_import(*, pk: int, actor: User) -> bool:
    """Has a worker check a stopped import again. False if it was not stopped any more."""
    return _change_state(
        pk, [ImportState.STOPPED], ImportState.CHECKING, actor, attempts=0, done=0, problems=[]
    )


def stop_import(*, pk: int, actor: User) -> bool:
    """Stops a check or an import; nothing is imported. False if it did not run any more."""
    by = STOPPED_BY % {"name": actor.get_username()}
    return _change_state(pk, RUNNING, ImportState.STOPPED, actor, problems=[by])


def discard_import(*, pk: int, actor: User) -> bool:
    """Deletes the file of an import that has not begun. False if it was not waiting any more."""
    return _change_state(pk, WAITING, ImportState.DISCARDED, actor)


def run_import(*, pk: int) -> None:
    """Checks or imports the file, as its state says. Safe to call at any time, and twice at once.

    Raises what went wrong, for the worker's log; `sweep_imports` has it tried again.
    """
    mine = FileImport.objects.filter(pk=pk, state__in=RUNNING)
    mine.update(attempts=F("attempts") + 1, touched_at=timezone.now())
    row = mine.first()
    if row is None:
        return
    step = _check if row.state == ImportState.CHECKING else _import
    try:
        with _begin_work(row) as beside:
            step(row, beside)
    except (AtWork, ImportRunning, PricesBusy):  # not an attempt; `sweep_imports` continues it
        mine.update(attempts=F("attempts") - 1)
    except Superseded:
        logger.info("import_stopped", file_import=pk)
    except InputProblem as refused:
        _end(row, ImportState.REFUSED, problems=refused.problems, more_problems=refused.more)
    except CannotOpen:
        logger.exception("import_cannot_be_opened", file_import=pk)
        _end(row, ImportState.REFUSED, problems=[LOST_FILE])


def sweep_imports() -> dict[str, int]:
    """Continues imports whose message or worker was lost, stops those that failed too often, and
    discards files that nobody confirmed."""
    now = timezone.now()
    stuck = FileImport.objects.filter(state__in=RUNNING, touched_at__lt=now - STUCK_AFTER).exclude(
        pk__in=_rows_at_work()
    )
    stopped = stuck.filter(attempts__gte=ATTEMPTS).update(
        state=ImportState.STOPPED, problems=[UNFINISHED]
    )
    again = list(stuck.values_list("pk", flat=True))
    for pk in again:
        _queue(pk)
    old = FileImport.objects.filter(state__in=WAITING, touched_at__lt=now - KEPT_FOR)
    discarded = old.update(state=ImportState.DISCARDED, sealed=None, finished_at=now)
    _delete_abandoned_parts()
    return {"stopped": stopped, "again": len(again), "discarded": discarded}


def _delete_abandoned_parts() -> None:
    """Deletes the parts of uploads that did not become imports within a day."""
    old = FilePart.objects.filter(created_at__lt=timezone.now() - KEPT_FOR)
    old.exclude(upload__in=FileImport.objects.filter(state__in=OPEN).values("token")).delete()


def _rows_at_work() -> list[int]:
    """The imports that a worker is carrying out now: they hold their advisory lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT objid FROM pg_locks
             WHERE locktype = 'advisory' AND granted AND objsubid = 2
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND classid = hashtext(%s)::bit(32)::bigint
            """,
            [LOCK_NAME],
        )
        return [pk for (pk,) in cursor]


def _check(row: FileImport, beside: BaseDatabaseWrapper) -> None:
    """The dry run. It imports nothing."""
    if row.shelf is not None:
        advance = _report_progress(row, beside)
        read = partial(read_pieces, row.pieces, advance, FileDigest())
        result: dict[str, Any] = asdict(check_rows(read=read))
    elif table := TABLES.get(ImportKind(row.kind)):
        result = check_table(table, row.content())
    else:
        content = parse_catalogue(row.content(), name=row.file_name)
        counts, prices, changes = preview_rows(content)
        found = {"doubts": list(doubts_of(content)), "sheet": sheet_of(content)}
        result = {"counts": counts, **found, **_prices_to_show(prices), **as_stored(changes)}
    _ask_to_confirm(row, result)


def _import(row: FileImport, beside: BaseDatabaseWrapper) -> None:
    """Imports all or nothing. Its rows and the new state are one transaction.

    `beside` reads the parts of the file, because the connection of the transaction is busy with
    COPY.
    """
    locked = FileImport.objects.filter(pk=row.pk, state=ImportState.IMPORTING).first()
    if locked is None or locked.confirmed_by is None:
        return
    try:
        result = _carry_out(locked, locked.confirmed_by, beside)
    except PricesChanged as changed:
        changes = {
            **locked.result,
            "counts": changed.counts,
            **_prices_to_show(changed.prices),
            "moved": True,
        }
        _ask_to_confirm(locked, changes)
        return
    except ChangesMoved as moved:
        _ask_to_confirm(locked, {**moved.result, "moved": True})
        return
    except LowPrices as waits:  # until another person confirms the import
        asked = {"waits": waits.low, "asked_by": locked.confirmed_by.pk}
        _ask_to_confirm(locked, {**locked.result, **asked})
        return
    if "asked_by" in locked.result:
        result["asked_by"] = locked.result["asked_by"]
    if not _end(locked, ImportState.IMPORTED, result=result):
        raise Superseded


def _carry_out(row: FileImport, actor: User, beside: BaseDatabaseWrapper) -> dict[str, Any]:
    """Imports the file in the open transaction, and returns the result."""
    confirmed = row.result.get("confirmed", ())
    if row.shelf is not None:
        digest, details = FileDigest(), BatchDetails.read(row.batch)
        advance = _report_progress(row, beside)
        about, asker = _about_codes(row), row.asker()
        with two_people_import_codes(row.shelf, details, actor=actor, about=about) as before_sale:
            batch = import_rows(
                shelf=row.shelf,
                read=partial(read_pieces, partial(row.pieces, beside), advance, digest),
                actor=actor,
                imported_by=f"admin:{actor.get_username()}"[:ACTOR_LENGTH],
                details=details,
                digest=digest,
                confirmed=confirmed,
                before_sale=before_sale,
                note=asked_and_confirmed(asker, actor) if asker and asker != actor else "",
            )
        return {"codes": batch.number, "batch": batch.pk}
    if table := TABLES.get(ImportKind(row.kind)):
        seen = row.result.get("digest", "")
        return import_table(table, row.content(), actor=actor, seen=seen, confirmed=confirmed)
    with on_behalf_of(actor):
        counts = catalogue_file.import_rows(
            parse_catalogue(row.content(), name=row.file_name),
            actor=f"admin:{actor.get_username()}",
            user=actor,
            accepts=lambda prices: _digest(prices) == row.result.get("digest_of_prices"),
            confirmed=confirmed,
        )
    return {**{name: one for name, one in row.result.items() if name != "waits"}, "counts": counts}


def _about_codes(row: FileImport) -> str:
    return f"codes of import {row.pk}"


@contextmanager
def _begin_work(row: FileImport) -> Iterator[BaseDatabaseWrapper]:
    """A transaction that holds the advisory lock of the row, and another connection, which reports
    the progress; the transaction therefore does not lock the row itself. Raises AtWork if another
    worker has the lock."""
    key_ring()  # may register an encryption key, which a rollback would undo
    with closing(connections[DEFAULT_DB_ALIAS].copy()) as beside, transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('idle_in_transaction_session_timeout', %s, true),"
                " pg_try_advisory_xact_lock(hashtext(%s), %s::int)",
                [f"{QUIET_SECONDS}s", LOCK_NAME, row.pk],
            )
            _timeout, is_ours = cursor.fetchone()
        if not is_ours:
            raise AtWork
        yield beside


def _ask_to_confirm(row: FileImport, result: dict[str, Any]) -> None:
    """Ends a step with what would change, for staff to read."""
    FileImport.objects.filter(pk=row.pk, state=row.state).update(
        state=ImportState.READY,
        result=result,
        done=row.size,
        confirmed_by=None,
        touched_at=timezone.now(),
    )


def _end(row: FileImport, state: ImportState, **values: Any) -> bool:
    """Ends a running import and deletes its file. False if it was in another state."""
    ended = FileImport.objects.filter(pk=row.pk, state=row.state).update(
        state=state, sealed=None, finished_at=timezone.now(), **values
    )
    return bool(ended)


def _change_state(
    pk: int, before: list[ImportState], after: ImportState, actor: User, **values: Any
) -> bool:
    """Changes the state by hand, with an audit entry; False if it was in another state."""
    if after not in OPEN:
        values |= {"sealed": None, "finished_at": timezone.now()}
    with transaction.atomic():
        row = FileImport.objects.select_for_update(of=("self",)).filter(pk=pk).first()
        if row is None or row.state not in before:
            return False
        FileImport.objects.filter(pk=pk).update(state=after, touched_at=timezone.now(), **values)
        record_action(
            actor=actor,
            action=AuditAction.CHANGED,
            on=row,
            reference=row.file_name,
            changes={"state": (row.state, after.value)},
        )
    if after in RUNNING:
        _queue(pk)
    return True


def _queue(pk: int) -> None:
    enqueue("operators.imports.tasks.run_import", pk)


def _report_progress(row: FileImport, over: BaseDatabaseWrapper) -> Callable[[int], None]:
    """A function that adds up bytes, and now and then writes the sum to the row, over this
    connection. It raises Superseded once the import was stopped."""
    read, next_report = 0, monotonic() + REPORT_SECONDS

    def advance(count: int) -> None:
        nonlocal read, next_report
        read += count
        if monotonic() >= next_report:
            next_report = monotonic() + REPORT_SECONDS
            with over.cursor() as cursor:
                cursor.execute(REPORT, [read, row.pk, row.state])
                if not cursor.rowcount:
                    cursor.execute("SELECT 1 FROM imports_fileimport WHERE id = %s", [row.pk])
                    if cursor.fetchone():
                        raise Superseded

    return advance


def _prices_to_show(prices: list[PriceDifference]) -> dict[str, Any]:
    """The largest changes first; a price that is removed is the largest."""
    largest = sorted(
        prices, key=lambda one: -abs(one.percent) if one.percent is not None else -(10**9)
    )
    return {
        "prices": [
            {
                "name": one.name,
                "currency": one.currency,
                "before": str(one.before),
                "after": None if one.after is None else str(one.after),
                "percent": None if one.percent is None else round(float(one.percent), 1),
            }
            for one in largest[:SHOWN_PRICES]
        ],
        "more_prices": max(0, len(prices) - SHOWN_PRICES),
        "digest_of_prices": _digest(prices),
    }


def _digest(prices: list[PriceDifference]) -> str:
    """Differs if any price differs, also one that is not shown."""
    lines = sorted(f"{one.name!r} {one.currency} {one.before} {one.after}" for one in prices)
    return sha256("\n".join(lines).encode()).hexdigest()


def _printable_name(file_name: str) -> str:
    """The name of an uploaded file, as far as it can be printed."""
    printable = "".join(one for one in file_name if one.isprintable())
    return printable[-FILE_NAME_LENGTH:] or "unnamed"
