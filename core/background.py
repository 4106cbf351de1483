"""Work that a process repeats beside its requests, such as writing what it has counted."""

import threading
import time
from collections.abc import Callable
from typing import NoReturn


def repeat(work: Callable[[], object], *, seconds: float, name: str) -> None:
    """Calls `work` every so many seconds, in a thread that ends with the process.

    An exception ends the thread, so `work` must handle its own.
    """

    def run() -> NoReturn:
        while True:
            time.sleep(seconds)
            work()

    threading.Thread(target=run, name=name, daemon=True).start()
