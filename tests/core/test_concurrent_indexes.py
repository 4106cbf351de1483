"""An index is built while the service sells, and a rerun repairs a build that was cancelled."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import pytest
from django.contrib.postgres import operations
from django.db import OperationalError, connection, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from core.database.migrations import AddIndexConcurrently, RemoveIndexConcurrently
from tests.concurrency.racing import execute, holding_locks, scalar

INDEX = "test_concurrent_index"
TABLE = "idempotency_idempotencyrecord"
TIMEOUT = 0.2  # seconds

WITHOUT = MigrationLoader(None).project_state(("idempotency", "0001_initial"))
STEPS = [
    step
    for migration in MigrationLoader(None).disk_migrations.values()
    for step in migration.operations
]


@pytest.fixture
def short_timeouts(transactional_db: None) -> Iterator[None]:
    """The timeouts of the service, shortened, and no index left behind."""
    shorten_timeouts()
    yield
    connection.close()
    execute(f"DROP INDEX IF EXISTS {INDEX}")


def shorten_timeouts() -> None:
    execute(f"SET statement_timeout = '{TIMEOUT}s'")
    execute(f"SET lock_timeout = '{TIMEOUT}s'")


def build(operation: type[operations.AddIndexConcurrently]) -> None:
    run(operation("idempotencyrecord", models.Index(name=INDEX, fields=["started_at"])), WITHOUT)


def drop(operation: type[operations.RemoveIndexConcurrently]) -> None:
    before = WITHOUT.clone()
    index = models.Index(name=INDEX, fields=["started_at"])
    AddIndexConcurrently("idempotencyrecord", index).state_forwards("idempotency", before)
    run(operation("idempotencyrecord", INDEX), before)


def run(step: Operation, before: ProjectState) -> None:
    after = before.clone()
    step.state_forwards("idempotency", after)
    with connection.schema_editor(atomic=False) as editor:
        step.database_forwards("idempotency", editor, before, after)


@contextmanager
def transaction_running() -> Iterator[None]:
    """Both operations wait for the transactions that changed the table. This one lasts five
    timeouts."""
    with holding_locks(f"LOCK TABLE {TABLE} IN ROW EXCLUSIVE MODE") as writer:
        timer = Timer(5 * TIMEOUT, writer.rollback)
        timer.start()
        try:
            yield
        finally:
            timer.join()


def is_valid() -> bool | None:
    name = f"to_regclass('{INDEX}')"
    valid: bool | None = scalar(
        f"SELECT bool_and(indisvalid) FROM pg_index WHERE indexrelid = {name}"
    )
    return valid


def test_the_timeouts_of_the_service_do_not_cancel_a_build(short_timeouts: None) -> None:
    with transaction_running():
        build(AddIndexConcurrently)

    assert is_valid() is True


def test_the_timeouts_of_the_service_do_not_cancel_a_drop(short_timeouts: None) -> None:
    build(AddIndexConcurrently)
    shorten_timeouts()  # the build has reset them
    with pytest.raises(OperationalError), transaction_running():  # the control
        drop(operations.RemoveIndexConcurrently)

    with transaction_running():
        drop(RemoveIndexConcurrently)

    assert is_valid() is None
    drop(RemoveIndexConcurrently)  # interrupted before it was recorded: nothing is left to do


def test_the_timeouts_hold_again_after_a_build(transactional_db: None) -> None:
    before = scalar("SHOW statement_timeout"), scalar("SHOW lock_timeout")
    try:
        build(AddIndexConcurrently)
        assert (scalar("SHOW statement_timeout"), scalar("SHOW lock_timeout")) == before
    finally:
        execute(f"DROP INDEX IF EXISTS {INDEX}")
    assert before == ("20s", "10s")


def test_a_rerun_replaces_what_a_cancelled_build_left(short_timeouts: None) -> None:
    with pytest.raises(OperationalError), transaction_running():  # the control
        build(operations.AddIndexConcurrently)
    assert is_valid() is False

    build(AddIndexConcurrently)

    assert is_valid() is True
    build(AddIndexConcurrently)  # interrupted before it was recorded: nothing is left to do
    assert is_valid() is True


def test_every_migration_builds_concurrent_indexes_this_way() -> None:
    for step in STEPS:
        if isinstance(step, operations.AddIndexConcurrently):
            assert isinstance(step, AddIndexConcurrently)
        if isinstance(step, operations.RemoveIndexConcurrently):
            assert isinstance(step, RemoveIndexConcurrently)
        assert "CONCURRENTLY" not in str(getattr(step, "sql", "")).upper()
