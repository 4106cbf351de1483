"""Runs a Valkey server, the cache and the broker, as a foreground child of this process."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from embedded.binaries import valkey_binary
from embedded.errors import EmbeddedError, PortTakenError
from embedded.locks import FileLock
from embedded.processes import Process, describe_exit, listen_error

START_TIMEOUT = 60.0  # seconds


@contextmanager
def running_valkey(
    folder: Path, *, port: int, password: str, lock: FileLock, durable: bool = True
) -> Iterator[Process]:
    """Runs the server with its files in `folder`.

    A durable server loses at most the last second of writes in a crash. The server inherits `lock`,
    so two servers never write the same files. Raises EmbeddedError when the server does not start,
    PortTakenError when another program has the port.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    log = folder.with_name(f"{folder.name}.log")
    with log.open("wb") as output:
        server = Process(
            "valkey",
            [valkey_binary(), "-"],
            folder=folder,
            stdin=subprocess.PIPE,
            output=output,
            keep_open=[lock.descriptor],
        )
    try:
        _configure(server, port=port, password=password, durable=durable)
        _wait_until_ready(server, log, port=port, password=password)
        yield server
    finally:
        server.stop()


def _configure(server: Process, *, port: int, password: str, durable: bool) -> None:
    """Sends the configuration through stdin: the password is in no process list and no file."""
    settings = (
        "bind 127.0.0.1",
        f"port {port}",
        f"requirepass {password}",
        'save ""',
        f"appendonly {'yes' if durable else 'no'}",
        "appendfsync everysec",
        "maxmemory-policy noeviction",  # a broker must not drop tasks to free memory
    )
    server.write("\n".join(settings).encode())


def _wait_until_ready(server: Process, log: Path, *, port: int, password: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    with redis.Redis(port=port, password=password, socket_timeout=1) as client:
        while time.monotonic() < deadline:
            if (code := server.exit_code()) is not None:
                if taken := listen_error("127.0.0.1", port):
                    raise PortTakenError(f"Valkey did not start on port {port}: {taken}")
                lines = log.read_text(errors="replace").splitlines() or ["it wrote no message"]
                raise EmbeddedError(f"Valkey did not start ({describe_exit(code)}): {lines[-1]}")
            if _answers(client):
                return
            time.sleep(0.02)
    raise EmbeddedError(f"Valkey was not ready after {START_TIMEOUT:.0f} s. See {log}.")


def _answers(client: redis.Redis) -> bool:
    """Whether the server responds. It does not while it starts or loads its file."""
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
