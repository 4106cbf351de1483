"""A dump is restored by the commands of docs/operate/backup.md, and the service sells from it."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from embedded.binaries import postgres_binary
from embedded.environment import FOR_MIGRATE_ONLY, PROJECT
from labs.installation.machine import timed
from labs.installation.postgres import durable_postgres
from tests.factories import Merchant, make_merchant, make_product
from tests.live import API, live_server

PAGE = PROJECT / "docs/operate/backup.md"


def commands() -> list[str]:
    """The commands of the section, in order."""
    section = PAGE.read_text().partition("## Restore a dump")[2]
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


def carry_out(command: str, folder: Path, **environment: str) -> str:
    """Runs a command of the page in a folder. `manage.py` is on the administrator's path."""
    manage = f"{PROJECT / '.venv/bin/python'} {PROJECT / 'manage.py'}"
    path = f"{postgres_binary('pg_dump').parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command.replace("manage.py", manage)],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def make_roles(superuser: str) -> dict[str, str]:
    """Creates the roles and the database, as on the page of roles; returns the two addresses."""
    with psycopg.connect(superuser, autocommit=True) as connection:
        for role in ("new_owner", "new_service"):
            connection.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'secret'").format(sql.Identifier(role))
            )
        connection.execute("CREATE DATABASE restored OWNER new_owner")
    at = urlsplit(superuser)
    host = at.netloc.rpartition("@")[2]
    return {
        name: at._replace(netloc=f"{role}:secret@{host}", path="/restored").geturl()
        for name, role in ((FOR_MIGRATE_ONLY, "new_owner"), ("DATABASE_URL", "new_service"))
    }


def test_the_service_sells_from_a_restored_dump(tmp_path: Path, django_db_blocker: Any) -> None:
    dump, restore, migrate, reconcile = commands()
    with django_db_blocker.unblock(), durable_postgres() as server:
        merchant, product = make_merchant(balance="100.00"), make_product(price="1.00", codes=3)
        sold = merchant.buy("before", product_id=product.pk, quantity=2).json()["data"]
        carry_out(dump, tmp_path, **{FOR_MIGRATE_ONLY: server.url})

        new = make_roles(server.url)
        with timed("restore, migrate and reconcile"):
            for command in (restore, migrate):
                carry_out(command, tmp_path, **new)
            assert '"findings":[]' in carry_out(reconcile, tmp_path, **new)

        with live_server({**API, "DATABASE_URL": new["DATABASE_URL"]}) as service:
            buyer = Merchant(merchant.client, http=service.http)
            buyer.key = merchant.key
            again = buyer.buy("before", product_id=product.pk, quantity=2)
            assert again.json()["data"] == sold  # the replay came with the dump
            left = buyer.buy("after", product_id=product.pk, quantity=1)
            assert left.status_code == 201
            assert left.json()["data"]["codes"][0]["code"] not in {
                code["code"] for code in sold["codes"]
            }
