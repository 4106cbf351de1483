"""Sends files to members' browsers, and to programs with a key for books.

Both use the same addresses. A program sends `Authorization: Bearer bk_…`; its errors are JSON.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec

from django.contrib import messages
from django.contrib.auth.models import User
from django.forms import Form
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
)
from django.urls import reverse
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from core.files.table_files import CONTENT_TYPES, write_table
from core.texts import in_english, lazy
from merchants.frame.downloads import FileRequest, filter_in_words, send_file
from merchants.frame.prepared_files import STILL_BUILDING, StillBuilding, prepare_file
from merchants.models import BookKey
from merchants.money.book_keys import find_book_key
from merchants.people.access import (
    Member,
    View,
    member_page,
    seconds_until_next_file,
)

BUSY = lazy(
    "Another large file of this account is being built. Wait until it is ready, or choose fewer"
    " days."
)
NAMED_BY_DOCS = "signed-statement.json"  # a command of the docs reads it
MAX_SLUG = 40  # characters of the merchant's name in the name of a file
BUSY_SECONDS = 60  # a program waits so long before it asks again
TOO_LARGE = (
    "This file is too large to be sent at once. Choose fewer days, or send"
    " `Prefer: respond-async`, and the file is built for you."
)

P = ParamSpec("P")


@dataclass(frozen=True)
class File:
    """The parts of a file to send, its name, and the filter of its rows."""

    parts: Generator[bytes]
    content_type: str
    name: str
    filters: Form | None = None


class NoFile(Exception):
    """The file cannot be sent. The message says why."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def table_file(
    name: str,
    format: str,
    *,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    filters: Form | None = None,
    mark: bool = True,
    is_imported: bool = False,
) -> File:
    """These rows as a file in a format of `core.files.table_files`."""
    title = "" if is_imported else gettext(name.capitalize())
    parts = write_table(format, columns, rows, mark=mark, is_imported=is_imported, title=title)
    return File(parts, CONTENT_TYPES[format], f"{name}.{format}", filters)


def refuse_invalid(filters: Form) -> None:
    """Raises NoFile if the filter of a file is invalid."""
    if not filters.is_valid():
        errors = filters.errors.get_json_data()
        fields = [f"{name}: {all[0]['message']}" for name, all in errors.items()]
        raise NoFile(HTTPStatus.BAD_REQUEST, " ".join(fields))


def send_table(
    request: HttpRequest, member: Member, *, name: str, format: str, back: str, **table: Any
) -> HttpResponseBase:
    """A list for members only, as `table_file` builds it. Redirects to the page named `back` while
    another large file of the account is being built."""
    try:
        return _send(request, member.account, table_file(name, format, **table), member.user)
    except NoFile as problem:
        return back_to(back)(request, member, problem)


FileView = Callable[Concatenate[HttpRequest, Account, P], File]
ProblemPage = Callable[[HttpRequest, Member, NoFile], HttpResponse]


def back_to(page: str) -> ProblemPage:
    """Redirects to the page of this name, which shows the problem."""

    def redirect(request: HttpRequest, member: Member, problem: NoFile) -> HttpResponse:
        messages.error(request, str(problem))
        return HttpResponseRedirect(reverse(page))

    return redirect


