"""The migrations of the database, compared with those of this code."""

import time
from functools import cache

from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

SURE_FOR_SECONDS = 60.0  # an applied migration stays applied

_complete_until = 0.0


def missing_migrations() -> list[str]:
    """The migrations to apply, such as `orders.0001_initial`; empty when there is none.

    For a probe that asks every few seconds: one query, at most once a minute while nothing is
    missing. Raises Django's database errors.
    """
    global _complete_until  # noqa: PLW0603
    if time.monotonic() < _complete_until:
        return []
    missing = sorted(f"{app}.{name}" for app, name in _on_disk() - _applied())
    if not missing:
        _complete_until = time.monotonic() + SURE_FOR_SECONDS
    return missing


def newer_migrations() -> list[str]:
    """The applied migrations that follow the last one of this code in their app.

    There are some after a newer version has migrated the database. One query.
    """
    last = dict(sorted(_on_disk()))
    return sorted(f"{app}.{name}" for app, name in _applied() if name > last.get(app, name))


@cache
def _on_disk() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations)


def _applied() -> set[tuple[str, str]]:
    try:
        return set(MigrationRecorder.Migration.objects.values_list("app", "name"))
    except DatabaseError:
        if MigrationRecorder(connection).has_table():
            raise
        return set()
