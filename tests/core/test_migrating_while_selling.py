"""`migrate` waits for a table in short attempts, so that purchases do not wait behind it."""

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, migrations
from django.db.migrations.loader import MigrationLoader

from core.database.applied_migrations import missing_migrations
from core.management.commands import migrate
from tests.concurrency.racing import execute, holding_locks, in_background, scalar, wait_for_waiting
from tests.factories import Merchant, make_product

pytestmark = pytest.mark.django_db(transaction=True)

SHIPPED = migrate.LOCK_TIMEOUT
PATIENCE = 1.0  # seconds of `migrate` for a lock in these tests


@pytest.fixture(autouse=True)
def one_more_migration(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A migration of `orders` that locks a table and adds a column, and is not applied yet."""
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", f"{PATIENCE}s")
    monkeypatch.setattr(migrate, "PAUSE_SECONDS", 0.1)
    load_disk = MigrationLoader.load_disk
    added = type(
        "Migration",
        (migrations.Migration,),
        {
            "dependencies": MigrationLoader(None).graph.leaf_nodes("orders"),
            "operations": [
                migrations.RunSQL("LOCK TABLE catalogue_category"),
                migrations.RunSQL("ALTER TABLE orders_order ADD COLUMN rehearsal int"),
            ],
        },
    )

    def load_one_more(loader: MigrationLoader) -> None:
        load_disk(loader)
        loader.disk_migrations["orders", "9999_rehearsal"] = added("9999_rehearsal", "orders")

    missing_migrations()  # remembers the migrations on the disk without this one
    monkeypatch.setattr(MigrationLoader, "load_disk", load_one_more)
    yield
    connection.close()
    execute("ALTER TABLE orders_order DROP COLUMN IF EXISTS rehearsal")
    execute("DELETE FROM django_migrations WHERE name = '9999_rehearsal'")


def run_migrate() -> None:
    call_command("migrate", "orders", "9999_rehearsal", verbosity=0, skip_checks=True)


def column_exists() -> bool:
    return bool(
        scalar(
            "SELECT count(*) FROM information_schema.columns"
            " WHERE table_name = 'orders_order' AND column_name = 'rehearsal'"
        )
    )


def test_a_purchase_does_not_wait_until_the_reader_of_a_table_has_ended(merchant: Merchant) -> None:
    product = make_product(price="1.00", codes=1)

    with holding_locks("SELECT FROM orders_order") as reader, in_background(run_migrate) as run:
        wait_for_waiting(1)
        began = time.monotonic()
        bought = merchant.buy(product_id=product.pk, quantity=1)
        waited = time.monotonic() - began
        assert not run.done()
        reader.rollback()

    assert bought.status_code == 201
    assert waited < 5 * PATIENCE
    assert column_exists()


def test_a_migration_that_a_deadlock_ended_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "10s")

    with holding_locks("SELECT FROM orders_order") as other, in_background(run_migrate) as run:
        wait_for_waiting(1)
        other.execute("SET deadlock_timeout = '1min'")  # so PostgreSQL ends the migration
        other.execute("SELECT FROM catalogue_category")
        other.rollback()
        run.result()

    assert column_exists()


def test_migrate_gives_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "GIVE_UP_AFTER_SECONDS", 0.0)

    gives_up = pytest.raises(OperationalError, match="lock timeout")
    with holding_locks("SELECT FROM orders_order"), gives_up:
        run_migrate()

    assert not column_exists()


def test_migrate_waits_long_enough_to_cancel_an_autovacuum() -> None:
    """A waiter cancels an autovacuum that is in its way once `deadlock_timeout` has passed."""
    longer = scalar(f"SELECT '{SHIPPED}'::interval - current_setting('deadlock_timeout')::interval")
    assert longer >= timedelta(milliseconds=300)


def test_later_statements_have_the_timeouts_of_the_service() -> None:
    run_migrate()

    assert scalar("SHOW lock_timeout") == "10s"
