"""Helpers that run the embedded servers, in this process or under a supervisor process."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from embedded.environment import FILE_NAME, FOR_MIGRATE_ONLY, PROJECT, read_env_file
from embedded.locks import FileLock
from embedded.servers import run_lock, stored_servers

TIMEOUT = 120


def command(*arguments: str | Path) -> list[str | Path]:
    return [sys.executable, "-m", "embedded", *arguments]


@contextmanager
def servers(var: Path) -> Iterator[dict[str, str]]:
    """Runs the servers as children of this process, which is faster. Yields their environment."""
    with run_lock(var), stored_servers(var) as running:
        yield running.environment


@contextmanager
def supervised_servers(var: Path) -> Iterator[subprocess.Popen[str]]:
    """Runs `python -m embedded servers`. Yields its process, which is stopped at the end."""
    supervisor = subprocess.Popen(
        command("servers", "--var", var),
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert supervisor.stdout
    with supervisor.stdout as lines:
        said = []
        for line in lines:
            said.append(line)
            if "Ctrl-C" in line:
                break
        assert "Ctrl-C" in said[-1], said
        try:
            yield supervisor
        finally:
            if supervisor.poll() is None:
                supervisor.send_signal(signal.SIGTERM)
            said += lines
            supervisor.wait(TIMEOUT)


def connect(var: Path) -> psycopg.Connection:
    """Connects as the owner."""
    url = read_env_file(var / FILE_NAME)[FOR_MIGRATE_ONLY]
    return psycopg.connect(url, autocommit=True)


def postmaster(var: Path) -> int:
    """The process id of the running PostgreSQL."""
    return int((var / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def all_servers_ended(var: Path) -> bool:
    """Whether no server process is left. Each of them holds the lock that is acquired here."""
    with FileLock(var / "servers.lock") as lock:
        return lock.acquire(timeout=TIMEOUT)


def copy_of(var: Path, target: Path) -> Path:
    """Copies `var` with its owners: when the tests run as root, nobody may own the data."""
    subprocess.run(["cp", "--archive", var, target], check=True)
    return target
