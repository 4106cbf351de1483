"""An upgrade while merchants buy: no purchase fails, and none is made twice.

The steps are those of docs/operate/upgrade.md. `make upgrade-test` runs this under 60 seconds of
load; UPGRADE_SECONDS sets the time.
"""

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from labs.installation.buyers import Bought, Buyers, assert_no_purchase_failed_or_doubled
from labs.upgrade.versions import OPERATOR, Version, empty_database
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import rows, scalar
from tests.database import django_uses
from tests.live import LiveServer, as_service
from tests.old_version import install
from tests.tasks.running import running_broker, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.history]

SECONDS = float(os.environ.get("UPGRADE_SECONDS", "4"))  # of load, besides the starts of processes
SHELVES = 2
CODES = int(2000 + SECONDS * 50)  # on each shelf: more than the buyers can buy
TOPUP = {"delivery_type": "top_up", "system_product_id": 1, "player_id": "0012345"}
LONGEST_PURCHASE = 8.0  # seconds, with all retries, on a busy machine
# So that nobody waits for five minutes.
OLD_SETTINGS = "from config.settings import *\nIDEMPOTENCY_IN_PROGRESS_SECONDS = 2\n"
SOLD = {"currency": "USD", "price": 1.25, "active": True}


@pytest.fixture
def versions(tmp_path: Path, worker_id: str) -> Iterator[tuple[Version, Version]]:
    """The old and the new version on one database and broker. The old one has migrated it."""
    with ExitStack() as stack:
        url = stack.enter_context(empty_database(f"upgrade_{worker_id}"))
        broker = stack.enter_context(running_broker())
        environment = {
            "DATABASE_URL": url,
            "CELERY_BROKER_URL": broker.url,
            "DJANGO_SETTINGS_MODULE": "upgrade_settings",
        }
        project = tmp_path / "old"
        project.mkdir()
        install(project)
        (project / "upgrade_settings.py").write_text(OLD_SETTINGS)
        old = Version("old", project, environment, tmp_path)
        old.manage("migrate", "--verbosity=0")
        # The old version has one role, which owns the tables. The new one has a role of its own.
        new_environment = {
            **environment,
            "DATABASE_URL": as_service(url),
            "MIGRATION_DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "labs.upgrade.rehearsal.settings",
        }
        new = Version("new", PROJECT, new_environment, tmp_path)
        stack.enter_context(django_uses(url))
        yield old, new


def stock(version: Version, folder: Path, *, codes: int = CODES) -> list[str]:
    """Makes two merchants, products and an operator. Returns the API keys."""
    catalogue, file = folder / "catalogue.json", folder / "codes.csv"
    shelves = range(1, SHELVES + 1)
    products = [{"id": shelf, "name": f"Card {shelf}", **SOLD} for shelf in shelves]
    topups = [{"id": 1, "name": "Gems", "published": True, **SOLD}]
    catalogue.write_text(json.dumps({"products": products, "topup_products": topups}))
    version.manage("import_catalogue", str(catalogue))
    for shelf in shelves:
        lines = [f"{shelf}-CODE-{number}" for number in range(codes)]
        file.write_text("\n".join(["code", *lines]))
        version.manage("import_codes", str(shelf), str(file))
    keys = []
    for name in ("One", "Two"):
        made = version.ask("create_account", name, "--balance", "1000000.00")
        account = str(made["account_id"])
        client = version.ask("create_client", name, "--account", account, "--rate-limit", "1000000")
        keys.append(client["api_key"])
    version.manage(
        *(
            "createsuperuser",
            "--no-input",
            f"--username={OPERATOR}",
            "--email=operator@example.com",
        ),
        DJANGO_SUPERUSER_PASSWORD="correct horse battery",
    )
    return keys


def reject(version: Version, bought: Bought) -> None:
    """An operator rejects the top-up, so a worker refunds it."""
    reference = bought.data["reference"]
    seen = str(version.ask("fulfilment", "show", reference)["version"])
    version.manage("fulfilment", "reject", reference, "--version", seen, "--operator", OPERATOR)
    wait_until(lambda: is_refunded(reference), f"the refund by the worker of {version.name}")


def is_refunded(reference: str) -> bool:
    found = (
        "SELECT count(*) FROM wallets_ledgerentry WHERE kind = 'refund' AND order_reference = %s"
    )
    return bool(scalar(found, reference))


def latest(buyers: Buyers, **body: object) -> Bought:
    """The latest purchase whose request has these values."""
    return next(one for one in reversed(buyers.bought) if body.items() <= one.body.items())


def assert_replays(buyers: Buyers, server: LiveServer) -> None:
    """A retry at this server returns what its purchase returned, whichever version made it."""
    for one in random.sample(buyers.bought, 10):
        again = buyers.send(server, api_key=one.api_key, key=one.key, body=one.body)
        assert again is not None
        assert (again.content, again["Idempotent-Replay"]) == (one.answer.content, "true")


def test_merchants_buy_during_an_upgrade(versions: tuple[Version, Version], tmp_path: Path) -> None:
    old, new = versions
    keys = stock(old, tmp_path)
    bodies = [{"product_id": shelf, "quantity": 1} for shelf in range(1, SHELVES + 1)]

    with ExitStack() as stack:
        old_web = stack.enter_context(old.web_server())
        old_worker = stack.enter_context(old.worker())
        buyers = Buyers(keys, [*bodies, TOPUP], [old_web])
        with buyers.running():
            time.sleep(SECONDS / 4)
            reject(old, latest(buyers, delivery_type="top_up"))

            before = applied()
            new.manage("migrate", "--verbosity=0")
            migrated = applied() - before
            time.sleep(SECONDS / 4)

            new_web = stack.enter_context(new.web_server())
            new_worker = stack.enter_context(new.worker())
            buyers.servers = [old_web, new_web]
            time.sleep(SECONDS / 4)
            assert_replays(buyers, old_web)
            assert_replays(buyers, new_web)

            # The merchants learn that the old server stops by what happens to their requests.
            old_web.stop()
            buyers.servers = [new_web]
            old_worker.stop()
            reject(new, latest(buyers, delivery_type="top_up"))
            time.sleep(SECONDS / 4)
        assert_replays(buyers, new_web)
        assert new_worker.exit_code() is None

    report(buyers, migrated)
    assert ("rehearsal", "0003_index_orders") in migrated
    assert_no_purchase_failed_or_doubled(buyers)
    assert max(one.seconds for one in buyers.bought) < LONGEST_PURCHASE
    assert_books_balance()
    found = new.ask("reconcile", "--decrypt")
    assert found["findings"] == []


def applied() -> set[tuple[str, str]]:
    return {(app, name) for app, name in rows("SELECT app, name FROM django_migrations")}


def report(buyers: Buyers, migrated: set[tuple[str, str]]) -> None:
    slowest = max(one.seconds for one in buyers.bought)
    names = ", ".join(sorted(f"{app}.{name}" for app, name in migrated))
    print(f"{len(buyers.bought)} purchases, slowest {slowest:.2f} s. Requests: {buyers.seen}")  # noqa: T201
    print(f"Migrations applied meanwhile: {names}")  # noqa: T201
