"""Empties between tests only the tables that a test filled, and puts the neighbour's rows back.

Django truncates every table and then adds content types, permissions and groups again. Most tests
fill a few tables with a few rows.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.core.management.commands import flush as flush_command
from django.db import connection
from django.test import TransactionTestCase
from psycopg.errors import DeadlockDetected
from psycopg.pq import TransactionStatus

from core.backoffice.staff_roles import StaffRole
from tests.live import owner_url

MAX_FLUSHES = 5
# What migrate has put in, and no test changes.
KEPT = ("django_content_type", "auth_permission", "auth_group", "auth_group_permissions")
# Copies of the rows that every test starts with (tests/neighbour.py), one table for each, and what
# `flush` knows of the originals: how many there are, and the transaction that wrote them.
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
# What `flush` runs, on a connection of its own that has triggers off. The database refuses to empty
# a ledger or an order, as it should; only the superuser of the test servers may do it. Switching
# triggers off makes a connection forget its plans, so the connection of the tests keeps them on.
# A small table is emptied by DELETE, which touches one file where TRUNCATE makes several new ones.
MAKE_FLUSH = """
CREATE FUNCTION kept.empty(changed regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pg_relation_size(changed) <= 65536 THEN
        EXECUTE format('DELETE FROM %%s', changed);
    ELSE
        EXECUTE format('TRUNCATE %%s CASCADE', changed);
    END IF;
END $$;
CREATE FUNCTION kept.flush() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM auth_group_permissions WHERE group_id IN
        (SELECT id FROM auth_group WHERE NOT auth_group.name = ANY ('{%(roles)s}'));
    DELETE FROM auth_group WHERE NOT auth_group.name = ANY ('{%(roles)s}');
    %(steps)s
END $$
"""
EMPTY = """
    IF EXISTS (SELECT FROM public.{name}) THEN
        PERFORM kept.empty('public.{name}');
    END IF;"""
EMPTY_IF_CHANGED = """
    IF (SELECT count(*) <> {number} OR bool_or(own.xmin <> content.written_by)
          FROM public.{name} AS own, kept.content WHERE content.name = '{name}') THEN
        PERFORM kept.empty('public.{name}');
    END IF;"""
REFILL = """
    IF NOT EXISTS (SELECT FROM public.{name}) THEN
        INSERT INTO public.{name} SELECT * FROM kept.{name};
        UPDATE kept.content SET written_by = pg_current_xact_id()::xid WHERE name = '{name}';
    END IF;"""
EMPTY_TABLES = """
DO $$
DECLARE
    name text;
BEGIN
    SET LOCAL session_replication_role = replica;
    -- Running servers remember the encryption keys.
    FOR name IN
        SELECT content.name FROM kept.content
         WHERE content.name NOT IN ('core_encryptionkey', 'core_rootfingerprint')
    LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    SET LOCAL session_replication_role = origin;
END $$
"""


_connections: dict[tuple[int, str], psycopg.Connection] = {}


@contextmanager
def quick_flush() -> Iterator[None]:
    """Has Django's `flush`, and what it does after each test that commits, empty only what a test
    filled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda test: flush())
        patch.setattr(flush_command.Command, "handle", lambda command, **options: flush())
        patch.setattr(TransactionTestCase, "_should_reload_connections", _needs_new_connection)
        yield
    while _connections:
        _connections.popitem()[1].close()


def flush() -> None:
    """Empties the tables that were filled, and puts the kept rows back.

    Servers that a module keeps running (a worker, a bot) lock tables in an order of their own.
    PostgreSQL ends one side of a deadlock, and a test may have ended this connection. Then the
    flush is repeated.
    """
    for more in range(MAX_FLUSHES - 1, -1, -1):
        own = _own_connection()
        try:
            own.execute("SELECT kept.flush()")
        except psycopg.OperationalError as error:
            if not more or not (isinstance(error, DeadlockDetected) or own.closed):
                raise
        else:
            return


def _needs_new_connection(test: TransactionTestCase) -> bool:
    """Whether the next test needs another connection. An idle one serves again, with the settings
    that it began with: in a new one, PostgreSQL compiles and plans all functions again."""
    if connection.connection is None:
        return False
    if connection.in_atomic_block or connection.run_on_commit:
        return True
    if connection.connection.info.transaction_status != TransactionStatus.IDLE:
        return True
    try:
        connection.connection.execute("RESET ALL; SELECT pg_advisory_unlock_all()")
    except psycopg.Error:  # a test has ended it
        return True
    connection.ensure_timezone()
    return False


def empty_tables() -> None:
    """Removes the kept rows for the rest of the test, so that its own rows are the only ones."""
    with connection.cursor() as cursor:
        cursor.execute(EMPTY_TABLES)


def keep_rows() -> None:
    """Remembers the present rows of every table. Each flush puts them back."""
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    names = sorted(set(tables) - set(KEPT))
    with connection.cursor() as cursor:
        cursor.execute(KEEP_ROWS % {"tables": ",".join(names)})
        cursor.execute("SELECT name, number FROM kept.content")
        kept = dict(cursor.fetchall())
        steps = [EMPTY.format(name=name) for name in names if name not in kept]
        # Emptying one table may empty others, so all are emptied before the first is filled.
        for step in (EMPTY_IF_CHANGED, REFILL):
            steps += [step.format(name=name, number=number) for name, number in kept.items()]
        roles = ",".join(f'"{role.value}"' for role in StaffRole)
        cursor.execute(MAKE_FLUSH % {"roles": roles, "steps": "".join(steps)})


def kept_keys(table: str, column: str) -> list[Any]:
    """The values of a column in the rows that each flush puts back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [f"kept.{table}"])
        if cursor.fetchone() == (None,):
            return []
        cursor.execute(f"SELECT {column} FROM kept.{table}")
        return [key for (key,) in cursor]


def _own_connection() -> psycopg.Connection:
    """A connection to the database that Django uses. A fork makes its own."""
    there = os.getpid(), owner_url()
    if there not in _connections or _connections[there].closed:
        _connections[there] = psycopg.connect(
            owner_url(),
            autocommit=True,
            prepare_threshold=None,
            options="-c session_replication_role=replica -c lock_timeout=20s",
        )
    return _connections[there]
