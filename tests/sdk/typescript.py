"""The TypeScript library for tests: installs its compiler, and compiles it."""

import fcntl
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from embedded.environment import PROJECT

LIBRARY = PROJECT / "sdk" / "typescript"
_LOCK = LIBRARY / "node_modules" / ".package-lock.json"


def install() -> None:
    """Installs the packages for its development, once for all processes of tests."""
    with _alone():
        _install()


def build() -> None:
    """Compiles the library, unless it is compiled."""
    with _alone():
        _install()
        built = LIBRARY / "dist" / "cjs" / "package.json"
        sources = max(path.stat().st_mtime for path in (LIBRARY / "src").iterdir())
        if not built.exists() or built.stat().st_mtime < sources:
            subprocess.run(["node", "build.mjs"], cwd=LIBRARY, check=True)


def has_sqlite() -> bool:
    """Whether this Node.js has SQLite without an option."""
    if not shutil.which("node"):
        return False
    shown = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    numbers = re.findall(r"\d+", shown.stdout)
    return (int(numbers[0]), int(numbers[1])) >= (22, 13)


needs_sqlite = pytest.mark.skipif(
    not has_sqlite(), reason="node:sqlite needs Node.js 22.13 or newer"
)


def _install() -> None:
    listed = (LIBRARY / "package-lock.json").stat().st_mtime
    if not _LOCK.exists() or _LOCK.stat().st_mtime < listed:
        subprocess.run(["npm", "ci", "--silent"], cwd=LIBRARY, check=True)


@contextmanager
def _alone() -> Iterator[None]:
    with (LIBRARY / "package.json").open() as package:
        fcntl.flock(package, fcntl.LOCK_EX)
        yield
