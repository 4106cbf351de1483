"""Sends files of unknown size without holding up purchases.

A web process has few threads, and a thread that streams a file serves nobody else until the reader
has it all. A file of up to 4 MB that is built in ten seconds is therefore handed over whole: the
server then sends it without a thread. Only other files are streamed, one at a time to each account
and to each member of staff, so the members of one account occupy at most one thread. Proxies end
the response to a reader who takes nothing (docs/operate/proxies.md).
"""

from collections.abc import Callable, Generator, Iterator
from time import monotonic

import structlog
from django.core.cache import cache
from django.db.models import Model
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from structlog.contextvars import get_contextvars

logger = structlog.get_logger(__name__)

WHOLE_BYTES = 4_000_000  # about 30,000 lines of a statement
# Building 4 MB of a compressed workbook takes minutes, and proxies wait one for the first byte.
WHOLE_SECONDS = 10
LONGEST_SECONDS = 600  # of one stream; as `write` in deploy/caddy/Caddyfile
# The mark outlives every stream. If a process dies while it streams, the account is blocked from
# another large file this long.
MARK_SECONDS = LONGEST_SECONDS + 60

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
    release = _begin(to)
    if release is None:
        return None
    return StreamingHttpResponse(_Rest(beginning, parts, release), headers=headers)


class _Rest:
    """Yields the parts. Django closes it when the file is sent or the reader disconnects."""

    def __init__(
        self, beginning: list[bytes], parts: Generator[bytes], release: Callable[[], None]
    ) -> None:
        self._beginning = beginning
        self._parts = parts
        self._release = release
        self._end = monotonic() + LONGEST_SECONDS
        # Keeps the request's id and user for a failure after the request has ended.
        self._log = logger.bind(**get_contextvars())

    def __iter__(self) -> Iterator[bytes]:
        try:
            for part in self._pieces():
                if monotonic() > self._end:
                    self._log.warning("download_too_slow")
                    yield INCOMPLETE
                    return
                yield part
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
        self._release()


def _begin(to: Model) -> Callable[[], None] | None:
    """Marks that they are being sent a large file, and returns what removes the mark.

    Returns None if there is a mark already. If the cache is down, files are sent without marks.
    """
    key = f"sending:{to._meta.label_lower}:{to.pk}"

    def release() -> None:
        try:
            cache.delete(key)
        except Exception as error:
            logger.warning("download_not_noted", cause=type(error).__name__)

    try:
        return release if cache.add(key, 1, MARK_SECONDS) else None
    except Exception as error:
        logger.warning("download_not_noted", cause=type(error).__name__)
        return release
