"""Databases of tests: copies of one that is migrated once for the whole run.

Migrating takes ten seconds of processor time, and a copy less than a tenth of a second. Test
processes share the server, so the first of them migrates while the others wait. A dump of the
migrated database is kept for later runs with the same migrations.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.backends.utils import CursorWrapper
from psycopg import sql

from core.backoffice.registry import declared_rights
from core.database import key_ring
from core.database.rights import grant_rights
from embedded.binaries import postgres_binary
from embedded.environment import PROJECT, SERVICE
from tests.live import owner_url

# One for all processes of a run. A run that was killed must not leave it to the next one.
MIGRATED = f"migrated_{os.environ.get('PYTEST_XDIST_TESTRUNUID') or os.getpid()}"
KEPT = PROJECT / ".pytest_cache"
LOCK = "SELECT pg_advisory_lock(hashtext('tests.database'))"  # held until the connection ends


def connect(database: str, **options: Any) -> psycopg.Connection:
    """A connection to a database of the test server that bypasses Django."""
    parameters = connection.get_connection_params()
    wanted = {
        name: parameters[name]
        for name in ("host", "port", "user", "password")
        if name in parameters
    }
    return psycopg.connect(**wanted, dbname=database, **options)


def create_test_database() -> None:
    """Creates the database of this test process, and has Django use it from now on."""
    name: str = connection.creation._get_test_db_name()  # type: ignore[attr-defined]
    _copy(name)
    connection.close()
    connection.settings_dict["NAME"] = name
    _grant()


def remove_test_database(creator: int) -> None:
    """Removes it, and what it was copied from: a process that still needs that migrates again.

    Only the process that created it does so, and not a fork of it (labs/mutants/forks.py).
    """
    if os.getpid() != creator:
        return
    name = connection.settings_dict["NAME"]
    connection.close()
    with connect("postgres", autocommit=True) as server:
        _drop(server, name)
        server.execute(LOCK)  # nobody is copying it
        _drop(server, MIGRATED)


@contextmanager
def another_database(name: str) -> Iterator[None]:
    """An empty database on the test server, which Django uses inside the block. Django flushes it
    only after tests that ask for a database."""
    _copy(name)
    grant_on_copy(name)
    with django_uses(_url(name)):
        yield
    with connect("postgres", autocommit=True) as server:
        _drop(server, name)


@contextmanager
def kept_database(name: str) -> Iterator[None]:
    """A database of the test server that stays for later runs, empty the first time. Django uses
    it inside the block."""
    with connect("postgres", autocommit=True) as server:
        known = server.execute("SELECT FROM pg_database WHERE datname = %s", [name]).rowcount
    if not known:
        _copy(name)
    grant_on_copy(name)
    with django_uses(_url(name)):
        yield


def load_schema(url: str) -> None:
    """Fills an empty database of another server like a migrated one."""
    with connect("postgres", autocommit=True) as server:
        _migrate_once(server)
        schema = _dump(MIGRATED)
    _restore(schema, url)
    with django_uses(url):
        _grant()


@contextmanager
def django_uses(url: str) -> Iterator[None]:
    """Points Django's connections at this URL; all threads share the settings. Each database has
    its own root secret, so the keys are checked again."""
    at = urlsplit(url)
    there = connection.settings_dict
    before, rings = dict(there), dict(key_ring._rings)
    connection.close()
    key_ring._rings.clear()
    there.update(
        HOST=at.hostname,
        PORT=at.port,
        USER=at.username,
        PASSWORD=at.password,
        NAME=at.path.removeprefix("/"),
    )
    try:
        yield
    finally:
        connection.close()
        there.update(before)
        key_ring._rings.clear()
        key_ring._rings.update(rings)


def _copy(name: str) -> None:
    with connect("postgres", autocommit=True) as server:
        _migrate_once(server)
        _drop(server, name)
        # Copies files. PostgreSQL's other way writes every page to its log.
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(MIGRATED)
            )
        )


def _migrate_once(server: psycopg.Connection) -> None:
    """Makes MIGRATED unless it is there. Until `server` is closed, no other process uses it:
    PostgreSQL copies no database to which somebody is connected."""
    server.execute(LOCK)
    if server.execute("SELECT FROM pg_database WHERE datname = %s", [MIGRATED]).rowcount:
        return
    unfinished = f"{MIGRATED}_unfinished"
    _drop(server, unfinished)
    server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(unfinished)))
    kept = KEPT / f"migrated_{_digest_of_migrations()}_{server.info.server_version}.sql"
    if kept.exists():
        _restore(kept.read_bytes(), _url(unfinished))
    with django_uses(_url(unfinished)):
        call_command("migrate", interactive=False, verbosity=0, skip_checks=True)
    if not kept.exists():
        KEPT.mkdir(exist_ok=True)
        for old in KEPT.glob("migrated_*"):
            old.unlink()
        kept.with_suffix(".part").write_bytes(_dump(unfinished))
        kept.with_suffix(".part").rename(kept)
    server.execute(
        sql.SQL("ALTER DATABASE {} RENAME TO {}").format(
            sql.Identifier(unfinished), sql.Identifier(MIGRATED)
        )
    )


def _digest_of_migrations() -> str:
    """Differs when a migration, or SQL that it installs, differs."""
    digest = sha256()
    for app in apps.get_app_configs():
        folder = Path(app.path)
        for file in sorted([*folder.glob("migrations/*.py"), *folder.glob("sql/**/*.sql")]):
            digest.update(f"{app.label} {file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _dump(name: str) -> bytes:
    command = [str(postgres_binary("pg_dump")), _url(name)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def _restore(dump: bytes, url: str) -> None:
    options = ["--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1"]
    command = [str(postgres_binary("psql")), *options, "--single-transaction", url]
    subprocess.run(command, input=dump, check=True)


def _drop(server: psycopg.Connection, name: str) -> None:
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def grant_on_copy(name: str) -> None:
    """A copy lacks what is granted on the database itself."""
    with connect(name) as database, database.cursor() as cursor:
        grant_rights(CursorWrapper(cursor, connection), SERVICE, declared_rights())


def _grant() -> None:
    with connection.cursor() as cursor:
        grant_rights(cursor, SERVICE, declared_rights())


def _url(name: str) -> str:
    """A database of the server that Django uses, for its owner."""
    return urlsplit(owner_url())._replace(path=f"/{name}").geturl()
