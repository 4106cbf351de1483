"""Runs PgBouncer in transaction mode before the test's database, as docs/operate/scale.md says.

Tests that use it have the marker `pgbouncer` (tests/programs.py).
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from embedded.processes import Process, free_port
from tests.live import HOST, database_url, owner_url
from tests.programs import find_program
from tests.tasks.running import wait_until

SETTINGS = """
[databases]
voucher = host={host} port={port} dbname={database} user={user} password={password}

[pgbouncer]
listen_addr = {listen}
listen_port = {listen_port}
auth_type = any
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 500
server_reset_query =
ignore_startup_parameters = options,extra_float_digits
"""
# PgBouncer drops the session options of config/settings.py, so the role has the same settings.
ROLE = (
    "SET statement_timeout = '20s'",
    "SET lock_timeout = '10s'",
    "SET idle_in_transaction_session_timeout = '20s'",
)
NOBODY = "65534"


@contextmanager
def pgbouncer(size: int) -> Iterator[str]:
    """Runs a pool of at most `size` connections to the test's database. Yields its URL."""
    at = urlsplit(database_url())
    with tempfile.TemporaryDirectory(prefix="voucher-pgbouncer-") as place:
        folder, port = Path(place), free_port()
        folder.chmod(0o755)
        (folder / "pgbouncer.ini").write_text(
            SETTINGS.format(
                host=at.hostname,
                port=at.port,
                database=at.path.removeprefix("/"),
                user=at.username,
                password=at.password,
                listen=HOST,
                listen_port=port,
                size=size,
            )
        )
        with (folder / "log").open("wb") as output:
            process = Process(
                "pgbouncer",
                [*_as_nobody(), find_program("pgbouncer") or "pgbouncer", folder / "pgbouncer.ini"],
                output=output,
            )
        url = f"postgresql://voucher@{HOST}:{port}/voucher"
        try:
            with psycopg.connect(owner_url(), autocommit=True) as direct:
                for setting in ROLE:
                    direct.execute(f"ALTER ROLE {at.username} {setting}".encode())
            wait_until(lambda: _answers(url), "PgBouncer responds")
            yield url
        finally:
            process.stop()
            with psycopg.connect(owner_url(), autocommit=True) as direct:
                direct.execute(f"ALTER ROLE {at.username} RESET ALL".encode())


def _as_nobody() -> list[str]:
    """A command prefix that changes the user: PgBouncer refuses to run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True
