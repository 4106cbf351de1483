"""`reconcile` runs on a read replica; a web server on a replica sells nothing."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labs.installation.postgres import DurablePostgres, durable_postgres
from labs.installation.replica import replica_of, wait_until_caught_up
from tests.factories import Merchant, buy_topup, make_merchant, make_product
from tests.live import API, as_service, live_server
from tests.quick_starts import run_quickly


@pytest.fixture(scope="module")
def primary(django_db_blocker: Any) -> Iterator[DurablePostgres]:
    with django_db_blocker.unblock(), durable_postgres() as server:
        yield server


@pytest.fixture
def replica(primary: DurablePostgres, tmp_path: Path) -> Iterator[str]:
    tmp_path.chmod(0o755)
    with replica_of(primary.url, tmp_path) as url:
        yield url


def test_reconcile_runs_on_a_replica(primary: DurablePostgres, replica: str) -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="1.00", codes=5)
    for number in range(5):
        assert merchant.buy(f"k{number}", product_id=product.pk, quantity=1).status_code == 201
    buy_topup(merchant)
    wait_until_caught_up(primary.url, replica)

    environment = {**os.environ, "DATABASE_URL": as_service(replica)}
    checked = run_quickly(["manage.py", "reconcile"], environment=environment)

    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["findings"] == []


def test_a_web_server_on_a_replica_sells_nothing(primary: DurablePostgres, replica: str) -> None:
    """Reads work. A purchase is a server_error, changes nothing, and can be repeated."""
    merchant = make_merchant(balance="100.00")
    product = make_product(price="1.00", codes=1)
    wait_until_caught_up(primary.url, replica)

    with live_server({**API, "DATABASE_URL": as_service(replica)}) as server:
        mistaken = Merchant(merchant.client, http=server.http)
        mistaken.key = merchant.key
        assert mistaken.get("/balance").json()["data"]["balance"] == 100
        refused = mistaken.buy("one", product_id=product.pk, quantity=1)
    assert refused.json()["error"]["code"] == "server_error"

    assert merchant.buy("one", product_id=product.pk, quantity=1).status_code == 201
