"""A broker and workers for each test."""

from collections.abc import Iterator

import pytest

from core import queue
from tests.tasks.running import Broker, Crew, running_broker, running_crew


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """A running Valkey, which is also the broker of the test process."""
    with running_broker() as broker:
        monkeypatch.setenv("CELERY_BROKER_URL", broker.url)
        monkeypatch.setattr(queue, "pause", queue.Pause())
        yield broker


@pytest.fixture
def crew(broker: Broker, transactional_db: None) -> Iterator[Crew]:
    with running_crew(broker.url) as crew:
        yield crew
