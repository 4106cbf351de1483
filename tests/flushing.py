"""Empties between tests only the tables that a test filled, and puts the neighbour's rows back.

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

MAX_FLUSHES = 5
# What migrate has put in, and no test changes.
KEPT = ("django_content_type", "auth_permission", "auth_group", "auth_group_permissions")
# Copies of the rows that every test starts with (tests/neighbour.py), one table for each, and what
# `FLUSH` knows of the originals: how many there are, and the transaction that wrote them.
KEEP_ROWS = """
DO $$
DECLARE
    name text;
    number bigint;
BEGIN
    CREATE SCHEMA kept;
    CREATE TABLE kept.content (name text PRIMARY KEY, number bigint, written_by xid);
    FOREACH name IN ARRAY '{%(tables)s}'::text[] LOOP
        EXECUTE format('SELECT count(*) FROM %%I', name) INTO number;
        IF number > 0 THEN
            EXECUTE format('CREATE TABLE kept.%%I AS TABLE public.%%I', name, name);
            INSERT INTO kept.content VALUES (name, number, '0');
        END IF;
    END LOOP;
END $$
"""
# A small table is emptied by DELETE, which touches one file where TRUNCATE makes several new ones.
FLUSH = """
DO $$
DECLARE
    table_name text;
    known kept.content;
    changed boolean;
    large text[] := '{}';
    refilled text[] := '{}';
BEGIN
    -- The database refuses to empty a ledger or an order, as it should. Only this block runs with
    -- triggers off, and only as the superuser of the test servers.
    SET LOCAL session_replication_role = replica;
    DELETE FROM auth_group_permissions WHERE group_id IN
        (SELECT id FROM auth_group WHERE NOT auth_group.name = ANY ('{%(roles)s}'));
    DELETE FROM auth_group WHERE NOT auth_group.name = ANY ('{%(roles)s}');
    FOREACH table_name IN ARRAY '{%(tables)s}'::text[] LOOP
        SELECT * INTO known FROM kept.content AS content WHERE content.name = table_name;
        IF FOUND THEN
            EXECUTE format('SELECT count(*) <> $1 OR bool_or(xmin <> $2) FROM %%I', table_name)
               INTO changed USING known.number, known.written_by;
        ELSE
            EXECUTE format('SELECT EXISTS (SELECT FROM %%I)', table_name) INTO changed;
        END IF;
        CONTINUE WHEN NOT changed;
        refilled := refilled || table_name;
        IF pg_relation_size(table_name::regclass) <= 65536 THEN
            EXECUTE format('DELETE FROM %%I', table_name);
        ELSE
            large := large || format('%%I', table_name);
        END IF;
    END LOOP;
    IF large <> '{}' THEN
        EXECUTE 'TRUNCATE ' || array_to_string(large, ', ') || ' CASCADE';
        -- Other tables may have lost their rows too.
        SELECT array_agg(content.name) INTO refilled FROM kept.content;
        FOREACH table_name IN ARRAY refilled LOOP
            EXECUTE format('DELETE FROM %%I', table_name);
        END LOOP;
    END IF;
    FOR table_name IN SELECT content.name FROM kept.content WHERE content.name = ANY (refilled) LOOP
        EXECUTE format('INSERT INTO public.%%I SELECT * FROM kept.%%I', table_name, table_name);
    END LOOP;
    UPDATE kept.content SET written_by = pg_current_xact_id()::xid WHERE name = ANY (refilled);
    SET LOCAL session_replication_role = origin;
END $$
"""
EMPTY_TABLES = """
DO $$
DECLARE
    name text;
BEGIN
    SET LOCAL session_replication_role = replica;
    -- Running servers remember the encryption keys.
    FOR name IN
        SELECT content.name FROM kept.content WHERE content.name <> 'config_encryptionkey'
    LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    SET LOCAL session_replication_role = origin;
END $$
"""


@contextmanager
def quick_flush() -> Iterator[None]:
    """Has Django's `flush`, which runs after each test that commits, use FLUSH."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", _statements)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *arguments: None)
        patch.setattr(type(connection.ops), "execute_sql_flush", _execute)
        yield


def empty_tables() -> None:
    """Removes the kept rows for the rest of the test, so that its own rows are the only ones."""
    with connection.cursor() as cursor:
        cursor.execute(EMPTY_TABLES)


def keep_rows() -> None:
    """Remembers the present rows of every table. Each flush puts them back."""
    with connection.cursor() as cursor:
        cursor.execute(KEEP_ROWS % _names(connection))


def kept_keys(table: str, column: str) -> list[Any]:
    """The values of a column in the rows that each flush puts back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [f"kept.{table}"])
        if cursor.fetchone() == (None,):
            return []
        cursor.execute(f"SELECT {column} FROM kept.{table}")
        return [key for (key,) in cursor]


def _names(database: BaseDatabaseWrapper) -> dict[str, str]:
    tables = database.introspection.django_table_names(only_existing=True, include_views=False)
    return {
        "tables": ",".join(sorted(set(tables) - set(KEPT))),
        "roles": ",".join(f'"{role.value}"' for role in StaffRole),
    }


def _statements(style: object, database: BaseDatabaseWrapper, **options: object) -> list[str]:
    return [FLUSH % _names(database)]


def _execute(operations: object, statements: list[str]) -> None:
    """Servers that a module keeps running (a worker, a bot) lock tables in an order of their own.
    PostgreSQL ends one side of a deadlock, and the flush is repeated."""
    for more in range(MAX_FLUSHES - 1, -1, -1):
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        except OperationalError as error:
            if not more or not isinstance(error.__cause__, DeadlockDetected):
                raise
        else:
            return
