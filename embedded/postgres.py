"""A PostgreSQL server as a foreground child of this process.

Never by `pg_ctl`: a server it started lives on after a kill -9 of everything else, and then keeps
the next one from starting.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from embedded.binaries import (
    Runner,
    postgres_binary,
    postgres_major_version,
    postgres_runner,
)
from embedded.errors import EmbeddedError
from embedded.locks import FileLock
from embedded.processes import Process, describe_exit

USER = "postgres"
FIRST_WITH_LOCALES_OF_ITS_OWN = 17
# Long enough for the crash recovery of a large database.
START_PATIENCE = 120.0
STOP_PATIENCE = 60.0
# For tests: nothing has to survive the machine's power supply.
NOT_DURABLE = ("fsync=off", "full_page_writes=off")


@contextmanager
def running_postgres(
    folder: Path,
    *,
    port: int,
    password: str,
    lock: FileLock,
    max_connections: int = 100,
    durable: bool = True,
) -> Iterator[Process]:
    """Run the server of the data directory `folder`, which is created when missing.

    The caller has acquired `lock`, and every process of the server inherits it. So no such process
    is left from before, and a `postmaster.pid` that a kill -9 left behind is stale for certain,
    even if its process id lives again as something else.
    """
    runner = postgres_runner()
    _prepare(folder, runner, password=password, durable=durable)
    settings = [
        "listen_addresses=127.0.0.1",
        f"port={port}",
        "unix_socket_directories=",  # a deep path does not fit into a socket's address
        f"max_connections={max_connections}",
        *(() if durable else NOT_DURABLE),
    ]
    options = [part for setting in settings for part in ("-c", setting)]
    log = folder.with_name(f"{folder.name}.log")
    with log.open("wb") as output:
        server = Process(
            "postgres",
            [*runner.prefix, postgres_binary("postgres"), "-D", folder, *options],
            stop_signal=signal.SIGINT,  # "fast": ends sessions, writes a checkpoint
            output=output,
            keep_open=[lock.descriptor],
        )
    try:
        _wait_until_ready(server, folder, log)
        yield server
    finally:
        server.stop(patience=STOP_PATIENCE)


def create_database(name: str, *, port: int, password: str) -> None:
    """Create the database unless it is there."""
    with psycopg.connect(
        host="127.0.0.1", port=port, user=USER, password=password, dbname="postgres"
    ) as connection:
        connection.autocommit = True
        exists = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name])
        if exists.fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _prepare(folder: Path, runner: Runner, *, password: str, durable: bool) -> None:
    if not folder.exists():
        _create(folder, runner, password=password, durable=durable)
    made_by = (folder / "PG_VERSION").read_text().strip()
    if int(made_by) != postgres_major_version():
        raise EmbeddedError(
            f"{folder} was made by PostgreSQL {made_by} and this is {postgres_major_version()}: "
            "move the data with pg_dump, or remove the directory to start anew."
        )
    _change_owner(folder, os.geteuid() if runner.owner is None else runner.owner)
    (folder / "postmaster.pid").unlink(missing_ok=True)


def _create(folder: Path, runner: Runner, *, password: str, durable: bool) -> None:
    """`initdb` beside the final place, then rename: an interrupted one leaves nothing half done."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    _change_owner(unfinished, os.geteuid() if runner.owner is None else runner.owner)
    with tempfile.NamedTemporaryFile("w", dir=folder.parent) as secret:
        secret.write(password)
        secret.flush()
        made = subprocess.run(
            [
                *runner.prefix,
                postgres_binary("initdb"),
                f"--pgdata={unfinished}",
                f"--username={USER}",
                f"--pwfile={secret.name}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--data-checksums",
                *_locale_options(),
                *(() if durable else ("--no-sync",)),
            ],
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
    if made.returncode:
        raise EmbeddedError(f"PostgreSQL could not create its data: {_last_line(made.stderr)}")
    unfinished.rename(folder)


def _locale_options() -> Sequence[str]:
    """The same order of text on every machine, whatever its locales are."""
    if postgres_major_version() >= FIRST_WITH_LOCALES_OF_ITS_OWN:
        return ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
    return ("--locale=C.UTF-8",)


def _change_owner(folder: Path, owner: int) -> None:
    """Root may have run this server as itself (in a namespace) before, and as nobody now."""
    if folder.stat().st_uid == owner:
        return
    if os.geteuid() != 0:
        raise EmbeddedError(
            f"{folder} belongs to another user: run this as that user, or remove it to start anew."
        )
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def _wait_until_ready(server: Process, folder: Path, log: Path) -> None:
    """The server itself notes in `postmaster.pid` when it takes connections."""
    deadline = time.monotonic() + START_PATIENCE
    while time.monotonic() < deadline:
        if (code := server.exit_code()) is not None:
            reason = _last_line(log.read_text(errors="replace"))
            raise EmbeddedError(f"PostgreSQL did not start ({describe_exit(code)}): {reason}")
        if _noted_status(folder / "postmaster.pid") == "ready":
            return
        time.sleep(0.02)
    raise EmbeddedError(f"PostgreSQL was not ready after {START_PATIENCE:.0f} s; see {log}.")


def _noted_status(pid_file: Path) -> str:
    try:
        lines = pid_file.read_text().splitlines()
    except FileNotFoundError:
        return ""
    return "".join(lines[7:8]).strip()


def _last_line(text: str) -> str:
    """The line that says why: the last fatal one, or the last one at all."""
    lines = [line for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if "FATAL" in line or "error:" in line]
    return (fatal or lines or ["it said nothing"])[-1].strip()
