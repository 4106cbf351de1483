"""`migrate` for a service that is selling: it never delays a purchase for long.

A change of a table waits for every transaction that uses the table, and later transactions wait
behind it. So each migration waits at most 1.5 seconds for its locks. If it does not get them, it is
rolled back and tried again.

It connects as the owner of the tables (MIGRATION_DATABASE_URL). After each migration, it grants the
service's role the rights that the apps declare, so a table has them before a later migration
installs a function that uses it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from psycopg.errors import DeadlockDetected, LockNotAvailable

from core.backoffice.registry import declared_rights
from core.database.applied_migrations import newer_migrations
from core.database.connections import database_settings
from core.database.rights import NoSuchRole, grant_rights

# Longer than PostgreSQL's `deadlock_timeout` (1 s): only after that time does a waiter cancel an
# autovacuum that is in its way.
LOCK_TIMEOUT = "1500ms"
PAUSE_SECONDS = 3.0  # purchases go on between two attempts
GIVE_UP_AFTER_SECONDS = 600.0


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        """Raises OperationalError when a migration gets no lock for ten minutes."""
        give_up_at = time.monotonic() + GIVE_UP_AFTER_SECONDS
        self._database = options["database"]
        with _as_owner(self._database):
            while not self._migrate(*args, **options, give_up_at=give_up_at):
                time.sleep(PAUSE_SECONDS)
            if options["plan"] or options["check_unapplied"]:
                return
            if newer := newer_migrations():  # processes of that version may run on other hosts
                self.stderr.write(f"A newer version has applied {newer[-1]}. Its rights stay.")
            else:
                self._grant()

    def _migrate(self, *args: Any, give_up_at: float, **options: Any) -> bool:
        """Applies what is missing; returns False when a table was in use."""
        try:
            super().handle(*args, **options)
        except OperationalError as error:
            if not _timed_out_on_lock(error) or time.monotonic() > give_up_at:
                raise
            self.stderr.write(
                "A table is in use. Its migration was rolled back and will be tried again."
            )
            return False
        return True

    def migration_progress_callback(
        self, action: str, migration: Any = None, fake: bool = False
    ) -> None:
        super().migration_progress_callback(action, migration, fake)
        if action == "apply_success":
            self._grant()

    def _grant(self) -> None:
        """Grants the rights, unless one role both owns the tables and runs the service."""
        with connections[self._database].cursor() as cursor:
            cursor.execute("SELECT current_user")
            if cursor.fetchone()[0] == settings.SERVICE_ROLE or not settings.SERVICE_ROLE:
                return
            try:
                grant_rights(cursor, settings.SERVICE_ROLE, declared_rights())
            except NoSuchRole as error:
                raise CommandError(f"{error} See docs/operate/database-roles.md.") from None


def _timed_out_on_lock(error: OperationalError) -> bool:
    return isinstance(error.__cause__, (LockNotAvailable, DeadlockDetected))


@contextmanager
def _as_owner(database: str) -> Iterator[None]:
    """Connects as the owner, with a short lock timeout, which RESET keeps
    (core/database/migrations.py)."""
    connection = connections[database]
    before = dict(connection.settings_dict)
    connection.close()
    if settings.MIGRATION_DATABASE["NAME"]:
        if not settings.SERVICE_ROLE:
            raise CommandError("DATABASE_URL must name the role of the service.")
        connection.settings_dict.update(database_settings(settings.MIGRATION_DATABASE))
    options = connection.settings_dict["OPTIONS"]
    connection.settings_dict["OPTIONS"] = {
        **options,
        "options": f"{options['options']} -c lock_timeout={LOCK_TIMEOUT}",
    }
    try:
        yield
    finally:
        connection.settings_dict.update(before)
        connection.close()
