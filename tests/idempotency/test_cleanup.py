"""`cleanup_idempotency` deletes the records that are old enough, and no others."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import ApiClient
from idempotency import cleanup
from idempotency.models import IdempotencyRecord
from tests.commands import run
from tests.factories import make_client

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> ApiClient:
    return make_client()


def make_record(
    client: ApiClient,
    key: str,
    *,
    age: timedelta,
    success: bool = False,
    idle: timedelta = timedelta(hours=1),
) -> None:
    now = timezone.now()
    IdempotencyRecord.objects.create(
        client=client,
        key=key,
        fingerprint=b"",
        created_at=now - age,
        started_at=now - idle,
        order_reference="0" * 26 if success else None,
        response=b"sealed" if success else None,
    )


def kept_keys() -> set[str]:
    return set(IdempotencyRecord.objects.values_list("key", flat=True))


def test_successes_are_deleted_after_seven_days_and_others_after_one(shop: ApiClient) -> None:
    week, day, second = timedelta(days=7), timedelta(days=1), timedelta(seconds=5)
    make_record(shop, "old success", age=week + second, success=True)
    make_record(shop, "success", age=week - second, success=True)
    make_record(shop, "old unfinished", age=day + second)
    make_record(shop, "unfinished", age=day - second)
    make_record(shop, "old, and taken over just now", age=day + second, idle=timedelta(seconds=1))

    assert run("cleanup_idempotency") == {"deleted": 2}
    assert kept_keys() == {"success", "unfinished", "old, and taken over just now"}
    assert run("cleanup_idempotency") == {"deleted": 0}


def test_an_abandoned_record_is_deleted_after_one_day(shop: ApiClient) -> None:
    make_record(shop, "abandoned", age=timedelta(days=2))
    day_ago = timezone.now() - timedelta(days=1, minutes=1)
    IdempotencyRecord.objects.update(order_reference="0" * 26, started_at=day_ago)

    assert run("cleanup_idempotency") == {"deleted": 1}


def test_an_old_record_with_a_recent_attempt_is_kept(shop: ApiClient) -> None:
    make_record(shop, "taken over", age=timedelta(days=2))
    IdempotencyRecord.objects.update(order_reference="0" * 26)

    assert run("cleanup_idempotency") == {"deleted": 0}


def test_more_than_one_batch_is_deleted(shop: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "BATCH", 3)
    for number in range(8):
        make_record(shop, str(number), age=timedelta(days=2))

    assert run("cleanup_idempotency") == {"deleted": 8}


def test_the_retention_times_are_settings(shop: ApiClient, settings: Settings) -> None:
    settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS = 0
    make_record(shop, "success", age=timedelta(seconds=1), success=True)

    assert run("cleanup_idempotency") == {"deleted": 1}
