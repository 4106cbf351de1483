"""A job sleeps between its transactions, so that purchases beside it are not slowed for long."""

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.api_access import request_records
from accounts.api_access.request_records import delete_old_records
from accounts.models import RequestRecord
from core.database.pauses import LONGEST, TIMES_AS_LONG, pause_afterwards
from idempotency import cleanup
from idempotency.cleanup import cleanup_records
from idempotency.models import IdempotencyRecord
from tests.factories import buy_topup, make_merchant, make_record


@pytest.fixture(autouse=True)
def _no_pauses() -> None:
    """Here jobs do rest: this takes the place of the fixture of all tests."""


def test_a_pause_is_longer_than_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    clock = iter([10.0, 10.0625])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(time, "sleep", slept.append)
    with pause_afterwards():
        assert slept == []
    assert slept == [TIMES_AS_LONG * 0.0625]


def test_a_slow_transaction_does_not_use_up_the_time_of_a_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    clock = iter([10.0, 17.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(time, "sleep", slept.append)
    with pause_afterwards():
        pass
    assert slept == [LONGEST]


JOBS: list[Callable[[], int]] = [
    cleanup_records,
    lambda: delete_old_records(seconds=5),
]


def make_work(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes as many rows for each job, which takes one row in a transaction."""
    merchant = make_merchant(balance="1000.00")
    for _ in range(rows):
        make_record(merchant.client)
        buy_topup(merchant)
    RequestRecord.objects.update(at=timezone.now() - timedelta(days=400))
    IdempotencyRecord.objects.update(
        created_at=timezone.now() - timedelta(days=9), bought_at=timezone.now() - timedelta(days=9)
    )
    monkeypatch.setattr(cleanup, "BATCH", 1)
    monkeypatch.setattr(request_records, "WINDOW", 1)


def test_each_transaction_of_a_job_is_followed_by_a_pause(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_work(3, monkeypatch)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for job in JOBS:
        slept.clear()
        assert job() >= 3
        assert len(slept) > 3
