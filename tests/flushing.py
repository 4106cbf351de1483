"""Empties between tests only the tables that a test filled.

Django truncates every table and then adds content types, permissions and groups again. Most tests
fill a few tables with a few rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management.commands import flush
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.errors import DeadlockDetected

from config.backoffice import StaffRole
from config.database.key_ring import key_ring

MAX_FLUSHES = 5
# What migrate has put in, and no test changes.
KEPT = (
    "django_content_type",
    "auth_permission",
    "auth_group",
    "auth_group_permissions",
    "config_encryptionkey",
)
# The keys that the first process registered: running servers remember the root secret in them.
KEYS = "SELECT key_id, wrapped, sealing_since FROM config_encryptionkey"
PUT_KEY_BACK = "INSERT INTO config_encryptionkey VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
REMOVE_OTHER_KEYS = "DELETE FROM config_encryptionkey WHERE NOT key_id = ANY (%s)"
# A small table is emptied by DELETE, which touches one file where TRUNCATE makes several new ones.
EMPTY_TABLES = """
DO $$
DECLARE
    name text;
    filled boolean;
    large text[] := '{}';
BEGIN
    -- The database refuses to empty a ledger or an order, as it should. Only this block runs with
    -- triggers off, and only as the superuser of the test servers.
    SET LOCAL session_replication_role = replica;
    DELETE FROM auth_group_permissions WHERE group_id IN
        (SELECT id FROM auth_group WHERE NOT auth_group.name = ANY ('{%(roles)s}'));
    DELETE FROM auth_group WHERE NOT auth_group.name = ANY ('{%(roles)s}');
    FOREACH name IN ARRAY '{%(tables)s}'::text[] LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %%I)', name) INTO filled;
        IF filled AND pg_relation_size(name::regclass) <= 65536 THEN
            EXECUTE format('DELETE FROM %%I', name);
        ELSIF filled THEN
            large := large || format('%%I', name);
        END IF;
    END LOOP;
    IF large <> '{}' THEN
        EXECUTE 'TRUNCATE ' || array_to_string(large, ', ') || ' CASCADE';
    END IF;
END $$
"""


_keys: list[tuple[Any, ...]] = []


def register_keys() -> None:
    """Registers the encryption keys of the tests, and has each flush leave exactly them."""
    key_ring()
    with connection.cursor() as cursor:
        cursor.execute(KEYS)
        _keys[:] = cursor.fetchall()


@contextmanager
def quick_flush() -> Iterator[None]:
    """Has Django's `flush`, which runs after each test that commits, use EMPTY_TABLES."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", _statements)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *arguments: None)
        patch.setattr(type(connection.ops), "execute_sql_flush", _execute)
        yield


def _statements(style: object, database: BaseDatabaseWrapper, **options: object) -> list[str]:
    tables = database.introspection.django_table_names(only_existing=True, include_views=False)
    return [
        EMPTY_TABLES
        % {
            "tables": ",".join(sorted(set(tables) - set(KEPT))),
            "roles": ",".join(f'"{role.value}"' for role in StaffRole),
        }
    ]


def _execute(operations: object, statements: list[str]) -> None:
    """Servers that a module keeps running (a worker, a bot) lock tables in an order of their own.
    PostgreSQL ends one side of a deadlock, and the flush is repeated."""
    for more in range(MAX_FLUSHES - 1, -1, -1):
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                cursor.executemany(PUT_KEY_BACK, _keys)
                cursor.execute(REMOVE_OTHER_KEYS, [[key_id for key_id, *_ in _keys]])
        except OperationalError as error:
            if not more or not isinstance(error.__cause__, DeadlockDetected):
                raise
        else:
            return
