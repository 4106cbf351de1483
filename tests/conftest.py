"""Shared by every test. Real servers come from `python -m config.embedded exec` (`make test`)."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db.backends.postgresql.operations import DatabaseOperations

from tests.factories import Merchant, make_merchant


@pytest.fixture(autouse=True, scope="session")
def _flush_past_the_guards() -> Iterator[None]:
    """Lets pytest-django empty the tables between tests that commit.

    The database refuses to truncate a ledger or an order, as it should. Only this flush runs with
    triggers off, and only as the superuser of the test servers.
    """
    flush = DatabaseOperations.execute_sql_flush

    def flush_without_triggers(self: DatabaseOperations, statements: Any) -> None:
        flush(self, ["SET LOCAL session_replication_role = replica", *statements])

    DatabaseOperations.execute_sql_flush = flush_without_triggers  # type: ignore[method-assign, assignment]
    yield
    DatabaseOperations.execute_sql_flush = flush  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def _empty_rate_limits() -> Iterator[None]:
    """Each test starts with nothing counted against anybody."""
    yield
    cache.clear()


@pytest.fixture
def merchant(db: None) -> Merchant:
    """A merchant with 100.00 USD."""
    return make_merchant()
