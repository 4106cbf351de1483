"""Fixtures of several laboratories, some of them from tests/."""

from collections.abc import Iterator
from typing import Any

import pytest

from labs.installation.postgres import DurablePostgres, durable_postgres
from tests.tasks.conftest import broker, crew
from tests.telegram.conftest import desk, place, telegram

__all__ = ["broker", "crew", "desk", "place", "telegram"]


@pytest.fixture(scope="module")
def durable(django_db_blocker: Any) -> Iterator[DurablePostgres]:
    """A durable database of this module, which may be killed."""
    with django_db_blocker.unblock(), durable_postgres() as server:
        yield server
