"""Files that are too large or too slow for a request: a worker builds them, in sealed parts.

    waiting → building → ready
                 ↓
              failed

A file that waits or is being built may be cancelled, which deletes it.

The request stores itself, sealed, and queues a task. The worker makes the same request again, with
the person's present rights, and stores the file that it gives. The person or program that asked for
the file follows its progress and then fetches the parts. Their rights are checked again before each
part. One person or key has one such file, and the members and programs of an account wait for one
at a time. A file is deleted after a day, or when its person or key asks for another one.

No part is stored unencrypted, or sent to the broker (docs/decisions/0117-prepared-files.md).
"""

import json
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import resolve
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext_noop

from accounts.models import Account
from accounts.preferences.time_zones import IN_SESSION, LANGUAGE_IN_SESSION
from core.database.key_ring import check_keys
from core.database.sealing import CannotOpen, Context, open_sealed, seal
from core.queue import enqueue
from core.texts import lazy
from merchants.frame.downloads import FileRequest, Take
from merchants.models import UNFINISHED_FILE, BookKey, FileState, PreparedFile, PreparedPart
from merchants.people.members import membership_of

logger = structlog.get_logger(__name__)

PART_BYTES = 4_000_000
MAX_PARTS = 500
KEPT_FOR = timedelta(days=1)
# A message may have been lost, or wait for other files. Two messages about a file build it once,
# but each costs the worker a process.
QUEUED_AGAIN_AFTER = timedelta(minutes=5)
STUCK_AFTER = timedelta(minutes=2)  # without a query of its worker
ATTEMPTS = 2
REPORT_SECONDS = 1.0
RIGHTS = "rights"
# These are stored in English, and pages translate them.
REFUSED = gettext_noop(
    "The file was not built: your rights or what it is about have changed. Open its list, and"
    " download it again."
)
TOO_LARGE = gettext_noop("The file is larger than 2 GB. Choose fewer days, or another filter.")
UNFINISHED = gettext_noop(
    "The work on this file ended twice before it was done. Try again. If that fails, too, choose"
    " fewer days or another filter, or contact support."
)
STILL_BUILDING = lazy("This file is still being built. Ask for the other one when it is ready.")
PROBLEMS = (REFUSED, TOO_LARGE, UNFINISHED)


class StillBuilding(Exception):
    """The person or key, or others of the account, wait for a file that is not built yet.

    file: that of the person or key; None if others wait.
    """

    def __init__(self, file: PreparedFile | None) -> None:
        super().__init__()
        self.file = file


class _Superseded(Exception):
    """The file was deleted, or another worker builds it."""


class _TooLarge(Exception):
    pass


def prepare_file(
    request: HttpRequest,
    *,
    user: User | None,
    key: BookKey | None,
    account: Account | None,
    content_type: str,
    name: str,
    record: Callable[[], object],
) -> PreparedFile:
    """Has a worker build the file for this person or key, and deletes their file before it.
    `record` adds the entry of the trail, without which there is no file.

    Raises StillBuilding.
    """
    mine = PreparedFile.objects.filter(user=user, key=key)
    check_keys()
    try:
        with transaction.atomic():
            mine.exclude(state__in=UNFINISHED_FILE).delete()
            row = PreparedFile(
                user=user, key=key, account=account, content_type=content_type, name=name
            )
            about = {
                "address": request.get_full_path(),
                IN_SESSION: timezone.get_current_timezone_name(),
                LANGUAGE_IN_SESSION: request.LANGUAGE_CODE,  # a view may write in another one
                RIGHTS: _rights_of(user),
            }
            content = json.dumps(about).encode()
            row.sealed = seal(content, Context.PREPARED_FILE, row_of_file(row.token))
            row.save()
            record()
    except IntegrityError:
        raise StillBuilding(mine.filter(state__in=UNFINISHED_FILE).first()) from None
    _queue(row.pk)
    return row


def cancel_file(row: PreparedFile) -> bool:
    """Deletes a file that is not ready yet; otherwise returns False."""
    with transaction.atomic():
        unfinished = PreparedFile.objects.select_for_update().filter(
            pk=row.pk, state__in=UNFINISHED_FILE
        )
        return any(file.delete() for file in unfinished)


def build_file(*, pk: int) -> None:
    """Builds a file that waits. Safe to call at any time, and twice at once.

    Raises what went wrong, for the worker's log; `sweep_files` has it tried again.
    """
    waiting = PreparedFile.objects.filter(pk=pk, state=FileState.WAITING)
    if not waiting.update(
        state=FileState.BUILDING,
        attempts=F("attempts") + 1,
        size=0,
        parts=0,
        touched_at=timezone.now(),
    ):
        return
    row = PreparedFile.objects.select_related("user", "key__account").filter(pk=pk).first()
    if row is None:  # cancelled since
        return
    row.pieces.all().delete()
    store = _Store(row)
    try:
        if request_again(row, store.take):
            store.report(state=FileState.READY)
        else:
            store.report(state=FileState.FAILED, problem=REFUSED)
    except _Superseded:
        logger.info("file_superseded", prepared_file=pk)
    except _TooLarge:
        with suppress(_Superseded):
            store.report(state=FileState.FAILED, problem=TOO_LARGE)
            row.pieces.all().delete()


