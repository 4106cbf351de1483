"""How a job of many short transactions spares the purchases beside it.

It sleeps between them, and sets `synchronous_commit` off in each, so that its commits do not wait
for the disk that purchases need. A crash may lose the last of them, and the next run repeats
what was lost. PostgreSQL writes its log in order, so whatever is committed durably afterwards makes
them durable, too.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TIMES_AS_LONG = 9  # a job of many short transactions works a tenth of its time
LONGEST = 1.0  # seconds: a slow transaction must not use up the time of its task


@contextmanager
def pause_afterwards() -> Iterator[None]:
    """Sleeps TIMES_AS_LONG times as long as the block took, and at most a second."""
    began = time.monotonic()
    yield
    time.sleep(min(TIMES_AS_LONG * (time.monotonic() - began), LONGEST))


def work_in_steps(step: Callable[[], int], *, seconds: float) -> int:
    """Calls `step` with a pause after each call, until it has nothing to do or the time is up.

    `step` returns how many rows it handled. Returns the sum. No step starts after `seconds`.
    """
    deadline = time.monotonic() + seconds
    total = 0
    while True:
        with pause_afterwards():
            number = step()
        total += number
        if not number or time.monotonic() > deadline:
            return total
