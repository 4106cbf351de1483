"""The database roles of the documentation are enough to migrate and to sell."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from urllib.parse import urlsplit

import psycopg
import pytest

from embedded.environment import PROJECT
from operators.upkeep.reconcile import reconcile
from tests.database import django_uses
from tests.factories import buy_topup, make_merchant, make_product
from tests.live import owner_url

ROLES_PAGE = PROJECT / "docs" / "operate" / "database-roles.md"


def documented_sql() -> str:
    found = re.search(r"```sql\n(.*?)```", ROLES_PAGE.read_text(), re.DOTALL)
    assert found
    return found[1]


@pytest.mark.django_db(transaction=True)
def test_the_documented_roles_are_enough(worker_id: str) -> None:
    """An owner without any other power migrates, and the service sells."""
    prefix = f"roles_{worker_id}"
    statements = documented_sql().replace("voucher", prefix).strip().split("\n")
    at = urlsplit(owner_url())
    place = f"{at.hostname}:{at.port}/{prefix}"
    owner = f"postgresql://{prefix}:owner-password@{place}"
    service = f"postgresql://{prefix}_service:service-password@{place}"
    with ExitStack() as stack:
        server = stack.enter_context(psycopg.connect(owner_url(), autocommit=True))
        for statement in statements:
            server.execute(statement.encode())
        for kind, name in (("ROLE", prefix), ("ROLE", f"{prefix}_service"), ("DATABASE", prefix)):
            stack.callback(server.execute, f"DROP {kind} {name}".encode())
        migrated = subprocess.run(
            [sys.executable, "manage.py", "migrate", "--verbosity=0"],
            cwd=PROJECT,
            env={**os.environ, "DATABASE_URL": service, "MIGRATION_DATABASE_URL": owner},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (migrated.returncode, migrated.stderr) == (0, "")
        with django_uses(service):
            merchant = make_merchant()
            product = make_product(price="1.00", codes=1)
            bought = merchant.buy("one", product_id=product.pk, quantity=1)
            assert bought.status_code == 201
            buy_topup(merchant)
            result = reconcile(decrypt=True)
        assert (result["findings"], result["warnings"]) == ([], [])
