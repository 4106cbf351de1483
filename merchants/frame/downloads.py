"""Sends files without holding a thread of a web process.

A web process has few threads. A file of up to 4 MB that is built in ten seconds is handed over
whole: the server then sends it without a thread. A worker builds any other file, and stores it in
parts of 4 MB, which are handed over in the same way (merchants/frame/prepared_files.py).
"""

from collections.abc import Callable, Generator, Iterable
from time import monotonic
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.contrib.sessions.backends.base import SessionBase
from django.db import connection
from django.http import HttpRequest, HttpResponse, QueryDict

WHOLE_BYTES = 4_000_000  # about 30,000 lines of a statement
WHOLE_SECONDS = 10

Take = Callable[[Iterable[bytes]], None]


class FileRequest(HttpRequest):
    """A request for a file that the service itself makes again, for the person or the program that
    asked for it: to build the file in a worker, or to check that they may still download it.

    The view passes the parts to `take`. The request is neither limited nor recorded: the first one
    was.
    """

    def __init__(
        self, path: str, query: str, *, user: User | None, key: Any, session: Any, take: Take
    ) -> None:
        super().__init__()
        self.method = "GET"
        self.path = self.path_info = path
        self.GET = QueryDict(query)
        self.user = user or AnonymousUser()
        self.session: SessionBase = session
        self.key = key
        self.take = take


class _Slow(Exception):
    """The file takes longer than WHOLE_SECONDS."""


def filter_in_words(values: Iterable[tuple[str, Any]]) -> str:
    """The filter of a file for the audit trail, such as `kind voucher, since 2026-11-16`. A text to
    search for is left out: it may be a code or a player id. So is NUL, which is not stored."""
    words = (
        f"{name.replace('__exact', '').replace('__id', '').replace('_', ' ')} {value}"
        for name, value in values
        if value and name != "q"
    )
    return ", ".join(words).replace("\0", "")


def send_file(
    request: HttpRequest,
    parts: Generator[bytes],
    *,
    content_type: str,
    name: str,
    record: Callable[[], object],
) -> HttpResponse | None:
    """A response with these parts as a file named `name`, which `record` adds to the trail; None if
    the file is large or slow."""
    if isinstance(request, FileRequest):
        request.take(parts)
        return HttpResponse()
    whole = _build(parts)
    if whole is None:
        return None
    record()
    return as_file(whole, content_type=content_type, name=name)


def as_file(content: bytes, *, content_type: str, name: str) -> HttpResponse:
    headers = {
        "Content-Type": content_type,
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return HttpResponse(content, headers=headers)


def _build(parts: Generator[bytes]) -> bytes | None:
    """The whole file; None if it is large or slow. A filter may read for minutes before it finds a
    row, so the time is checked before each query, too."""
    ends = monotonic() + WHOLE_SECONDS
    pieces: list[bytes] = []
    size, is_slow = 0, False

    def check_time(execute: Any, *arguments: Any) -> Any:
        nonlocal is_slow
        if monotonic() > ends and not is_slow:  # once: what follows is the end of a transaction
            is_slow = True
            raise _Slow
        return execute(*arguments)

    try:
        with connection.execute_wrapper(check_time):
            for part in parts:
                pieces.append(part)
                size += len(part)
                if size > WHOLE_BYTES or monotonic() > ends:
                    return None
    except _Slow:
        return None
    finally:
        parts.close()
    return b"".join(pieces)
