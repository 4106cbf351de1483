"""Both servers together: kept from run to run, or as short-lived as one command."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from embedded.environment import (
    DATABASE,
    FILE_NAME,
    Addresses,
    new_secrets,
    stored_values,
    write_env_file,
)
from embedded.errors import EmbeddedError
from embedded.locks import FileLock
from embedded.postgres import create_database, running_postgres
from embedded.processes import Process
from embedded.valkey import running_valkey

# Many test processes with many threads each.
TEMPORARY_MAX_CONNECTIONS = 300
KEPT_MAX_CONNECTIONS = 100
# After a kill -9 the servers of before may still be writing their last words.
PREDECESSOR_PATIENCE = 60.0


@dataclass(frozen=True)
class Servers:
    """The running servers, and the environment that leads an application to them."""

    environment: dict[str, str]
    processes: tuple[Process, ...]


@contextmanager
def temporary_servers(*, durable: bool = True) -> Iterator[Servers]:
    """Empty servers. Everything goes at the end."""
    addresses = Addresses.fresh()
    values = new_secrets() | addresses.urls()
    values["DJANGO_ALLOWED_HOSTS"] += ",testserver"
    with (
        tempfile.TemporaryDirectory(prefix="voucher-", ignore_cleanup_errors=True) as place,
        _running(
            Path(place), addresses, max_connections=TEMPORARY_MAX_CONNECTIONS, durable=durable
        ) as processes,
    ):
        yield Servers(values, processes)


@contextmanager
def only_run(var: Path) -> Iterator[None]:
    """One process at a time may run the servers of `var`."""
    var.mkdir(mode=0o700, exist_ok=True)
    if var.stat().st_uid != os.geteuid():
        raise EmbeddedError(f"{var} belongs to another user: run this as that user, or remove it.")
    var.chmod(0o700)
    with FileLock(var / "run.lock") as lock:
        if not lock.acquire():
            raise EmbeddedError(f"Already running, as process {lock.noted()}: stop that one first.")
        lock.note(str(os.getpid()))
        yield


@contextmanager
def kept_servers(var: Path) -> Iterator[Servers]:
    """The servers whose data and secrets are in `var`. Only inside `only_run`."""
    stored = stored_values(var)
    addresses = Addresses.from_urls(stored).moved_if_taken() if stored else Addresses.fresh()
    values = new_secrets() | stored | addresses.urls()
    write_env_file(var / FILE_NAME, values)
    with _running(var, addresses, max_connections=KEPT_MAX_CONNECTIONS, durable=True) as processes:
        yield Servers(values, processes)


@contextmanager
def _running(
    place: Path, addresses: Addresses, *, max_connections: int, durable: bool
) -> Iterator[tuple[Process, ...]]:
    with ExitStack() as stack:
        lock = stack.enter_context(FileLock(place / "servers.lock"))
        if not lock.acquire(patience=PREDECESSOR_PATIENCE):
            raise EmbeddedError(f"The servers of an earlier run still use {place}.")
        postgres = stack.enter_context(
            running_postgres(
                place / "postgres",
                port=addresses.postgres_port,
                password=addresses.postgres_password,
                lock=lock,
                max_connections=max_connections,
                durable=durable,
            )
        )
        valkey = stack.enter_context(
            running_valkey(
                place / "valkey",
                port=addresses.valkey_port,
                password=addresses.valkey_password,
                lock=lock,
                durable=durable,
            )
        )
        create_database(
            DATABASE, port=addresses.postgres_port, password=addresses.postgres_password
        )
        yield postgres, valkey
