import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.commands import CELERY
from embedded.environment import PROJECT
from tests.live import LiveServer, database_url, live_server, with_settings
from tests.quick_starts import QuickProcess


@pytest.fixture(scope="module")
def broker() -> str:
    """The URL of a broker that no other test uses."""
    number = 2 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 14
    return os.environ["CELERY_BROKER_URL"].rpartition("/")[0] + f"/{number}"


@pytest.fixture(scope="module")
def server(django_db_setup: None, broker: str) -> Iterator[LiveServer]:
    environment = {"CELERY_BROKER_URL": broker, **with_settings(DESK_REFRESH_SECONDS=1)}
    with live_server(environment) as server:
        yield server


@pytest.fixture
def worker(broker: str, tmp_path: Path) -> Iterator[None]:
    """A real Celery worker on the test's database."""
    environment = {**os.environ, "DATABASE_URL": database_url(), "CELERY_BROKER_URL": broker}
    process = QuickProcess(
        "worker",
        [
            *CELERY,
            "worker",
            "--queues=celery,imports,files",
            "--loglevel=info",
            "--concurrency=1",
            "--without-gossip",
        ],
        environment=environment,
        folder=PROJECT,
        log=tmp_path / "worker.log",
    )
    try:
        yield
    finally:
        process.stop()
