"""The version from which an upgrade starts: the last release.

`upgrade_from.txt` names its commit, because a clone may have no tags. `make release` writes it.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from embedded.environment import PROJECT

UPGRADE_FROM = Path(__file__).with_name("upgrade_from.txt")
MIGRATION = re.compile(r"^(?:operators/)?(\w+)/migrations/(\d{4}_\w+)\.py$")


def old_commit() -> str:
    """The full hash of the commit."""
    return UPGRADE_FROM.read_text().strip()


def has_history() -> bool:
    """Whether this is a clone that contains the old version. An unpacked archive is none."""
    if not shutil.which("git"):
        return False
    found = subprocess.run(
        ["git", "cat-file", "-e", f"{old_commit()}^{{commit}}"],
        cwd=PROJECT,
        capture_output=True,
        check=False,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(PROJECT.parent)},
    )
    return found.returncode == 0


def extract(folder: Path) -> None:
    """Writes the files of the old version into this folder."""
    archive = folder / "old.tar"
    _git("archive", f"--output={archive}", old_commit())
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    archive.unlink()


def install(folder: Path) -> None:
    """Writes the files of the old version into this folder, and installs its packages there."""
    extract(folder)
    make = ["make", "--silent", "install", f"PYTHON={sys.executable}"]
    installed = subprocess.run(make, cwd=folder, capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stdout + installed.stderr


@cache
def old_migrations() -> frozenset[tuple[str, str]]:
    """The migrations that the old version has, such as ("orders", "0001_initial")."""
    found = (MIGRATION.match(path) for path in _git("ls-tree", "-r", "--name-only", old_commit()))
    return frozenset((match[1], match[2]) for match in found if match)


def old_text(path: Path) -> str:
    """A file of the old version; `path` is where it is, or would be, in this one."""
    return "\n".join(_git("show", f"{old_commit()}:{path.relative_to(PROJECT)}"))


def _git(*arguments: str) -> list[str]:
    shown = subprocess.run(
        ["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return shown.stdout.splitlines()
