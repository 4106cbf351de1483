"""`cleanup_idempotency` deletes the records that are old enough, and no others."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.models import ApiClient
from idempotency import cleanup
from idempotency.models import IdempotencyRecord
from idempotency.tasks import cleanup_idempotency
from tests.commands import run
from tests.concurrency.racing import execute, scalar
from tests.factories import make_client
from tests.neighbour import ours

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
    bought: timedelta | None = None,
) -> None:
    """A record of this age, last claimed `idle` ago, with an order of the age `bought`."""
    now = timezone.now()
    bought = age if success and bought is None else bought
    IdempotencyRecord.objects.create(
        client=client,
        key=key,
        fingerprint=b"",
        created_at=now - age,
        started_at=now - idle,
        order_reference=None if bought is None else "0" * 26,
        bought_at=None if bought is None else now - bought,
        response=b"sealed" if success else None,
    )


def kept_keys() -> set[str]:
    return set(ours(IdempotencyRecord).values_list("key", flat=True))


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


def test_a_success_is_kept_for_seven_days_from_its_purchase(shop: ApiClient) -> None:
    """The worker was down for a week, then a takeover bought under an old record."""
    week, second = timedelta(days=7), timedelta(seconds=5)
    make_record(shop, "just bought", age=2 * week, success=True, bought=second)
    make_record(shop, "bought last week", age=2 * week, success=True, bought=week - second)
    make_record(shop, "bought earlier", age=2 * week, success=True, bought=week + second)

    assert run("cleanup_idempotency") == {"deleted": 1}
    assert kept_keys() == {"just bought", "bought last week"}


def test_an_abandoned_record_is_deleted_one_day_after_its_purchase(shop: ApiClient) -> None:
    """Its response was lost. Until then the key answers request_abandoned and does not buy again.

    The attempt may have started days before its purchase, for example in a paused machine.
    """
    day, second = timedelta(days=1), timedelta(seconds=5)
    make_record(shop, "just bought", age=9 * day, idle=8 * day, bought=second)
    make_record(shop, "abandoned", age=9 * day, idle=8 * day, bought=day - second)
    make_record(shop, "long abandoned", age=9 * day, idle=8 * day, bought=day + second)

    assert run("cleanup_idempotency") == {"deleted": 1}
    assert kept_keys() == {"just bought", "abandoned"}


def test_more_than_one_batch_is_deleted(shop: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "BATCH", 3)
    for number in range(8):
        make_record(shop, str(number), age=timedelta(days=2))

    assert run("cleanup_idempotency") == {"deleted": 8}


def test_the_retention_times_are_settings(shop: ApiClient, settings: Settings) -> None:
    settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS = 0
    make_record(shop, "success", age=timedelta(seconds=1), success=True)

    assert run("cleanup_idempotency") == {"deleted": 1}


def test_a_process_that_cleans_again_reads_what_has_expired_since(
    shop: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "_looked_at", cleanup.BEGINNING)
    execute(
        "INSERT INTO idempotency_idempotencyrecord (client_id, key, fingerprint, attempt,"
        " created_at, started_at, order_reference, bought_at, response)"
        " SELECT %s, n, '', 1, at, at, n, at, 's'"
        " FROM (SELECT n, now() - interval '6 days' + n * interval '10 s' AS at"
        "         FROM generate_series(1, 40000) AS n) AS records",
        shop.pk,
    )
    execute("ANALYZE idempotency_idempotencyrecord")
    make_record(shop, "old unfinished", age=timedelta(days=2))

    assert cleanup.clean_again(seconds=0) == 0  # no time to look at anything
    assert cleanup_idempotency() == 1
    make_record(shop, "unfinished since", age=timedelta(days=1, seconds=5))
    before = rows_read()
    assert cleanup_idempotency() == 1
    assert rows_read() - before < 200  # ten minutes of records are 60
    make_record(shop, "looked for by the command", age=timedelta(days=2))
    assert cleanup_idempotency() == 0
    assert run("cleanup_idempotency") == {"deleted": 1}


def rows_read() -> int:
    """How many records this transaction has read."""
    return int(
        scalar(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables"
            " WHERE relname = 'idempotency_idempotencyrecord'"
        )
    )
