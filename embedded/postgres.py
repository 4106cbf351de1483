"""Runs a PostgreSQL server as a foreground child of this process.

A server started by `pg_ctl` would outlive a kill -9 of its parent and block the next start.
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
from embedded.environment import OWNER, SERVICE
from embedded.errors import EmbeddedError, PortTakenError
from embedded.locks import FileLock
from embedded.processes import Process, describe_exit, listen_error

FIRST_WITH_BUILTIN_LOCALES = 17
FIRST_WITH_SCRAM_ITERATIONS = 16
START_TIMEOUT = 120.0  # seconds: long enough for the crash recovery of a large database
STOP_TIMEOUT = 60.0  # seconds
# For tests, whose data may be lost in a power failure.
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
    """Runs the server of the data directory `folder`, which is created when missing.

    The caller holds `lock`, and every process of the server inherits it. The caller's lock proves
    that no process of an earlier server is left. A `postmaster.pid` left by a kill -9 is therefore
    stale, even when another process now has its process id. Raises EmbeddedError when the server
    does not start, PortTakenError when another program has the port.
    """
    runner = postgres_runner()
    _prepare(folder, runner, password=password, durable=durable)
    settings = [
        "listen_addresses=127.0.0.1",
        f"port={port}",
        "unix_socket_directories=",  # a long path does not fit into the address of a socket
        f"max_connections={max_connections}",
        *(() if durable else NOT_DURABLE),
    ]
    options = [part for setting in settings for part in ("-c", setting)]
    log = folder.with_name(f"{folder.name}.log")
    with log.open("wb") as output:
        server = Process(
            "postgres",
            [*runner.prefix, postgres_binary("postgres"), "-D", folder, *options],
            stop_signal=signal.SIGINT,  # fast shutdown: ends sessions and writes a checkpoint
            output=output,
            keep_open=[lock.descriptor],
        )
    try:
        _wait_until_ready(server, folder, log, port)
        yield server
    finally:
        server.stop(timeout=STOP_TIMEOUT)


def create_database(name: str, *, port: int, password: str) -> None:
    """Creates the database unless it exists."""
    with _as_owner(port, password) as connection:
        exists = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name])
        if exists.fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def create_service_role(service_password: str, *, port: int, password: str) -> None:
    """Gives the role of the service its password, and creates it unless it exists. `migrate` grants
    it the rights."""
    role = sql.Identifier(SERVICE)
    with _as_owner(port, password) as connection:
        exists = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [SERVICE])
        if exists.fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        connection.execute(
            sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, sql.Literal(service_password))
        )


def _as_owner(port: int, password: str) -> psycopg.Connection:
    return psycopg.connect(
        host="127.0.0.1",
        port=port,
        user=OWNER,
        password=password,
        dbname="postgres",
        autocommit=True,
    )


def _prepare(folder: Path, runner: Runner, *, password: str, durable: bool) -> None:
    if not folder.exists():
        _create(folder, runner, password=password, durable=durable)
    version = (folder / "PG_VERSION").read_text().strip()
    if int(version) != postgres_major_version():
        raise EmbeddedError(
            f"{folder} was created by PostgreSQL {version}, but PostgreSQL"
            f" {postgres_major_version()} is installed. Move the data with pg_dump, or remove the"
            " directory to start with empty data."
        )
    _change_owner(folder, os.geteuid() if runner.owner is None else runner.owner)
    (folder / "postmaster.pid").unlink(missing_ok=True)


def _create(folder: Path, runner: Runner, *, password: str, durable: bool) -> None:
    """Runs `initdb` in a temporary folder and renames it, so `folder` is complete or missing."""
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    _change_owner(unfinished, os.geteuid() if runner.owner is None else runner.owner)
    with tempfile.NamedTemporaryFile("w", dir=folder.parent) as secret:
        secret.write(password)
        secret.flush()
        initdb = subprocess.run(
            [
                *runner.prefix,
                postgres_binary("initdb"),
                f"--pgdata={unfinished}",
                f"--username={OWNER}",
                f"--pwfile={secret.name}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--data-checksums",
                *_locale_options(),
                *(() if durable else ("--no-sync", *_quick_passwords())),
            ],
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
    if initdb.returncode:
        raise EmbeddedError(f"initdb could not create the database: {_last_line(initdb.stderr)}")
    unfinished.rename(folder)


def _quick_passwords() -> Sequence[str]:
    """Options with which a connection takes a millisecond of processor time instead of six. Tests
    open thousands, and passwords of random bytes need no slow hash."""
    if postgres_major_version() >= FIRST_WITH_SCRAM_ITERATIONS:
        return ("--set=scram_iterations=1",)
    return ()


def _locale_options() -> Sequence[str]:
    """Options that sort text in the same order on every machine."""
    if postgres_major_version() >= FIRST_WITH_BUILTIN_LOCALES:
        return ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
    return ("--locale=C.UTF-8",)


def _change_owner(folder: Path, owner: int) -> None:
    """Gives the files to `owner`. For root, the owner changes between runs with the runner."""
    if folder.stat().st_uid == owner:
        return
    if os.geteuid() != 0:
        raise EmbeddedError(
            f"{folder} belongs to another user. Run this as that user, or remove the directory to"
            " start with empty data."
        )
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def _wait_until_ready(server: Process, folder: Path, log: Path, port: int) -> None:
    """Waits until the server writes to `postmaster.pid` that it accepts connections."""
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        if (code := server.exit_code()) is not None:
            if taken := listen_error("127.0.0.1", port):
                raise PortTakenError(f"PostgreSQL did not start on port {port}: {taken}")
            reason = _last_line(log.read_text(errors="replace"))
            raise EmbeddedError(f"PostgreSQL did not start ({describe_exit(code)}): {reason}")
        if _server_status(folder / "postmaster.pid") == "ready":
            return
        time.sleep(0.02)
    raise EmbeddedError(f"PostgreSQL was not ready after {START_TIMEOUT:.0f} s. See {log}.")


def _server_status(pid_file: Path) -> str:
    try:
        lines = pid_file.read_text().splitlines()
    except FileNotFoundError:
        return ""
    return "".join(lines[7:8]).strip()


def _last_line(text: str) -> str:
    """The last line with an error, or the last line when there is none."""
    lines = [line for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if "FATAL" in line or "error:" in line]
    return (fatal or lines or ["it wrote no message"])[-1].strip()
