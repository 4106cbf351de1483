"""A clock that the history of the demo shop sets.

PostgreSQL chooses the time of an order, a ledger entry and an audit entry, and its guards refuse
any other. They stay on: what moves is the clock that they read. PostgreSQL's superuser replaces the
clock functions of this database by ones that return the session's `demo.clock`, if it is set, and
puts them back afterwards. The role of the service may not replace them. Other databases of the
server keep their clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from django.utils import timezone
from psycopg import sql

# The volatility of each function, its name in the server, and the true time while it is replaced.
CLOCKS = {
    "now": ("STABLE", "now", "CURRENT_TIMESTAMP"),
    "transaction_timestamp": ("STABLE", "now", "CURRENT_TIMESTAMP"),
    "statement_timestamp": ("STABLE", "statement_timestamp", "CURRENT_TIMESTAMP"),
    "clock_timestamp": ("VOLATILE", "clock_timestamp", "timeofday()::timestamptz"),
}
# PostgreSQL inlines these. It would call a function of C by its number, whatever it is replaced by.
MOVED = """
    CREATE OR REPLACE FUNCTION pg_catalog.{}() RETURNS timestamptz LANGUAGE sql {} PARALLEL SAFE
    AS $$ SELECT coalesce(nullif(current_setting('demo.clock', true), '')::timestamptz, {}) $$
"""
TRUE = """
    CREATE OR REPLACE FUNCTION pg_catalog.{}() RETURNS timestamptz
    LANGUAGE internal {} STRICT PARALLEL SAFE AS {}
"""
PROBE = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
IS_MOVED = """
    SELECT EXISTS (SELECT FROM pg_proc JOIN pg_language AS written ON written.oid = prolang
                    WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY(%s)
                      AND lanname <> 'internal')
"""


class Clock:
    """The time of this process and of its database session."""

    def __init__(self, start: datetime) -> None:
        self.now = start

    def set(self, moment: datetime) -> None:
        """Moves it. Time goes forward only, as in a ledger."""
        if moment < self.now:
            raise ValueError("the clock of the demo goes forward only")
        self.now = moment
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('demo.clock', %s, false)", [moment.isoformat()])


@contextmanager
def movable_clock(start: datetime) -> Iterator[Clock | None]:
    """A clock for the block, set to `start`; None if the owner of the tables is no superuser.

    If the process dies inside the block, the functions stay replaced until `restore_clock`. They
    return the true time to sessions without a clock.
    """
    with _superuser() as server:
        if not server.execute(PROBE).fetchone()[0]:  # type: ignore[index]
            yield None
            return
        clock, python = Clock(start), timezone.now
        try:
            _replace(
                server,
                MOVED,
                {name: (way, sql.SQL(true)) for name, (way, _, true) in CLOCKS.items()},
            )
            connection.close()  # its plans have the true clock
            clock.set(start)
            vars(timezone)["now"] = lambda: clock.now
            yield clock
        finally:
            vars(timezone)["now"] = python
            _restore(server)
            connection.close()


def restore_clock() -> None:
    """Puts the functions back that a process left replaced when it died."""
    with connection.cursor() as cursor:
        cursor.execute(IS_MOVED, [[*CLOCKS]])
        is_moved: bool = cursor.fetchone()[0]
    if is_moved:
        with _superuser() as server:
            _restore(server)
        connection.close()


def _restore(server: psycopg.Connection[Any]) -> None:
    _replace(
        server, TRUE, {name: (way, sql.Literal(own)) for name, (way, own, _) in CLOCKS.items()}
    )


def _replace(
    server: psycopg.Connection[Any], function: str, parts: dict[str, tuple[str, sql.Composable]]
) -> None:
    for name, (way, part) in parts.items():
        server.execute(sql.SQL(function).format(sql.Identifier(name), sql.SQL(way), part))


@contextmanager
def _superuser() -> Iterator[psycopg.Connection[Any]]:
    """A connection as the owner of the tables, who may be PostgreSQL's superuser.

    Only one at a time, so that no process puts back the clock of a run that is still alive.
    """
    at = (
        settings.MIGRATION_DATABASE
        if settings.MIGRATION_DATABASE["NAME"]
        else connection.settings_dict
    )
    names = {
        "host": "HOST",
        "port": "PORT",
        "user": "USER",
        "password": "PASSWORD",
        "dbname": "NAME",
    }
    parameters = {name: str(at[key]) for name, key in names.items() if at[key]}
    with psycopg.connect(**parameters, autocommit=True) as server:  # type: ignore[arg-type]
        server.execute("SELECT pg_advisory_lock(hashtextextended('clock of the demo', 0))")
        yield server
