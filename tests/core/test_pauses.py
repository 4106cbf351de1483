"""A job sleeps between its transactions, so that purchases beside it are not slowed for long."""

import time
from collections.abc import Callable

import pytest

from accounts.models import RequestRecord
from accounts.request_records import delete_old_records
from core.database.pauses import TIMES_AS_LONG, pause_afterwards
from idempotency.cleanup import cleanup_records
from tests.factories import make_merchant, make_record


def test_a_pause_is_longer_than_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    clock = iter([10.0, 10.5])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(time, "sleep", slept.append)
    with pause_afterwards():
        assert slept == []
    assert slept == [TIMES_AS_LONG * 0.5]


@pytest.mark.parametrize(
    "job",
    [cleanup_records, lambda: delete_old_records(seconds=5)],
    ids=["keys", "requests"],
)
def test_each_transaction_of_a_deletion_is_followed_by_a_pause(
    job: Callable[[], int], db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_record(make_merchant().client)
    assert RequestRecord.objects.exists()
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    job()
    assert slept
