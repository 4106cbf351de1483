"""`python -m config.embedded exec -- COMMAND`: servers that live as long as one command."""

import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from config.embedded import environment
from config.embedded.postgres import create_database, running_postgres
from config.embedded.processes import Process, free_port
from config.embedded.valkey import running_valkey

# Many test processes with many threads each.
MAX_CONNECTIONS = 300


@contextmanager
def temporary_servers(*, durable: bool = True) -> Iterator[dict[str, str]]:
    """Empty servers, and the environment that leads to them. Everything goes at the end."""
    addresses = environment.Addresses(
        free_port(), environment.new_password(), free_port(), environment.new_password()
    )
    with (
        tempfile.TemporaryDirectory(prefix="voucher-", ignore_cleanup_errors=True) as place,
        running_postgres(
            Path(place) / "postgres",
            port=addresses.postgres_port,
            password=addresses.postgres_password,
            max_connections=MAX_CONNECTIONS,
            durable=durable,
        ),
        running_valkey(
            Path(place) / "valkey",
            port=addresses.valkey_port,
            password=addresses.valkey_password,
            durable=durable,
        ),
    ):
        create_database(
            environment.DATABASE,
            port=addresses.postgres_port,
            password=addresses.postgres_password,
        )
        values = environment.new_secrets() | addresses.urls()
        values["DJANGO_ALLOWED_HOSTS"] += ",testserver"
        yield values


def run_command(command: Sequence[str], *, durable: bool) -> int:
    """Run the command with servers of its own, and return its exit code."""
    with temporary_servers(durable=durable) as values:
        child = Process(
            "command",
            command,
            environment=os.environ | values,
            stdin=0,
            own_session=False,  # the terminal's keys are the command's, not ours
        )
        return _wait(child)


def _wait(child: Process) -> int:
    """Ctrl-C reaches the command by itself; a SIGTERM to us is passed on. Either way it decides."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in (
            (signal.SIGINT, signal.SIG_IGN),
            (signal.SIGTERM, lambda number, frame: child.popen.send_signal(number)),
        )
    }
    try:
        code = child.wait()
    finally:
        child.stop()
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code
