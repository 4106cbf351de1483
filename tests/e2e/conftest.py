from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.durable import DurablePostgres, durable_postgres


@pytest.fixture(scope="module")
def durable(django_db_blocker: Any) -> Iterator[DurablePostgres]:
    """A durable database, shared by the tests of a module. Each test creates its own merchants."""
    with django_db_blocker.unblock(), durable_postgres() as server:
        yield server
