"""Turns SIGINT, SIGTERM and SIGHUP into an exception, so that `finally` blocks stop the servers."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked this process to stop. `except Exception` does not catch it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def ignore_signals() -> None:
    """Ignores further signals, so a second Ctrl-C does not interrupt the shutdown."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises Interrupted inside the block at the first signal, and ignores the later ones.

    A signal that was already ignored, as `nohup` does with SIGHUP, stays ignored.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        ignore_signals()
        raise Interrupted(number)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
