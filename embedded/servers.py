"""Runs both servers: with data kept in `var/`, or temporary ones for one command."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from embedded.environment import (
    DATABASE,
    FILE_NAME,
    FOR_MIGRATE_ONLY,
    FOR_TESTED_SERVICE,
    Addresses,
    new_secrets,
    stored_values,
    write_env_file,
)
from embedded.errors import EmbeddedError, PortTakenError
from embedded.locks import FileLock
from embedded.postgres import create_database, create_service_role, running_postgres
from embedded.processes import Process
from embedded.valkey import running_valkey

TEMPORARY_MAX_CONNECTIONS = 300  # several test processes with many threads each
KEPT_MAX_CONNECTIONS = 100
# Seconds. After a kill -9, the servers of the earlier run may still be stopping.
LOCK_TIMEOUT = 60.0
# Another program may take a port between the check that it is free and the start of the server.
START_ATTEMPTS = 5


@dataclass(frozen=True)
class Servers:
    """The running servers, and the environment variables that an application needs to use them."""

    environment: dict[str, str]
    processes: tuple[Process, ...]


@contextmanager
def temporary_servers(*, durable: bool = True) -> Iterator[Servers]:
    """Runs empty servers and deletes their data at the end. Raises EmbeddedError."""
    addresses = Addresses.fresh()
    values = new_secrets()
    values["DJANGO_ALLOWED_HOSTS"] += ",testserver"
    with (
        tempfile.TemporaryDirectory(prefix="voucher-", ignore_cleanup_errors=True) as place,
        _run_servers(
            Path(place), addresses, max_connections=TEMPORARY_MAX_CONNECTIONS, durable=durable
        ) as (addresses, processes),
    ):
        yield Servers(values | _for_tests(addresses.urls()), processes)


def _for_tests(urls: dict[str, str]) -> dict[str, str]:
    """The command connects as the owner of the tables. It finds the URL of the service's role in
    FOR_TESTED_SERVICE. FOR_MIGRATE_ONLY is emptied: a value from the shell would lead `migrate` to
    another database."""
    owner, service = urls[FOR_MIGRATE_ONLY], urls["DATABASE_URL"]
    return {**urls, "DATABASE_URL": owner, FOR_TESTED_SERVICE: service, FOR_MIGRATE_ONLY: ""}


@contextmanager
def run_lock(var: Path) -> Iterator[None]:
    """Holds the lock of `var`: one process at a time may run its servers.

    Raises EmbeddedError when another process holds the lock, or when `var` belongs to another user.
    """
    var.mkdir(mode=0o700, exist_ok=True)
    if var.stat().st_uid != os.geteuid():
        raise EmbeddedError(f"{var} belongs to another user. Run this as that user, or remove it.")
    var.chmod(0o700)
    with FileLock(var / "run.lock") as lock:
        if not lock.acquire():
            raise EmbeddedError(f"Already running as process {lock.read()}. Stop it first.")
        lock.write(str(os.getpid()))
        yield


@contextmanager
def stored_servers(var: Path) -> Iterator[Servers]:
    """Runs the servers whose data and secrets are in `var`. Call it inside `run_lock`.

    Raises EmbeddedError when a server does not start or when the secrets of the data are missing.
    """
    stored = stored_values(var)
    addresses = Addresses.from_urls(stored).moved_if_taken() if stored else Addresses.fresh()
    values = new_secrets() | stored | addresses.urls()
    write_env_file(var / FILE_NAME, values)  # before there is data that needs these secrets
    with _run_servers(var, addresses, max_connections=KEPT_MAX_CONNECTIONS, durable=True) as (
        addresses,
        processes,
    ):
        values |= addresses.urls()
        write_env_file(var / FILE_NAME, values)
        yield Servers(values, processes)


@contextmanager
def _run_servers(
    place: Path, addresses: Addresses, *, max_connections: int, durable: bool
) -> Iterator[tuple[Addresses, tuple[Process, ...]]]:
    """Runs both servers, on other ports where another program takes theirs."""
    with ExitStack() as stack:
        lock = stack.enter_context(FileLock(place / "servers.lock"))
        if not lock.acquire(timeout=LOCK_TIMEOUT):
            raise EmbeddedError(f"The servers of an earlier run still use {place}: stop them.")
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                processes = stack.enter_context(
                    _both(place, addresses, lock, max_connections=max_connections, durable=durable)
                )
                break
            except PortTakenError:
                if attempt == START_ATTEMPTS:
                    raise
                addresses = addresses.moved_if_taken()
        port, password = addresses.postgres_port, addresses.postgres_password
        create_database(DATABASE, port=port, password=password)
        create_service_role(addresses.service_password, port=port, password=password)
        yield addresses, processes


@contextmanager
def _both(
    place: Path, addresses: Addresses, lock: FileLock, *, max_connections: int, durable: bool
) -> Iterator[tuple[Process, ...]]:
    with (
        running_postgres(
            place / "postgres",
            port=addresses.postgres_port,
            password=addresses.postgres_password,
            lock=lock,
            max_connections=max_connections,
            durable=durable,
        ) as postgres,
        running_valkey(
            place / "valkey",
            port=addresses.valkey_port,
            password=addresses.valkey_password,
            lock=lock,
            durable=durable,
        ) as valkey,
    ):
        yield postgres, valkey
