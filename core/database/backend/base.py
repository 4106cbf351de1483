"""A connection to a read-only server counts as lost, and statements are timed."""

import time
from collections.abc import Callable
from typing import Any

from django.db.backends.postgresql import base
from psycopg import Error

from core.telemetry.metrics import DATABASE_SECONDS


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection to PostgreSQL, which also checks that the server can be written.

    After a failover, a connection may still lead to the former primary, now a read-only replica.
    Django would keep it for CONN_MAX_AGE, because the server responds.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.execute_wrappers.append(_time_statement)

    def is_usable(self) -> bool:
        """Whether the server responds and can be written. Costs one round trip, like Django's.

        Django asks before the first query of a request, and after an error. If the connection is
        not usable, Django closes it and opens another one.
        """
        if self.connection is None:
            return False
        try:
            row = self.connection.execute("SHOW transaction_read_only").fetchone()
        except Error:
            return False
        return bool(row == ("off",))


def _time_statement(execute: Callable[..., Any], *statement: Any) -> Any:
    """Times a statement of a Django cursor. Functions called through libpq time themselves."""
    since = time.perf_counter()
    try:
        return execute(*statement)
    finally:
        DATABASE_SECONDS.add(time.perf_counter() - since, "orm")
