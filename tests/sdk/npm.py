"""Installs the packages of npm that tests need."""

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def install(folder: Path) -> Path:
    """Installs what the folder's package.json lists, once for all processes of tests. Returns the
    folder of the packages."""
    listed, lock = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    with alone(folder):
        if not lock.exists() or lock.stat().st_mtime < listed.stat().st_mtime:
            subprocess.run(["npm", "ci", "--silent"], cwd=folder, check=True)
    return folder / "node_modules"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keeps other processes from working in the folder."""
    with (folder / "package.json").open() as package:
        fcntl.flock(package, fcntl.LOCK_EX)
        yield
