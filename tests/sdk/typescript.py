"""The TypeScript library for tests: installs its compiler, and compiles it."""

import fcntl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedded.environment import PROJECT

LIBRARY = PROJECT / "sdk" / "typescript"
NODES = Path(__file__).parent  # its package.json lists versions of Node.js


def install(folder: Path = LIBRARY) -> Path:
    """Installs what the folder's package.json lists, once for all processes of tests. Returns the
    folder of the packages."""
    with _alone(folder):
        _install(folder)
    return folder / "node_modules"


def build() -> None:
    """Compiles the library, unless it is compiled."""
    with _alone(LIBRARY):
        _install(LIBRARY)
        built = LIBRARY / "dist" / "cjs" / "package.json"
        sources = max(path.stat().st_mtime for path in (LIBRARY / "src").iterdir())
        if not built.exists() or built.stat().st_mtime < sources:
            subprocess.run(["node", "build.mjs"], cwd=LIBRARY, check=True)


def oldest_node() -> str:
    """The oldest Node.js with which the library works."""
    return str(install(NODES) / "node-18" / "bin" / "node")


def newest_node() -> str:
    """A Node.js with `node:sqlite`."""
    return str(install(NODES) / "node-24" / "bin" / "node")


def _install(folder: Path) -> None:
    listed, lock = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if not lock.exists() or lock.stat().st_mtime < listed.stat().st_mtime:
        subprocess.run(["npm", "ci", "--silent"], cwd=folder, check=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / "package.json").open() as package:
        fcntl.flock(package, fcntl.LOCK_EX)
        yield
