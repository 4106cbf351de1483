"""`migrate` for a service that is selling: it never delays a purchase for long.

A change of a table waits for every transaction that uses the table, and later transactions wait
behind it. So each migration waits at most 1.5 seconds for its locks. If it does not get them, it is
rolled back and tried again.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import OperationalError, connections
from psycopg.errors import LockNotAvailable

# Longer than PostgreSQL's `deadlock_timeout` (1 s): only after that time does a waiter cancel an
# autovacuum that is in its way.
LOCK_TIMEOUT = "1500ms"
PAUSE_SECONDS = 3.0  # purchases go on between two attempts
GIVE_UP_AFTER_SECONDS = 600.0


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        """Raises OperationalError when a migration gets no lock for ten minutes."""
        give_up_at = time.monotonic() + GIVE_UP_AFTER_SECONDS
        with _short_lock_timeout(options["database"]):
            while not self._migrate(*args, **options, give_up_at=give_up_at):
                time.sleep(PAUSE_SECONDS)

    def _migrate(self, *args: Any, give_up_at: float, **options: Any) -> bool:
        """Applies what is missing; returns False when a table was in use."""
        try:
            super().handle(*args, **options)
        except OperationalError as error:
            if not _is_lock_timeout(error) or time.monotonic() > give_up_at:
                raise
            self.stderr.write(
                "A table is in use. Its migration was rolled back and will be tried again."
            )
            return False
        return True


def _is_lock_timeout(error: OperationalError) -> bool:
    return isinstance(error.__cause__, LockNotAvailable)


@contextmanager
def _short_lock_timeout(database: str) -> Iterator[None]:
    """Connects with a short lock timeout, which RESET keeps (config/database/migrations.py)."""
    connection = connections[database]
    options = connection.settings_dict["OPTIONS"]
    before = options["options"]
    connection.close()
    options["options"] = f"{before} -c lock_timeout={LOCK_TIMEOUT}"
    try:
        yield
    finally:
        options["options"] = before
        connection.close()
