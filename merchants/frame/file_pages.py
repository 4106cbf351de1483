"""Files that a worker builds: their progress and their parts, for members and programs."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
)
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.models import Account
from core.texts import translate_stored
from merchants.frame.downloads import as_file
from merchants.frame.exports import key_of, refuse
from merchants.frame.pages import show
from merchants.frame.prepared_files import (
    KEPT_FOR,
    PROBLEMS,
    cancel_file,
    may_download,
    read_part,
)
from merchants.models import UNFINISHED_FILE, FileState, PreparedFile
from merchants.people.access import Member, member_page, seconds_until_next_part


@require_safe
def file(request: HttpRequest, token: UUID) -> HttpResponseBase:
    """The progress of a file, and the link to it. A program gets the number of parts."""
    if "Authorization" not in request.headers:
        return _member_file(request, token)
    row = _file_of_program(request, token)
    if isinstance(row, HttpResponse):
        return row
    if row.state in UNFINISHED_FILE:
        return JsonResponse({"state": row.state}, status=HTTPStatus.ACCEPTED)
    if row.state == FileState.FAILED:
        return refuse(HTTPStatus.GONE, row.problem)
    return JsonResponse({"parts": row.parts})


@require_safe
def file_part(request: HttpRequest, token: UUID, number: int) -> HttpResponseBase:
    """A part of a file."""
    if "Authorization" not in request.headers:
        return _member_part(request, token, number)
    row = _file_of_program(request, token)
    return row if isinstance(row, HttpResponse) else send_part(row, number)


@member_page()
def _member_file(request: HttpRequest, member: Member, token: UUID) -> HttpResponse:
    row = find_file(token, user=member.user)
    return show(request, member, "merchants/file.html", title=row.name, **file_context(row))


@member_page()
def _member_part(request: HttpRequest, member: Member, token: UUID, number: int) -> HttpResponse:
    return send_part(find_file(token, user=member.user), number)


@require_POST
@member_page()
def cancel(request: HttpRequest, member: Member, token: UUID) -> HttpResponse:
    """Deletes a file that waits or is being built."""
    file = find_file(token, user=member.user)
    return end_file(request, file, reverse("merchants:file", args=[token]), "merchants:overview")


def end_file(request: HttpRequest, file: PreparedFile, page: str, start: str) -> HttpResponse:
    """Cancels the file and leads to the page `start`, or back to its own page if it is ready."""
    if not cancel_file(file):
        return HttpResponseRedirect(page)
    messages.success(request, _("The file was cancelled."))
    return HttpResponseRedirect(reverse(start))


def find_file(token: UUID, **asker: Any) -> PreparedFile:
    """The file of this person or key. Raises Http404, also if they may no longer download it."""
    row = PreparedFile.objects.select_related("user", "key__account").filter(token=token, **asker)
    file = row.first()
    if file is None or (file.state == FileState.READY and not may_download(file)):
        raise Http404
    return file


def file_context(file: PreparedFile) -> dict[str, Any]:
    """The context of the page of a file."""
    return {
        "file": file,
        "problem": translate_stored(file.problem, *PROBLEMS),
        "is_unfinished": file.state in UNFINISHED_FILE,
        "deleted_at": file.created_at + KEPT_FOR,
        "numbers": range(file.parts),
    }


def send_part(file: PreparedFile, number: int) -> HttpResponse:
    """The part, handed over whole. Raises Http404."""
    content = read_part(file, number)
    if content is None:
        raise Http404
    return as_file(content, content_type=file.content_type, name=file.name)


def _file_of_program(request: HttpRequest, token: UUID) -> PreparedFile | HttpResponse:
    key = key_of(request)
    if key is None:
        return refuse(HTTPStatus.UNAUTHORIZED, "This is not a live key for books.")
    account: Account = key.account
    if wait := seconds_until_next_part(account):
        return refuse(HTTPStatus.TOO_MANY_REQUESTS, f"Wait {wait} seconds.", wait=wait)
    try:
        return find_file(token, key=key)
    except Http404:
        return refuse(HTTPStatus.NOT_FOUND, "There is no such file.")
