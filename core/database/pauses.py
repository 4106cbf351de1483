"""How a job of many short transactions spares the purchases beside it.

It sleeps between them, and sets `synchronous_commit` off in each, so that its commits do not wait
for the disk that purchases need. A crash may lose the last of them, and the next run repeats
what was lost. PostgreSQL writes its log in order, so whatever is committed durably afterwards makes
them durable, too.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

TIMES_AS_LONG = 9  # as its work a job rests
LONGEST = 1.0  # seconds: a slow transaction must not use up the time of its task


@contextmanager
def pause_afterwards() -> Iterator[None]:
    """Sleeps nine times as long as the block took, and at most a second."""
    began = time.monotonic()
    yield
    # Purchases have the disk and the processor during this sleep.
    time.sleep(min(TIMES_AS_LONG * (time.monotonic() - began), LONGEST))
