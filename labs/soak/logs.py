"""Reads all logs while they are written, and looks for secrets and errors in them.

A collector on a real host does the same: it follows each file and ships what was added.
"""

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

CHUNK = 1 << 20


class LogReader:
    """Follows every log below some folders.

    `leaks` says which secret was found in which file. `errors` counts the error lines of the
    application by their event. `damaged` counts those that are cut off, as on a full disk.
    """

    def __init__(self, folders: Sequence[Path], secrets: dict[str, str]) -> None:
        self._folders = folders
        self._secrets = {name: secret.encode() for name, secret in secrets.items()}
        self._offsets: Counter[Path] = Counter()
        self._rest: dict[Path, bytes] = {}
        self._lock = threading.Lock()
        self.damaged = 0
        self.leaks: set[str] = set()
        self.errors: Counter[str] = Counter()
        self.bytes = 0

    def read(self) -> None:
        """Reads what was added since the last call."""
        with self._lock:
            for file in self._files():
                while self._read(file):
                    pass

    def _files(self) -> Iterator[Path]:
        for folder in self._folders:
            yield from (each for each in folder.glob("*.log") if each.is_file())

    def _read(self, file: Path) -> bool:
        """Whether there may be more to read."""
        if file.stat().st_size < self._offsets[file]:  # a server that starts empties its log
            self._offsets[file], self._rest[file] = 0, b""
        with file.open("rb") as log:
            log.seek(self._offsets[file])
            added = log.read(CHUNK)
        self._offsets[file] += len(added)
        self.bytes += len(added)
        text = self._rest.get(file, b"") + added
        self._look_for_secrets(file.name, text)
        *lines, self._rest[file] = text.split(b"\n")
        for line in lines:
            self._line(line)
        return len(added) == CHUNK

    def _look_for_secrets(self, name: str, text: bytes) -> None:
        for what, secret in self._secrets.items():
            if secret in text:
                self.leaks.add(f"{what} in {name}")

    def _line(self, line: bytes) -> None:
        if b'"level":"error"' in line:
            self._count_error(line)

    def _count_error(self, line: bytes) -> None:
        try:
            self.errors[str(json.loads(line).get("event"))] += 1
        except ValueError:
            self.damaged += 1
