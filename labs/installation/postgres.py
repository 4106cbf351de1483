"""Runs a durable PostgreSQL that a test may kill. The suite's own server has fsync off."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from embedded.environment import DATABASE, FOR_MIGRATE_ONLY, FOR_TESTED_SERVICE, Addresses
from embedded.locks import FileLock
from embedded.postgres import create_database, create_service_role, running_postgres
from embedded.processes import Process
from tests.database import django_uses, load_schema


class DurablePostgres:
    """A server that a test can kill and restart with the same data and port."""

    def __init__(self, folder: Path, lock: FileLock) -> None:
        self._folder = folder
        self._lock = lock
        # The role of the service has the same password on all servers of the tests.
        service = urlsplit(os.environ[FOR_TESTED_SERVICE]).password or ""
        self._addresses = replace(Addresses.fresh(), service_password=service)
        self._running = ExitStack()
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """For the test itself, as the owner."""
        return self._addresses.urls()[FOR_MIGRATE_ONLY]

    def prepare(self) -> None:
        """Creates the database and the service's role."""
        port, password = self._addresses.postgres_port, self._addresses.postgres_password
        create_database(DATABASE, port=port, password=password)
        create_service_role(self._addresses.service_password, port=port, password=password)

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Starts the server and waits until it accepts connections. Main thread only."""
        self._process = self._running.enter_context(
            running_postgres(
                self._folder / "postgres",
                port=self._addresses.postgres_port,
                password=self._addresses.postgres_password,
                lock=self._lock,
            )
        )

    def kill(self) -> None:
        """Kills all processes of the server at once. Data not yet written to the kernel is lost."""
        assert self._process is not None
        postmaster = self._process.pid
        os.kill(postmaster, signal.SIGSTOP)  # it must not restart the killed processes
        for pid in [*children_of(postmaster), postmaster]:
            os.kill(pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        self._running.close()


@contextmanager
def durable_postgres() -> Iterator[DurablePostgres]:
    """Runs a server with an empty, migrated database, which Django uses inside the block."""
    with (
        tempfile.TemporaryDirectory(prefix="voucher-", ignore_cleanup_errors=True) as place,
        FileLock(Path(place) / "servers.lock") as lock,
    ):
        assert lock.acquire()
        server = DurablePostgres(Path(place), lock)
        server.start()
        try:
            server.prepare()
            load_schema(server.url)
            with django_uses(server.url):
                yield server
        finally:
            server.stop()


def children_of(pid: int) -> list[int]:
    """The child processes, of all threads; none of a process that has ended."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, children.read_text().split())
        except OSError:  # the process has ended meanwhile
            continue
    return found
