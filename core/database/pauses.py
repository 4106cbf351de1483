"""Pauses of a job between its transactions, for the purchases beside it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

TIMES_AS_LONG = 3  # a job of many short transactions works a quarter of its time


@contextmanager
def pause_afterwards() -> Iterator[None]:
    """Sleeps for three times as long as the block took."""
    began = time.monotonic()
    yield
    time.sleep(TIMES_AS_LONG * (time.monotonic() - began))