def request_again(row: PreparedFile, take: Take) -> bool:
    """Makes the request for the file again, in the language and time zone of the first one, and
    passes its parts to `take`. False if there is no such file for this person or key any more.

    There is none with other rights: the same address may then give fewer rows and columns.
    """
    if (row.user and not row.user.is_active) or (row.key and row.key.revoked_at):
        return False
    stored = open_request(row.sealed, row_of_file(row.token))
    if stored[RIGHTS] != _rights_of(row.user):
        return False
    path, query = urlsplit(stored["address"])[2:4]
    was_taken = False

    def note(parts: Iterable[bytes]) -> None:
        nonlocal was_taken
        was_taken = True
        take(parts)

    try:
        found = resolve(path)
    except Http404:  # an upgrade has removed the address
        return False

    def answer(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
        return response

    for middleware in reversed(settings.FILE_MIDDLEWARE):
        answer = import_string(middleware)(answer)
    request = FileRequest(path, query, user=row.user, key=row.key, session=stored, take=note)
    request.resolver_match = found
    try:
        answer(request)
    except (PermissionDenied, Http404):
        return False
    return was_taken


def _rights_of(user: User | None) -> str:
    """The account, role and permissions of a person, as a digest."""
    if user is None:
        return ""
    member = membership_of(user)
    place = [str(member.account_id), member.role] if member else []
    return sha256(" ".join([*place, *sorted(user.get_all_permissions())]).encode()).hexdigest()


def may_download(row: PreparedFile) -> bool:
    """Whether the person or key that asked for the file may download it now."""
    return request_again(row, lambda parts: None)


def read_part(row: PreparedFile, number: int) -> bytes | None:
    """A part of a file that is ready; None if there is no such part."""
    part = PreparedPart.objects.filter(file=row, file__state=FileState.READY, number=number).first()
    return open_part(part.sealed, row_of_part(row.token, number)) if part else None


def sweep_files() -> dict[str, int]:
    """Queues files again whose message or worker was lost, and deletes old ones."""
    now = timezone.now()
    deleted, _ = PreparedFile.objects.filter(created_at__lt=now - KEPT_FOR).delete()
    stuck = PreparedFile.objects.filter(state=FileState.BUILDING, touched_at__lt=now - STUCK_AFTER)
    failed = stuck.filter(attempts__gte=ATTEMPTS).update(state=FileState.FAILED, problem=UNFINISHED)
    stuck.update(state=FileState.WAITING)
    lost = PreparedFile.objects.filter(
        state=FileState.WAITING, touched_at__lt=now - QUEUED_AGAIN_AFTER
    )
    again = list(lost.values_list("pk", flat=True))
    lost.update(touched_at=now)
    for pk in again:
        _queue(pk)
    return {"again": len(again), "failed": failed, "deleted": deleted}


def _queue(pk: int) -> None:
    enqueue("merchants.tasks.build_file", pk)


class _Store:
    """Stores the parts of a file, and reports the progress of its worker."""

    def __init__(self, row: PreparedFile) -> None:
        self._row = row
        self._mine = PreparedFile.objects.filter(
            pk=row.pk, state=FileState.BUILDING, attempts=row.attempts
        )
        self._size = self._number = 0
        self._reported = monotonic()
        self._is_ours = False  # the present query

    def take(self, parts: Iterable[bytes]) -> None:
        buffer: list[bytes] = []
        size = 0
        with connection.execute_wrapper(self._note_query):
            for part in parts:
                buffer.append(part)
                size += len(part)
                if size >= PART_BYTES:
                    self._add(b"".join(buffer))
                    buffer, size = [], 0
            if buffer or not self._number:
                self._add(b"".join(buffer))

    def report(self, **values: Any) -> None:
        """Raises _Superseded if the file is not ours any more."""
        values |= {"size": self._size, "parts": self._number, "touched_at": timezone.now()}
        self._is_ours = True
        is_there = self._mine.update(**values)
        self._is_ours = False
        self._reported = monotonic()
        if not is_there:
            raise _Superseded

    def _add(self, content: bytes) -> None:
        if self._number == MAX_PARTS:
            raise _TooLarge
        token, number = self._row.token, self._number
        sealed = seal_part(content, row_of_part(token, number))
        with transaction.atomic():  # no cancellation between the two
            self.report()
            self._is_ours = True
            PreparedPart.objects.create(file=self._row, token=token, number=number, sealed=sealed)
            self._is_ours = False
        self._number += 1
        self._size += len(content)

    def _note_query(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        """Reports now and then before a query. A filter may read for minutes without a row."""
        if not self._is_ours and monotonic() - self._reported >= REPORT_SECONDS:
            self.report()
        return execute(*arguments)


def row_of_file(token: Any) -> bytes:
    """The row that the request for a file is bound to."""
    return bytes(token.bytes)


def row_of_part(token: Any, number: int) -> bytes:
    """The row that a part is bound to."""
    return bytes(token.bytes) + number.to_bytes(4)


def open_request(sealed: bytes | memoryview, row: bytes) -> dict[str, str]:
    """The address, language, time zone and rights of a request. Raises sealing.CannotOpen."""
    stored: dict[str, str] = json.loads(open_sealed(sealed, Context.PREPARED_FILE, row))
    return stored


def seal_part(content: bytes, row: bytes) -> bytes:
    return seal(zlib.compress(content, 1), Context.PREPARED_FILE, row)


def open_part(sealed: bytes | memoryview, row: bytes) -> bytes:
    """The part that `row` names. Raises sealing.CannotOpen."""
    try:
        return zlib.decompress(open_sealed(sealed, Context.PREPARED_FILE, row))
    except zlib.error:
        raise CannotOpen("the part cannot be unpacked") from None
