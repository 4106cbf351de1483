"""Backups with pgBackRest as deploy/backup/ sets them up, and the drill that restores the last one.

PostgreSQL 15 and pgBackRest are those of Debian 12, and run as the user postgres.
"""

import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from embedded.environment import FOR_TESTED_SERVICE, KEPT_WITH_THE_DATA, PROJECT
from embedded.processes import free_port
from operators.upkeep.backoffice import GAUGES
from tests.database import django_uses
from tests.factories import make_merchant, make_product
from tests.live import as_service
from tests.tasks.running import wait_until

BINARIES = Path("/usr/lib/postgresql/15/bin")
DEPLOY = PROJECT / "deploy/backup"
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("pgbackrest") or not BINARIES.is_dir(),
    reason="needs root, pgBackRest and PostgreSQL 15",
)


class Host:
    """The host of the database, with a folder in place of its disk."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.data, self.repository = folder / "postgres", folder / "repository"
        self.password = secrets.token_hex(8)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("PG")},
            "PATH": f"{BINARIES}:{os.environ['PATH']}",
            "PGHOST": str(folder),
            "PGPORT": str(self.port),
            "PGBACKREST_CONFIG": str(folder / "pgbackrest.conf"),
        }

    @property
    def url(self) -> str:
        return f"postgresql://voucher:{self.password}@127.0.0.1:{self.port}/voucher"

    def run(self, *command: str, as_root: bool = False, check: bool = True) -> str:
        """The output of a command as the user postgres. Fails unless it ends with 0."""
        done = subprocess.run(
            [*([] if as_root else ["runuser", "-u", "postgres", "--"]), *command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def configure(self) -> None:
        """The shipped configuration, with a passphrase and the folders of this test."""
        text = (DEPLOY / "pgbackrest.conf").read_text()
        text = text.replace("REPLACE", secrets.token_hex(24))
        text = text.replace("/var/lib/pgbackrest", str(self.repository))
        text = text.replace("/var/lib/postgresql/15/main", str(self.data))
        text += f"pg1-port={self.port}\npg1-socket-path={self.folder}\n"
        text = text.replace("[global]", f"[global]\nlock-path={self.folder}/lock", 1)
        (self.folder / "pgbackrest.conf").write_text(text)

    def start(self) -> None:
        """Starts PostgreSQL with the settings of docs/operate/backup.md."""
        page = (PROJECT / "docs/operate/backup.md").read_text()
        (archiving,) = re.findall(r"```ini\n(archive_mode.*?)```", page, re.DOTALL)
        self.run("initdb", f"--pgdata={self.data}", "--auth=trust", "--encoding=UTF8")
        with (self.data / "postgresql.conf").open("a") as settings_:
            settings_.write(
                f"{archiving}\nport = {self.port}\nunix_socket_directories = '{self.folder}'\n"
            )
        self.run("pg_ctl", f"--pgdata={self.data}", f"--log={self.folder}/log", "--wait", "start")

    def destroy(self) -> None:
        """Ends PostgreSQL without a word, and deletes its files."""
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        shutil.rmtree(self.data)

    def make_roles(self) -> None:
        service = urlsplit(os.environ[FOR_TESTED_SERVICE])
        psql = ("psql", "--quiet", "--dbname=postgres")
        for statement in (
            f"CREATE ROLE voucher SUPERUSER LOGIN PASSWORD '{self.password}'",
            f"CREATE ROLE {service.username} LOGIN PASSWORD '{service.password}'",
            "CREATE DATABASE voucher OWNER voucher",
        ):
            self.run(*psql, f"--command={statement}")

    def migrate(self) -> None:
        addresses = {"DATABASE_URL": as_service(self.url), "MIGRATION_DATABASE_URL": self.url}
        subprocess.run(
            [sys.executable, PROJECT / "manage.py", "migrate", "--no-input", "--verbosity=0"],
            env={**os.environ, **addresses},
            check=True,
        )

    def back_up(self, kind: str) -> None:
        """Runs the commands of the unit."""
        unit = (DEPLOY / "database-backup@.service").read_text()
        for line in re.findall(r"^ExecStart(?:Post)?=(.*)$", unit, re.MULTILINE):
            self.run(*shlex.split(line.replace("%i", kind).replace("%H", "db1")))


@pytest.fixture
def host(django_db_blocker: Any) -> Iterator[Host]:
    folder = Path(f"/var/lib/postgresql/test-{secrets.token_hex(4)}")
    folder.mkdir()
    shutil.chown(folder, "postgres", "postgres")
    host = Host(folder)
    host.configure()
    host.start()
    try:
        host.make_roles()
        host.migrate()
        with django_db_blocker.unblock(), django_uses(host.url):
            yield host
    finally:
        connection.close()
        host.run("pg_ctl", f"--pgdata={host.data}", "--mode=immediate", "stop", check=False)
        shutil.rmtree(folder)


def gauge(host: Host, name: str) -> float | None:
    """What the exporter would read, with the role of the service."""
    (read,) = (one.read for one in GAUGES if name in one.meanings)
    with psycopg.connect(as_service(host.url)) as service:
        row = service.execute(str(read)).fetchone()
    return None if row is None else float(row[-1])


def test_a_drill_restores_all_that_was_archived(host: Host, tmp_path: Path) -> None:
    merchant, product = make_merchant(balance="100.00"), make_product(price="1.00", codes=9)
    host.run("pgbackrest", "--stanza=voucher", "stanza-create")
    host.run("pgbackrest", "--stanza=voucher", "check")
    assert gauge(host, "voucher_backup_age_seconds") is None
    merchant.buy(product_id=product.pk, quantity=1)
    host.back_up("full")
    merchant.buy(product_id=product.pk, quantity=1)
    host.back_up("incr")
    age = gauge(host, "voucher_backup_age_seconds")
    assert age is not None
    assert 0 <= age < 60
    merchant.buy(product_id=product.pk, quantity=1)  # in the archive only
    archive(host)
    assert gauge(host, "voucher_archiving_fails_seconds") == 0
    connection.close()

    host.destroy()

    printed = drill(host, tmp_path)
    assert "Newest of 3 orders" in printed
    assert '"findings":[]' in printed
    assert re.search(r"^Reconciled after \d+ min \d+ s$", printed, re.MULTILINE)
    assert not list((tmp_path / "drills").iterdir())
    assert b"catalogue_product" not in b"".join(
        file.read_bytes() for file in host.repository.rglob("*") if file.is_file()
    )


def archive(host: Host) -> None:
    with psycopg.connect(host.url, autocommit=True) as owner:
        wanted = owner.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()

        def is_archived() -> bool:
            row = owner.execute("SELECT last_archived_wal FROM pg_stat_archiver").fetchone()
            return bool(row and wanted and row[0] and row[0] >= wanted[0])

        wait_until(is_archived, "the last WAL is archived")


def drill(host: Host, folder: Path) -> str:
    """Runs the drill with the service's secrets; returns what it printed."""
    drills, kept = Path(f"{host.folder}/drills"), folder / "secrets"
    drills.mkdir()
    shutil.chown(drills, "postgres")
    (folder / "drills").symlink_to(drills)
    kept.mkdir()
    for name, text in {
        "database_url": f"{as_service(host.url)}?sslmode=require",
        "redis_url": "redis://127.0.0.1:1/0",
        "django_secret_key": settings.SECRET_KEY,
        "code_encryption_keys": ",".join(settings.CODE_ENCRYPTION_KEYS),
    }.items():
        (kept / name).write_text(text)
    for name in KEPT_WITH_THE_DATA:
        host.environment.pop(name, None)
    host.environment |= {
        "SECRETS": str(kept),
        "DRILL_FOLDER": str(drills),
        "DRILL_PORT": str(free_port()),
    }
    return host.run(str(DEPLOY / "drill"), as_root=True)


def test_archiving_that_fails_is_seen(host: Host) -> None:
    """There is no repository yet."""
    with psycopg.connect(host.url, autocommit=True) as owner:
        owner.execute("SELECT pg_switch_wal()")

    wait_until(lambda: bool(gauge(host, "voucher_archiving_fails_seconds")), "archiving fails")
    assert gauge(host, "voucher_replica_behind_bytes") is None
    with psycopg.connect(host.url, autocommit=True) as owner:
        owner.execute("SELECT pg_create_physical_replication_slot('db2', true)")
        owner.execute("SELECT pg_switch_wal()")
    assert gauge(host, "voucher_replica_behind_bytes")
