from collections.abc import Iterator
from typing import Any

import pytest

from labs.proof.kills import Zygote, running_zygote
from tests.e2e.durable import DurablePostgres, durable_postgres


@pytest.fixture(scope="module")
def durable(django_db_blocker: Any) -> Iterator[DurablePostgres]:
    """A durable database of this module, which may be killed."""
    with django_db_blocker.unblock(), durable_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def zygote(durable: DurablePostgres) -> Iterator[Zygote]:
    """Starts processes of the service on that database."""
    with running_zygote(durable) as zygote:
        yield zygote
