"""The scheduler goes on when the clock of its host is set."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from celery.schedules import schedule

from config.beat import Scheduler
from config.celery import app
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
        wait_until(partial(holds, broker, enough), "sweeps are queued")

    assert beat.exit_code() is None


class ScheduleInMemory(Scheduler):
    """The scheduler of the product, without its file and without a broker."""

    schedule: Any = None
    producer: Any = None

    def setup_schedule(self) -> None:
        self.schedule = {}

    def apply_entry(self, entry: object, producer: object = None) -> None:
        pass


@pytest.mark.parametrize("reads", range(1, 20))
def test_a_clock_set_back_between_two_reads_costs_one_short_sleep(reads: int) -> None:
    """The scheduler reads the clock several times per step, and it may be set between any two."""
    still_ahead = 1_000

    def clock() -> datetime:
        nonlocal still_ahead
        still_ahead -= 1
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=still_ahead >= 0)

    scheduler = ScheduleInMemory(app)
    every_second = schedule(1, nowfun=clock, app=app)
    scheduler.update_from_dict(
        {name: {"task": name, "schedule": every_second} for name in ("refunds", "announcements")}
    )
    for _ in range(6):
        scheduler.tick()
    still_ahead = reads

    assert max(scheduler.tick() for _ in range(6)) <= 5
