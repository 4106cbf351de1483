"""deploy/postgresql/voucher.conf is accepted by PostgreSQL."""

import re

import pytest
from django.db import connection

from embedded.environment import PROJECT

FILE = PROJECT / "deploy" / "postgresql" / "voucher.conf"
SETTINGS = dict(re.findall(r"^(\w+) = (\S+)$", FILE.read_text(), flags=re.MULTILINE))


@pytest.mark.django_db(transaction=True)
def test_postgresql_accepts_each_setting() -> None:
    """`ALTER SYSTEM` checks a value as the start of the server does. Nothing reads the file again
    before it is reset."""
    with connection.cursor() as cursor:
        for name, value in SETTINGS.items():
            cursor.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            cursor.execute(f"ALTER SYSTEM RESET {name}")


def test_a_commit_stays_durable() -> None:
    assert {SETTINGS["fsync"], SETTINGS["synchronous_commit"]} == {"on"}


def test_every_line_is_a_setting_or_a_comment() -> None:
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    assert len(lines) == len(SETTINGS)
