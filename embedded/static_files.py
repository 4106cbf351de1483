"""The collected static files of `make run`, shared by all runs of this checkout."""

from collections.abc import Iterator
from contextlib import contextmanager

from embedded.environment import PROJECT, VAR
from embedded.errors import EmbeddedError
from embedded.locks import FileLock

STATIC_ROOT = VAR / "static"
LOCK_TIMEOUT = 120.0  # seconds


@contextmanager
def up_to_date_static_files() -> Iterator[bool]:
    """Yields whether the block must collect the files. A lock keeps two runs from doing so at once.

    Collecting takes seconds, so it is skipped while no file of ours and no package has changed.
    """
    VAR.mkdir(mode=0o700, exist_ok=True)
    with FileLock(VAR / "static.lock") as lock:
        if not lock.acquire(timeout=LOCK_TIMEOUT):
            raise EmbeddedError("Another run has collected static files for two minutes: stop it.")
        yield _collection_time() < _change_time()


def _collection_time() -> float:
    manifest = STATIC_ROOT / "staticfiles.json"
    return manifest.stat().st_mtime if manifest.is_file() else 0.0


def _change_time() -> float:
    sources = [
        *PROJECT.glob("*/static/**/*"),
        *PROJECT.glob("operators/*/static/**/*"),
        PROJECT / "config" / "settings.py",
        PROJECT / "requirements" / "embedded.txt",
    ]
    return max(path.stat().st_mtime for path in sources if VAR not in path.parents)
