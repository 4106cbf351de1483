"""The scheduler goes on when the clock of its host is set."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from embedded.processes import Process
from tests.clock import Clock, build_clock
from tests.tasks.running import Broker, Celery, every_second, wait_until

HOUR = 3600


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock", build_clock(tmp_path))


@pytest.fixture
def beat(broker: Broker, clock: Clock, tmp_path: Path, transactional_db: None) -> Iterator[Process]:
    """A process of its own: only a new program loads the library of the clock."""
    environment = {
        **os.environ,
        **clock.environment,
        "CELERY_BROKER_URL": broker.url,
        "METRICS_DIR": str(tmp_path / "metrics"),
        "CELERY_SKIP_CHECKS": "1",
        **every_second("sweep-refunds", "sweep-announcements"),
    }
    command = Celery("beat", folder=tmp_path, environment=environment).command
    with (tmp_path / "log").open("wb") as log:
        process = Process(
            "beat", command, environment=environment, folder=PROJECT, output=log, own_session=True
        )
    yield process
    process.stop()


def holds(broker: Broker, messages: int) -> bool:
    return broker.waiting() >= messages


@pytest.mark.compiler
@pytest.mark.parametrize("ahead", [HOUR, -HOUR], ids=["ahead", "behind"])
def test_sweeps_go_on_after_the_clock_was_wrong_and_is_set_right(
    broker: Broker, clock: Clock, beat: Process, ahead: int
) -> None:
    """The last runs of a clock that was ahead lie in the future."""
    for seconds in (0, ahead, 0):
        clock.set(seconds)
        # The broker keeps every message: no worker runs.
        enough = broker.waiting() + 4
        wait_until(partial(holds, broker, enough), "sweeps are queued", timeout=30)

    assert beat.exit_code() is None
