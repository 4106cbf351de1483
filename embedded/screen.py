"""Prints the output of several threads to the terminal."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Screen:
    """Prints whole lines from any thread, and steps with their duration."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_a_step = False

    def line(self, text: str) -> None:
        with self._lock:
            self._print("\n" if self._in_a_step else "", text, "\n")
            self._in_a_step = False

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Prints `what ... 1.2 s` around the block. Lines printed meanwhile start on a new line."""
        since = time.monotonic()
        with self._lock:
            self._print(f"{what} ... ")
            self._in_a_step = True
        try:
            yield
        except BaseException:
            self._end_step("", what)
            raise
        self._end_step(f"{time.monotonic() - since:.1f} s", what)

    def _end_step(self, result: str, what: str) -> None:
        with self._lock:
            if self._in_a_step:
                self._print(result, "\n")
            elif result:
                self._print(f"{what} ... {result}\n")
            self._in_a_step = False

    def _print(self, *parts: str) -> None:
        with suppress(OSError):  # a closed terminal must not stop the service
            sys.stdout.write("".join(parts))
            sys.stdout.flush()
