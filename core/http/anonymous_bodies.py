"""Reads the bodies of visitors who have not signed in, one at a time in each web process.

Granian has no timeout for request bodies. Reading one holds a thread that could sell, and the read
cannot be cancelled: a response that is sent while another thread still reads blocks the whole
process. So a slow body may hold one thread. The forms of other visitors are then refused, and all
other threads go on selling (docs/operate/proxies.md).
"""

import time
from threading import Lock

from django.http import HttpRequest
from django.http.request import UnreadablePostError

# A body that arrived with its headers is read within a millisecond. A visitor whose turn
# lasts longer than this is slow, and no other request waits for them.
TURN_SECONDS = 0.05


class Turn:
    """The right to read a visitor's body. One request of the process has it at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._began = 0.0  # time.monotonic()

    def take(self) -> bool:
        """Takes the turn. Waits for a holder who is not slow yet; returns False for a slow one."""
        left = self._began + TURN_SECONDS - time.monotonic()
        taken = self._lock.acquire(timeout=max(0.0, left))
        if taken:
            self._began = time.monotonic()
        return taken

    def end(self) -> None:
        self._lock.release()


_turn = Turn()


def read_in_turn(request: HttpRequest) -> bool:
    """Reads the body into `request.body`. Returns False if another body is slow: it is unread."""
    if not _turn.take():
        return False
    try:
        _ = request.body
    except UnreadablePostError:  # the visitor disconnected; the view finds no form either
        pass
    finally:
        _turn.end()
    return True