def file_view(problem_page: ProblemPage) -> Callable[[FileView[P]], View[P]]:
    """Sends the file that a view returns, and records the download.

    If the view raises NoFile, or if another large file of the account is being built, a member gets
    the `problem_page`, and a program gets the message as JSON. A program gets Http404 as JSON, too.
    """

    def decorate(view: FileView[P]) -> View[P]:
        @member_page(heavy=True)
        def for_member(
            request: HttpRequest, member: Member, /, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponseBase:
            try:
                file = view(request, member.account, *args, **kwargs)
                return _send(request, member.account, file, member.user)
            except NoFile as problem:
                if isinstance(request, FileRequest):
                    raise Http404 from None
                return problem_page(request, member, problem)

        @require_safe
        @wraps(view)
        def serve(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if isinstance(request, FileRequest) and request.key:
                with in_english():
                    try:
                        file = view(request, request.key.account, *args, **kwargs)
                    except NoFile:
                        raise Http404 from None
                    return _send(request, request.key.account, file, request.key)
            if "Authorization" not in request.headers:
                return for_member(request, *args, **kwargs)
            key = key_of(request)
            if key is None:
                return refuse(HTTPStatus.UNAUTHORIZED, "This is not a live key for books.")
            if wait := seconds_until_next_file(key.account):
                return refuse(HTTPStatus.TOO_MANY_REQUESTS, f"Wait {wait} seconds.", wait=wait)
            BookKey.objects.filter(pk=key.pk).update(last_used_at=timezone.now())
            with in_english():
                try:
                    file = view(request, key.account, *args, **kwargs)
                    return _send(request, key.account, file, key)
                except Http404:
                    return refuse(HTTPStatus.NOT_FOUND, "There is no such file.")
                except NoFile as problem:
                    is_busy = problem.status == HTTPStatus.TOO_MANY_REQUESTS
                    wait = BUSY_SECONDS if is_busy else 0
                    return refuse(problem.status, str(problem), wait=wait)

        return serve

    return decorate


def key_of(request: HttpRequest) -> BookKey | None:
    """The live key for books that a program sends."""
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    return find_book_key(text) if kind.lower() == "bearer" else None


def _send(
    request: HttpRequest, account: Account, file: File, asker: User | BookKey
) -> HttpResponseBase:
    """The file, or the page where it will be once a worker has built it. Raises NoFile."""
    record = partial(
        record_action,
        actor=asker if isinstance(asker, User) else f"key:{asker}",
        action=AuditAction.EXPORTED,
        on=account,
        reference=file.name,
        note=_filter_text(request, file.filters),
    )
    about: dict[str, Any] = {
        "content_type": file.content_type,
        "name": file.name if isinstance(asker, BookKey) else _name_for_people(file, account),
        "record": record,
    }
    if answer := send_file(request, file.parts, **about):
        return answer
    try:
        return _prepare(request, account, asker, **about)
    except StillBuilding as other:
        if other.file is None or isinstance(asker, BookKey):
            raise NoFile(HTTPStatus.TOO_MANY_REQUESTS, BUSY) from None
        messages.warning(request, STILL_BUILDING)
        return HttpResponseRedirect(reverse("merchants:file", args=[other.file.token]))


def slug_of(account: Account) -> str:
    """The account in the name of a file: letters a to z, digits and hyphens."""
    return slugify(account.name)[:MAX_SLUG].strip("-") or f"account-{account.pk}"


def _name_for_people(file: File, account: Account) -> str:
    """The name with the merchant and the period, or the present day if there is none, such as
    `orders-web-shop-2026-10-01-to-2026-10-31.csv`. Programs choose names themselves."""
    if file.name == NAMED_BY_DOCS:
        return file.name
    name, _dot, ending = file.name.rpartition(".")
    merchant = slug_of(account)
    days = getattr(file.filters, "cleaned_data", {})
    since, until = days.get("since"), days.get("until")
    if since or until:
        return f"{name}-{merchant}-{since or 'begin'}-to-{until or timezone.localdate()}.{ending}"
    if name[-1].isdigit():  # the name of a month
        return f"{name}-{merchant}.{ending}"
    return f"{name}-{merchant}-{timezone.localdate()}.{ending}"


def _prepare(
    request: HttpRequest, account: Account, asker: User | BookKey, **about: Any
) -> HttpResponseBase:
    user, key = (asker, None) if isinstance(asker, User) else (None, asker)
    preferred = request.headers.get("Prefer", "").lower().replace(";", ",").split(",")
    if key and "respond-async" not in map(str.strip, preferred):
        raise NoFile(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TOO_LARGE)
    row = prepare_file(request, user=user, key=key, account=account, **about)
    address = reverse("merchants:file", args=[row.token])
    if key:
        return JsonResponse({"file": address}, status=HTTPStatus.ACCEPTED)
    return HttpResponseRedirect(address)


def _filter_text(request: HttpRequest, filters: Form | None) -> str:
    """The filter of the rows in words."""
    names = filters.fields if filters else ()
    return filter_in_words((name, request.GET.get(name, "")) for name in names)


def refuse(status: HTTPStatus, message: str, *, wait: int = 0) -> JsonResponse:
    """An error for a program. `wait`: after how many seconds it may try again."""
    answer = JsonResponse({"message": message}, status=status)
    if status == HTTPStatus.UNAUTHORIZED:
        answer["WWW-Authenticate"] = "Bearer"
    if wait:
        answer["Retry-After"] = str(wait)
    return answer
