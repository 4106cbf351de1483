"""Ctrl-C, SIGTERM and a closed terminal, as one exception that unwinds everything in order."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """Somebody asked us to stop. No error: nothing that handles errors may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def stop_listening() -> None:
    """From here on we are stopping anyway, and a second Ctrl-C must not cut that short."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` at the first of these signals, and ignore the rest.

    One that is ignored already stays so: that is how `nohup` asks for it.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        stop_listening()
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
