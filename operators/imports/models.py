"""Files that staff import in the back office."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, Value
from django.db.models.functions import Now

from catalogue.models import Shelf
from core.database.sealing import CannotOpen, Context, open_sealed, seal
from core.texts import lazy

FILE_NAME_LENGTH = 200


class ImportKind(models.TextChoices):
    """The content of a file."""

    CODES = "codes", lazy("Voucher codes")
    CATALOGUE = "catalogue", lazy("Catalogue")
    PRICE_LISTS = "price_lists", lazy("Prices in lists")
    EXCHANGE_RATES = "exchange_rates", lazy("Exchange rates")


class ImportState(models.TextChoices):
    """The state of an import (operators/imports/jobs.py changes it)."""

    CHECKING = "checking", lazy("Checking")
    READY = "ready", lazy("Ready to import")
    REFUSED = "refused", lazy("Has problems")
    IMPORTING = "importing", lazy("Importing")
    IMPORTED = "imported", lazy("Imported")
    STOPPED = "stopped", lazy("Stopped")
    DISCARDED = "discarded", lazy("Discarded")


RUNNING = [ImportState.CHECKING, ImportState.IMPORTING]
WAITING = [ImportState.READY, ImportState.STOPPED]  # for a person
OPEN = [*RUNNING, *WAITING]


class FileImport(models.Model):
    """A file that staff uploaded: its check, and its import, by a worker.

    - `sealed`: the file, encrypted; null as soon as the import has ended. A file that came in parts
      is in rows of `FilePart`, and empty here.
    - `batch`: what people said of the codes (catalogue/stock/batches.py).
    - `done`: how many of the file's bytes the check or the import has read.
    - `result`: what the check or the import counted, and the prices that change; `waits` are those
      that need a second person, and `asked_by` is the key of who asked for one.
    - `problems`: why it was refused, each with its place in the file; `more_problems` counts those
      that are not listed.
    - `attempts`: how many times a worker has begun the present step; `touched_at`: when one last
      did something.
    """

    token = models.UUIDField(unique=True, default=uuid4, editable=False)
    kind = models.CharField(max_length=16, choices=ImportKind)
    state = models.CharField(max_length=16, choices=ImportState, default=ImportState.CHECKING)
    file_name = models.CharField(max_length=FILE_NAME_LENGTH)
    size = models.PositiveIntegerField(help_text=lazy("In bytes."))
    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, null=True, related_name="+")
    sealed = models.BinaryField(null=True)
    batch = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    done = models.PositiveIntegerField(default=0)
    result = models.JSONField(default=dict)
    problems = models.JSONField(default=list)
    more_problems = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    touched_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "import"
        permissions = [
            ("import_codes", "Can import voucher codes"),
            ("import_catalogue", "Can import the catalogue"),
        ]
        indexes = [
            models.Index(
                name="imports_import_open", fields=["touched_at"], condition=Q(state__in=OPEN)
            )
        ]
        constraints = [
            models.CheckConstraint(
                name="imports_import_kind_is_known", condition=Q(kind__in=ImportKind.values)
            ),
            models.CheckConstraint(
                name="imports_import_state_is_known", condition=Q(state__in=ImportState.values)
            ),
            models.CheckConstraint(
                name="imports_import_of_codes_has_a_shelf",
                condition=Q(kind=ImportKind.CODES, shelf__isnull=False)
                | (~Q(kind=ImportKind.CODES) & Q(shelf=None)),
            ),
            models.CheckConstraint(
                name="imports_import_keeps_its_file_while_open",
                condition=Q(state__in=OPEN, sealed__isnull=False, finished_at=None)
                | (~Q(state__in=OPEN) & Q(sealed=None, finished_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="imports_import_is_confirmed",
                condition=~Q(state__in=[ImportState.IMPORTING, ImportState.IMPORTED])
                | Q(confirmed_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.file_name

    @property
    def version(self) -> str:
        """Differs after each step. The form that confirms an import carries it."""
        return self.touched_at.isoformat()

    def asker(self) -> User | None:
        """The person who asked for a second one."""
        return User.objects.filter(pk=self.result.get("asked_by")).first()

    def content(self) -> bytes:
        """The uploaded file. Raises sealing.CannotOpen; also if it was deleted."""
        return b"".join(self.pieces())

    def pieces(self, over: BaseDatabaseWrapper | None = None) -> Iterator[bytes]:
        """The uploaded file, piece by piece; its parts are read one by one over this connection.

        Raises sealing.CannotOpen, at the end if a piece is missing.
        """
        if whole := open_file(self.sealed or b"", row_of_import(self.token)):
            yield whole
            return
        number = read = 0
        while sealed := _sealed_part(over or connection, self.token, number):
            piece = open_file(sealed, row_of_part(self.token, number))
            number, read = number + 1, read + len(piece)
            yield piece
        if read != self.size:
            raise CannotOpen("parts of the file are missing")


class FilePart(models.Model):
    """A part of a large file, encrypted. The browser sends the parts one by one, before there is an
    import.

    `upload` becomes the token of the import. A trigger deletes the parts when the import ends
    (operators/imports/sql/parts.sql).
    """

    upload = models.UUIDField()
    number = models.PositiveSmallIntegerField(help_text=lazy("Its place in the file, from 0."))
    size = models.PositiveIntegerField(help_text=lazy("In bytes."))
    sealed = models.BinaryField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(name="imports_part_has_a_place", fields=["upload", "number"])
        ]

    def __str__(self) -> str:
        return f"part {self.number} of upload {self.upload}"


def _sealed_part(over: BaseDatabaseWrapper, upload: UUID, number: int) -> bytes | None:
    with over.cursor() as cursor:
        cursor.execute(
            "SELECT sealed FROM imports_filepart WHERE upload = %s AND number = %s",
            [upload, number],
        )
        row = cursor.fetchone()
    return row and bytes(row[0])


def row_of_import(token: UUID) -> bytes:
    """The row that a sealed file is bound to."""
    return token.bytes


def row_of_part(upload: UUID, number: int) -> bytes:
    """The row that a sealed part of a file is bound to."""
    return upload.bytes + number.to_bytes(4)


def seal_file(content: bytes, row: bytes) -> bytes:
    """A file or a part of one, encrypted for this row."""
    return seal(content, Context.IMPORTED_FILE, row)


def open_file(sealed: bytes | memoryview, row: bytes) -> bytes:
    """The file, or the part of one, that `row` names. Raises sealing.CannotOpen."""
    return open_sealed(sealed, Context.IMPORTED_FILE, row)
