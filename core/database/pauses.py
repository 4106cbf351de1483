"""How a job of many short transactions spares the purchases beside it.

It sleeps between them, and sets `synchronous_commit` off in each, so that its commits do not wait
for the disk that purchases need. A crash may lose the last of them, and the next run repeats
what was lost. PostgreSQL writes its log in order, so whatever is committed durably afterwards makes
them durable, too.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

# How many times as long as its work a job rests. On two cores a purchase took half as long again
# while a transaction counted, even a short one: counting uses the processor, deleting mostly the
# disk. So a count works at most a fiftieth of its time, unless a transaction takes over 20 ms.
DELETING = 9
COUNTING = 49
LONGEST = 1.0  # seconds: a slow transaction must not use up the time of its task


@contextmanager
def pause_afterwards(times_as_long: int = DELETING) -> Iterator[None]:
    """Sleeps `times_as_long` times as long as the block took, and at most a second."""
    began = time.monotonic()
    yield
    # Purchases have the disk and the processor during this sleep.
    time.sleep(min(times_as_long * (time.monotonic() - began), LONGEST))
