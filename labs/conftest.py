"""Fixtures of several laboratories, some of them from tests/."""

from collections.abc import Iterator
from typing import Any

import pytest

from core import queue
from labs.installation.postgres import DurablePostgres, durable_postgres
from labs.installation.rabbitmq import Rabbit, running_rabbitmq
from tests.tasks.conftest import crew
from tests.tasks.running import Broker, running_broker
from tests.telegram.conftest import desk, place, telegram

__all__ = ["crew", "desk", "place", "telegram"]


@pytest.fixture(scope="module")
def durable(django_db_blocker: Any) -> Iterator[DurablePostgres]:
    """A durable database of this module, which may be killed."""
    with django_db_blocker.unblock(), durable_postgres() as server:
        yield server


@pytest.fixture
def broker(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Broker | Rabbit]:
    """A running Valkey, or RabbitMQ if the test has it as a parameter; also of this process."""
    running = running_rabbitmq if getattr(request, "param", "") == "rabbitmq" else running_broker
    with running() as broker:
        monkeypatch.setenv("CELERY_BROKER_URL", broker.url)
        monkeypatch.setattr(queue, "pause", queue.Pause())
        yield broker
