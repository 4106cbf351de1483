"""Sends files of unknown size without holding up purchases.

A web process has few threads, and a thread that streams a file serves nobody else until the reader
has it all. A file of up to 4 MB that is built in ten seconds is therefore handed over whole: the
server then sends it without a thread. Only other files are streamed, one at a time to each account
and to each member of staff, so the members of one account occupy at most one thread. Neither
the size nor the time of a file is limited, only the slowness of its reader: the service ends the
file of a reader who takes too little, and proxies that of one who takes nothing
(docs/operate/proxies.md).
"""

from collections.abc import Callable, Generator, Iterator
from time import monotonic
from typing import Any

import structlog
from django.core.cache import cache
from django.db.models import Model
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from structlog.contextvars import get_contextvars

logger = structlog.get_logger(__name__)

WHOLE_BYTES = 4_000_000  # about 30,000 lines of a statement
# Building 4 MB of a compressed workbook takes minutes, and proxies wait one for the first byte.
WHOLE_SECONDS = 10
# A stream ends when the service has waited for its reader this long. Each SLOWEST bytes that the
# reader takes cancel one second. Time spent on building the file does not count.
PATIENCE_SECONDS = 600
SLOWEST = 50_000  # bytes in a second
# The mark is renewed while the reader takes parts, so it outlives the patience. If a process dies
# while it streams, the account is blocked from another large file this long.
MARK_SECONDS = PATIENCE_SECONDS + 60
RENEW_SECONDS = 30

# Without it, a file that ends early looks complete: granian ends the response in order.
INCOMPLETE = b"\nThis file is incomplete. Download it again.\n"


def send_file(
    parts: Generator[bytes], *, to: Model, content_type: str, name: str
) -> HttpResponseBase | None:
    """A response that sends these parts as a file named `name`.

    `to` is who receives it: an account or a user. Returns None if the file is large or slow, and
    another such file is being sent to them.
    """
    headers = {
        "Content-Type": content_type,
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    beginning: list[bytes] = []
    size, began = 0, monotonic()
    for part in parts:
        beginning.append(part)
        size += len(part)
        if size > WHOLE_BYTES or monotonic() - began > WHOLE_SECONDS:
            break
    else:
        return HttpResponse(b"".join(beginning), headers=headers)
    mark = _Mark(to)
    if not mark.set():
        return None
    return StreamingHttpResponse(_Rest(beginning, parts, mark), headers=headers)


class _Mark:
    """A mark in the cache: this account or user is receiving a large file.

    If the cache is down, files are sent without marks.
    """

    def __init__(self, to: Model) -> None:
        self._key = f"sending:{to._meta.label_lower}:{to.pk}"
        self._renewed = monotonic()

    def set(self) -> bool:
        """Sets the mark; returns False if there was one."""
        return self._try_cache(lambda: cache.add(self._key, 1, MARK_SECONDS)) is not False

    def renew(self) -> None:
        if monotonic() - self._renewed >= RENEW_SECONDS:
            self._renewed = monotonic()
            self._try_cache(lambda: cache.set(self._key, 1, MARK_SECONDS))

    def remove(self) -> None:
        self._try_cache(lambda: cache.delete(self._key))

    def _try_cache(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:  # whatever fails there must not end a download
            logger.warning("download_not_noted", cause=type(error).__name__)
            return None


class _Rest:
    """Yields the parts. Django closes it when the file is sent or the reader disconnects."""

    def __init__(self, beginning: list[bytes], parts: Generator[bytes], mark: _Mark) -> None:
        self._beginning = beginning
        self._parts = parts
        self._mark = mark
        self._behind = 0.0  # seconds that the reader is behind the slowest rate
        # Keeps the request's id and user for a failure after the request has ended.
        self._log = logger.bind(**get_contextvars())

    def __iter__(self) -> Iterator[bytes]:
        try:
            for part in self._pieces():
                if self._behind > PATIENCE_SECONDS:
                    self._log.warning("download_too_slow")
                    yield INCOMPLETE
                    return
                ready = monotonic()
                yield part  # returns when the server has room for the next part
                waited = monotonic() - ready
                self._behind = max(0.0, self._behind + waited - len(part) / SLOWEST)
                self._mark.renew()
        except (
            Exception
        ):  # the request is logged as a 200 already; only this line reports a failure
            self._log.exception("download_failed")
            yield INCOMPLETE
            raise

    def _pieces(self) -> Iterator[bytes]:
        while self._beginning:
            yield self._beginning.pop(0)
        yield from self._parts

    def close(self) -> None:
        self._parts.close()
        self._mark.remove()
