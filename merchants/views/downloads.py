"""Sending files whose size nobody knows, beside purchases that must not wait.

A web process has few threads. While one streams, it waits for whoever reads, however slowly, and
serves nobody else. So what fits into a few megabytes is made at once and handed over whole: then
the server sends it beside its work. Only more than that is streamed, and for one account one file
at a time, so that a merchant's people hold one thread at most.
"""

from collections.abc import Callable, Generator, Iterator

import structlog
from django.core.cache import cache
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from structlog.contextvars import get_contextvars

from accounts.models import Account

logger = structlog.get_logger(__name__)

WHOLE_BYTES = 4_000_000  # some 30,000 lines of a statement
# A process that died while it sent leaves its mark; for so long.
LONGEST_SECONDS = 600


def send_file(
    parts: Generator[bytes], *, account: Account, content_type: str, name: str
) -> HttpResponseBase | None:
    """The answer that sends these parts as a file. None where another large one of the account is
    on its way."""
    headers = {
        "Content-Type": content_type,
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    beginning: list[bytes] = []
    size = 0
    for part in parts:
        beginning.append(part)
        size += len(part)
        if size > WHOLE_BYTES:
            break
    else:
        return HttpResponse(b"".join(beginning), headers=headers)
    release = _begin(account)
    if release is None:
        return None
    return StreamingHttpResponse(_Rest(beginning, parts, release), headers=headers)


class _Rest:
    """The parts; closed when they are sent, or when nobody reads any more."""

    def __init__(
        self, beginning: list[bytes], parts: Generator[bytes], release: Callable[[], None]
    ) -> None:
        self._beginning = beginning
        self._parts = parts
        self._release = release
        self._log = logger.bind(**get_contextvars())  # whose request this is, also when it is over

    def __iter__(self) -> Iterator[bytes]:
        while self._beginning:
            yield self._beginning.pop(0)
        try:
            yield from self._parts
        except Exception:  # its 200 is sent and logged already: this line is all that tells of it
            self._log.exception("download_failed")
            raise

    def close(self) -> None:
        self._parts.close()
        self._release()


def _begin(account: Account) -> Callable[[], None] | None:
    """Notes that a file is being sent; returns what ends that. None where one is already.

    Without the cache nothing is noted, and files are sent all the same.
    """
    key = f"merchants:sending:{account.pk}"

    def release() -> None:
        try:
            cache.delete(key)
        except Exception as error:
            logger.warning("download_not_noted", cause=type(error).__name__)

    try:
        return release if cache.add(key, 1, LONGEST_SECONDS) else None
    except Exception as error:
        logger.warning("download_not_noted", cause=type(error).__name__)
        return release
