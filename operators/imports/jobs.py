"""The life of an import: uploaded, checked, confirmed, imported.

    checking → ready → importing → imported
        ↘ refused ↗ (a file with problems ends; a corrected file is another import)

If other prices would change than the check showed, an import changes nothing and is ready again.

A worker checks and imports; the message to it holds only an id. What a worker did not finish, the
next one does: the check changes nothing, and an import is one transaction with its state, so it
happens once. After five attempts the import is stopped, and staff may try again.

The file is sealed in the request that uploads it, and deleted in the transaction that ends the
import. A file that waits for a person is discarded a day after its last step. It is never written
to the disk, or sent to the broker, in clear text (docs/decisions/0057-imports-in-the-browser.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from audit.actor import on_behalf_of
from audit.models import AuditAction
from audit.services import record_action
from catalogue.batches import BatchDetails, FileDigest
from catalogue.code_file import read_bytes
from catalogue.code_import import ImportRunning, check_rows, import_rows
from catalogue.models import Shelf
from core.database.columns import ACTOR_LENGTH
from core.database.key_ring import check_keys
from core.database.sealing import CannotOpen
from core.inputs import InputProblem
from core.queue import enqueue
from operators.imports import catalogue_file
from operators.imports.catalogue_file import PriceMove, PricesMoved, parse_catalogue, preview_rows
from operators.imports.models import (
    FILE_NAME_LENGTH,
    OPEN,
    RUNNING,
    WAITING,
    FileImport,
    ImportKind,
    ImportState,
    seal_file,
)

logger = structlog.get_logger(__name__)

# About 80,000 codes, and about 3,000 products. The check of a catalogue locks its shelves for three
# seconds at most.
MAX_BYTES = {ImportKind.CODES: 2 * 1024 * 1024, ImportKind.CATALOGUE: 256 * 1024}
ATTEMPTS = 5
STUCK_AFTER = timedelta(seconds=60)  # longer than a task may take
KEPT_FOR = timedelta(days=1)
REPORT_BYTES = 64 * 1024  # of a file, between two reports of progress
SHOWN_PRICES = 100
LOST_FILE = "The stored file can no longer be decrypted. Upload it again."
UNFINISHED = (
    "The import did not finish. Try again, or ask an administrator to look at the worker's log."
)


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

    `shelf` is where codes go, and `details` describe them; None for a catalogue.
    """
    if len(content) > MAX_BYTES[kind]:
        raise InputProblem(
            f"The file is larger than {size_in_words(kind)}. Split it into smaller files."
        )
    if not content:
        raise InputProblem("The file is empty.")
    check_keys()
    # The browser's Back leads to the same form. Another file in it is another import. The form's
    # token is random and not stored, so nobody can guess a code by its digest.
    about = f"{kind} {shelf and shelf.pk} {actor.pk} {sha256(content).hexdigest()}"
    token = uuid5(token, about)
    with transaction.atomic():
        row, created = FileImport.objects.get_or_create(
            token=token,
            defaults={
                "kind": kind,
                "file_name": _printable_name(file_name),
                "size": len(content),
                "shelf": shelf,
                "sealed": seal_file(content, token),
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


def confirm_import(*, pk: int, actor: User) -> bool:
    """Has a worker import a checked file. False if it was not ready any more. Who confirms has read
    its doubts (`CheckedFile`)."""
    return _move(
        pk, [ImportState.READY], ImportState.IMPORTING, actor, attempts=0, confirmed_by=actor
    )


def retry_import(*, pk: int, actor: User) -> bool:
    """Has a worker check a stopped import again. False if it was not stopped any more."""
    return _move(
        pk, [ImportState.STOPPED], ImportState.CHECKING, actor, attempts=0, done=0, problems=[]
    )


def discard_import(*, pk: int, actor: User) -> bool:
    """Deletes the file of an import that has not begun. False if it was not waiting any more."""
    return _move(pk, WAITING, ImportState.DISCARDED, actor)


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
        step(row)
    except ImportRunning:  # of codes by another process; not an attempt
        mine.update(attempts=F("attempts") - 1)
    except InputProblem as refused:
        _end(row, ImportState.REFUSED, problems=refused.problems, more_problems=refused.more)
    except CannotOpen:
        logger.exception("import_cannot_be_opened", file_import=pk)
        _end(row, ImportState.REFUSED, problems=[LOST_FILE])


def sweep_imports() -> dict[str, int]:
    """Continues imports whose message or worker was lost, stops those that failed too often, and
    discards files that nobody confirmed."""
    now = timezone.now()
    stuck = FileImport.objects.filter(state__in=RUNNING, touched_at__lt=now - STUCK_AFTER)
    stopped = stuck.filter(attempts__gte=ATTEMPTS).update(
        state=ImportState.STOPPED, problems=[UNFINISHED]
    )
    again = list(stuck.values_list("pk", flat=True))
    for pk in again:
        _queue(pk)
    old = FileImport.objects.filter(state__in=WAITING, touched_at__lt=now - KEPT_FOR)
    discarded = old.update(state=ImportState.DISCARDED, sealed=None, finished_at=now)
    return {"stopped": stopped, "again": len(again), "discarded": discarded}


def _check(row: FileImport) -> None:
    """The dry run. It imports nothing, and reports its progress in the row."""
    content = row.content()
    if row.shelf is not None:
        read = partial(read_bytes, content, _report_progress(row), FileDigest())
        result: dict[str, Any] = asdict(check_rows(read=read))
    else:
        counts, prices = preview_rows(parse_catalogue(content, name=row.file_name))
        result = {"counts": counts, **_prices_to_show(prices)}
    _ask_to_confirm(row, result)


def _import(row: FileImport) -> None:
    """Imports all or nothing. Its rows and the new state are one transaction."""
    with transaction.atomic():
        # Another worker that holds the row is importing it.
        waiting = FileImport.objects.select_for_update(skip_locked=True, of=("self",))
        locked = waiting.filter(pk=row.pk, state=ImportState.IMPORTING).first()
        if locked is None or locked.confirmed_by is None:
            return
        content, actor = locked.content(), locked.confirmed_by
        if locked.shelf is not None:
            digest = FileDigest()
            read = partial(read_bytes, content, lambda count: None, digest)
            batch = import_rows(
                shelf=locked.shelf,
                read=read,
                actor=actor,
                imported_by=f"admin:{actor.get_username()}"[:ACTOR_LENGTH],
                details=BatchDetails.read(locked.batch),
                digest=digest,
                as_is=True,  # its doubts were confirmed
            )
            result: dict[str, Any] = {"codes": batch.number, "batch": batch.pk}
        else:
            try:
                with on_behalf_of(actor):
                    counts = catalogue_file.import_rows(
                        parse_catalogue(content, name=locked.file_name),
                        actor=f"admin:{actor.get_username()}",
                        user=actor,
                        accepts=lambda prices: (
                            _digest(prices) == locked.result.get("digest_of_prices")
                        ),
                    )
            except PricesMoved as moved:
                changes = {"counts": moved.counts, **_prices_to_show(moved.prices), "moved": True}
                _ask_to_confirm(locked, changes)
                return
            result = {**locked.result, "counts": counts}
        _end(locked, ImportState.IMPORTED, result=result)


def _ask_to_confirm(row: FileImport, result: dict[str, Any]) -> None:
    """Ends a step with what would change, for staff to read."""
    FileImport.objects.filter(pk=row.pk, state=row.state).update(
        state=ImportState.READY,
        result=result,
        done=row.size,
        confirmed_by=None,
        touched_at=timezone.now(),
    )


def _end(row: FileImport, state: ImportState, **values: Any) -> None:
    """Ends a running import and deletes its file."""
    FileImport.objects.filter(pk=row.pk, state=row.state).update(
        state=state, sealed=None, finished_at=timezone.now(), **values
    )


def _move(
    pk: int, before: list[ImportState], after: ImportState, actor: User, **values: Any
) -> bool:
    """Moves an import by hand, with its audit entry; False if it was in another state."""
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


def _report_progress(row: FileImport) -> Callable[[int], None]:
    """A function that adds up bytes, and now and then writes the sum to the row."""
    read = reported = 0

    def advance(count: int) -> None:
        nonlocal read, reported
        read += count
        if read - reported >= REPORT_BYTES:
            reported = read
            FileImport.objects.filter(pk=row.pk, state=ImportState.CHECKING).update(
                done=read, touched_at=timezone.now()
            )

    return advance


def _prices_to_show(prices: list[PriceMove]) -> dict[str, Any]:
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


def _digest(prices: list[PriceMove]) -> str:
    """Differs if any price differs, also one that is not shown."""
    lines = sorted(f"{one.name!r} {one.currency} {one.before} {one.after}" for one in prices)
    return sha256("\n".join(lines).encode()).hexdigest()


def _printable_name(file_name: str) -> str:
    """The name of an uploaded file, as far as it can be printed."""
    printable = "".join(one for one in file_name if one.isprintable())
    return printable[-FILE_NAME_LENGTH:] or "unnamed"
