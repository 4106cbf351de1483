"""A constraint is validated however long it takes to read the table."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import pytest
from django.contrib.postgres import operations
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader

from core.database.migrations import ValidateConstraint
from tests.concurrency.racing import execute, holding_locks, scalar

pytestmark = pytest.mark.django_db(transaction=True)

TIMEOUT = 0.2  # seconds
STATE = MigrationLoader(None).project_state(("topups", "0001_initial"))


def validate(operation: type[operations.ValidateConstraint]) -> None:
    step = operation("fulfilment", "topups_fulfilment_amount_is_positive")
    with connection.schema_editor(atomic=True) as editor:
        step.database_forwards("topups", editor, STATE, STATE)


@contextmanager
def slow_table() -> Iterator[None]:
    """The validation waits for this lock as long as it would read a large table."""
    with holding_locks("LOCK TABLE topups_fulfilment IN SHARE UPDATE EXCLUSIVE MODE") as other:
        timer = Timer(5 * TIMEOUT, other.rollback)
        timer.start()
        try:
            yield
        finally:
            timer.join()


def test_the_timeout_of_the_service_does_not_end_a_validation() -> None:
    try:
        execute(f"SET statement_timeout = '{TIMEOUT}s'")
        with pytest.raises(OperationalError), slow_table():  # the control
            validate(operations.ValidateConstraint)

        with slow_table():
            validate(ValidateConstraint)

        assert scalar("SHOW statement_timeout") == "200ms", "it holds again"
    finally:
        connection.close()
