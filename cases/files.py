"""Sends the files of cases, always as downloads."""

from urllib.parse import quote

from django.http import HttpResponse

from cases.models import CaseFile


def file_response(file: CaseFile) -> HttpResponse:
    """The file as a download that no browser opens on our site. Raises sealing.CannotOpen."""
    return download(file.name, file.content_type, file.content())


def download(name: str, content_type: str, content: bytes) -> HttpResponse:
    """An attachment that nothing caches, and whose type no browser guesses."""
    return HttpResponse(
        content,
        headers={
            "Content-Type": content_type,
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        },
    )
