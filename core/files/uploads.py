"""Pictures and documents that people attach: checked, sealed, and only ever downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Self
from urllib.parse import quote
from uuid import UUID, uuid4

import structlog
from django.db import models
from django.db.models import QuerySet, Sum
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.database.sealing import CannotOpen, Context, open_sealed, seal
from core.inputs import InputProblem, clean_text
from core.texts import lazy

logger = structlog.get_logger(__name__)

MAX_BYTES = 5_000_000
FORM_BYTES = 64 * 1024  # of a form, besides its files
NAME_LENGTH = 200
# The first bytes of each type of file, and how its name may end.
TYPES = {
    "image/png": (b"\x89PNG\r\n\x1a\n", (".png",)),
    "image/jpeg": (b"\xff\xd8\xff", (".jpg", ".jpeg")),
    "application/pdf": (b"%PDF-", (".pdf",)),
}
ACCEPTED = ".png,.jpg,.jpeg,.pdf"


def check_file(name: str, content: bytes) -> tuple[str, str]:
    """The name without a path, and the type of the content.

    Raises InputProblem if the file is too large, if its name cannot be shown, or if its content is
    not what its name says.
    """
    name = clean_text(
        name.replace("\\", "/").rpartition("/")[2],
        what=gettext_noop("name of the file"),
        max_length=NAME_LENGTH,
    )
    if len(content) > MAX_BYTES:
        raise InputProblem(
            _("%(name)s is larger than %(max_bytes)s MB.")
            % {"name": name, "max_bytes": MAX_BYTES // 1000000}
        )
    for content_type, (begins, endings) in TYPES.items():
        if content.startswith(begins) and name.lower().endswith(endings):
            return name, content_type
    raise InputProblem(_("%(name)s is not a PNG or JPEG picture or a PDF.") % {"name": name})


class AttachedFile(models.Model):
    """A file, encrypted. A subclass says what it belongs to and names the context of its seal."""

    context: ClassVar[Context]

    token = models.UUIDField(unique=True, default=uuid4, editable=False)
    name = models.CharField(max_length=NAME_LENGTH)
    content_type = models.CharField(max_length=100)
    size = models.PositiveIntegerField(help_text=lazy("In bytes."))
    sealed = models.BinaryField()

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return f"file {self.pk}"

    @classmethod
    def of(cls, name: str, content: bytes) -> Self:
        """A new row that is not saved yet. Raises what `check_file` raises."""
        name, content_type = check_file(name, content)
        token = uuid4()
        return cls(
            token=token,
            name=name,
            content_type=content_type,
            size=len(content),
            sealed=seal(content, cls.context, row_of_file(token)),
        )

    @classmethod
    def open(cls, sealed: bytes | memoryview, row: bytes) -> bytes:
        """The file of this row. Raises sealing.CannotOpen."""
        return open_sealed(sealed, cls.context, row)

    def content(self) -> bytes:
        """The file. Raises sealing.CannotOpen."""
        return self.open(self.sealed, row_of_file(self.token))


def row_of_file(token: UUID) -> bytes:
    """The row that a sealed file is bound to."""
    return token.bytes


def fits(files: Sequence[AttachedFile], *, beside: QuerySet[Any], limit: int) -> bool:
    """Whether the new files and those that are stored take up at most `limit` bytes."""
    stored: int = beside.aggregate(total=Sum("size"))["total"] or 0
    return stored + sum(file.size for file in files) <= limit


def download(file: AttachedFile) -> HttpResponse:
    """The file as an attachment that nothing caches, and that no browser opens on our site.

    A sentence with status 503 if this process cannot open the file, because a key is missing.
    """
    try:
        content = file.content()
    except CannotOpen:
        logger.exception("file_cannot_be_opened", file=file.pk, table=file._meta.db_table)
        text = _("This file cannot be opened now. Tell an administrator.")
        return HttpResponse(
            text, status=HTTPStatus.SERVICE_UNAVAILABLE, content_type="text/plain; charset=utf-8"
        )
    return HttpResponse(
        content,
        headers={
            "Content-Type": file.content_type,
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name)}",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        },
    )
