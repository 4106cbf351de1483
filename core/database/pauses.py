"""How a job of many short transactions spares the purchases beside it.

It sleeps between them, and sets `synchronous_commit` off in each, so that its commits do not wait
for the disk that purchases need. A crash may lose the last of them, and the next run repeats
what was lost. PostgreSQL writes its log in order, so whatever is committed durably afterwards makes
them durable, too.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

DELETING = 9  # times as long as its work a job rests: it works a tenth of its time
# Counting needs the processor, and deleting mostly the disk. On two cores a purchase took half as
# long again while a transaction counted, however short that was. So a count works a fiftieth.
COUNTING = 49
LONGEST = 1.0  # seconds: a slow transaction must not use up the time of its task


@contextmanager
def pause_afterwards(times_as_long: int = DELETING) -> Iterator[None]:
    """Sleeps `times_as_long` times as long as the block took, and at most a second."""
    began = time.monotonic()
    yield
    # Nothing is waited for: the purchases beside the job have the disk and the processor meanwhile.
    time.sleep(min(times_as_long * (time.monotonic() - began), LONGEST))
