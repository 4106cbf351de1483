"""A database that `migrate` has not prepared stops the start with one line."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

from tests.core.test_unsafe_settings import MANAGE, STARTS, environment_of
from tests.live import owner_url
from tests.quick_starts import run_quickly

pytestmark = pytest.mark.django_db(transaction=True)
ROLE = "nobody_in_particular"
PROGRAMS = {"reconcile": [MANAGE, "reconcile"], "web": STARTS["web"], "worker": STARTS["worker"]}


@pytest.fixture
def stranger() -> Iterator[str]:
    """The address of the test's database for a role that `migrate` does not know."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'secret'")
        try:
            parts = urlsplit(owner_url())
            place = f"{ROLE}:secret@{parts.hostname}:{parts.port}"
            yield urlunsplit(parts._replace(netloc=place))
        finally:
            cursor.execute(f"DROP ROLE {ROLE}")


def test_a_role_without_rights_is_told_to_migrate(stranger: str, tmp_path: Path) -> None:
    environment = environment_of({"DATABASE_URL": stranger})
    for name, command in PROGRAMS.items():
        started = run_quickly(command, environment=environment, folder=tmp_path)
        lines = [line for line in started.stderr.splitlines() if "voucher.E016" in line]
        assert (name, started.returncode, len(lines)) == (name, 1, 1), started.stderr
        assert f"refuses the role {ROLE}: permission denied" in lines[0]
        assert "Run `manage.py migrate`" in lines[0]
        assert "Traceback" not in started.stderr
