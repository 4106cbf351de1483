"""Runs a streaming replica of a PostgreSQL server."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from embedded.binaries import postgres_binary, postgres_runner
from embedded.locks import FileLock
from embedded.postgres import running_postgres
from embedded.processes import free_port
from tests.tasks.running import wait_until


@contextmanager
def replica_of(primary: str, folder: Path) -> Iterator[str]:
    """Copies the primary and runs the copy as its replica. Yields its URL. Main thread only."""
    at = urlsplit(primary)
    assert at.hostname
    data, port = folder / "postgres", free_port()
    options = [f"--pgdata={data}", f"--dbname={primary}", "--checkpoint=fast"]
    program: list[str | Path] = [*postgres_runner().prefix, postgres_binary("pg_basebackup")]
    subprocess.run([*program, *options, "--write-recovery-conf"], check=True, capture_output=True)
    with FileLock(folder / "servers.lock") as lock:
        assert lock.acquire()
        with running_postgres(data, port=port, password=at.password or "", lock=lock):
            yield primary.replace(f":{at.port}/", f":{port}/")


def wait_until_caught_up(primary: str, replica: str) -> None:
    """Waits until the replica has every transaction that the primary committed before the call."""
    with psycopg.connect(primary) as connection:
        row = connection.execute("SELECT pg_current_wal_lsn()").fetchone()
    assert row
    with psycopg.connect(replica, autocommit=True) as connection:

        def caught_up() -> bool:
            seen = connection.execute(
                "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [row[0]]
            ).fetchone()
            return bool(seen and seen[0])

        wait_until(caught_up, "the replica has caught up")
