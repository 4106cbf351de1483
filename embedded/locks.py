"""File locks that end with their holders, however those end."""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self


class FileLock:
    """An exclusive lock, held until the last process that has its descriptor open ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, *, patience: float = 0) -> bool:
        deadline = time.monotonic() + patience
        while not self._try():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        return True

    def note(self, text: str) -> None:
        """Leave a word for whoever finds the lock taken."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, text.encode(), 0)

    def noted(self) -> str:
        return self.path.read_text()

    def _try(self) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.descriptor)
