"""An exclusive file lock that the kernel releases when its holders end."""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self


class FileLock:
    """An exclusive lock, held until every process that has its descriptor open has ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, *, timeout: float = 0) -> bool:
        """Waits at most `timeout` seconds. Returns whether the lock was acquired."""
        deadline = time.monotonic() + timeout
        while not self._try():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        return True

    def write(self, text: str) -> None:
        """Writes a text into the lock file, for a process that finds the lock held."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, text.encode(), 0)

    def read(self) -> str:
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
