"""The database functions of a key change one record, for one attempt."""

from datetime import timedelta
from functools import partial
from typing import NamedTuple

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from accounts.models import ApiClient
from core.api.errors import ApiError, ErrorCode
from core.database.sealing import CannotOpen
from idempotency.models import IdempotencyRecord
from idempotency.services import Claim as ClaimedKey
from idempotency.services import (
    Replay,
    block_key,
    claim_key,
    open_response,
    response_row,
    store_response,
)
from orders.purchase import release_on_refusal
from tests.concurrency.racing import holding_locks, in_background, wait_for_waiting
from tests.factories import make_client

FINGERPRINT = b"the same body"
WINDOW = 300  # seconds during which a key is in progress


class Claim(NamedTuple):
    outcome: str
    record_id: int | None
    attempt: int | None


def claim(client: ApiClient, key: str) -> Claim:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT outcome, record_id, attempt FROM idempotency_claim(%s, %s, %s, %s)",
            [client.pk, key, FINGERPRINT, WINDOW],
        )
        return Claim(*cursor.fetchone())


def release(record: int, attempt: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT idempotency_release(%s, %s)", [record, attempt])
        return bool(cursor.fetchone()[0])


def stamp(record: int, attempt: int, reference: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT idempotency_stamp(%s, %s, %s)", [record, attempt, reference])


def store(record: int, attempt: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT idempotency_store_response(%s, %s, %s)", [record, attempt, b"new"])
        return bool(cursor.fetchone()[0])


def left_behind(client: ApiClient, key: str, *, attempt: int = 7) -> IdempotencyRecord:
    """A record whose attempt died before it bought, longer ago than the window."""
    return IdempotencyRecord.objects.create(
        client=client,
        key=key,
        fingerprint=FINGERPRINT,
        attempt=attempt,
        started_at=timezone.now() - timedelta(hours=1),
    )


@pytest.mark.django_db
def test_a_takeover_changes_no_other_record_with_the_same_attempt() -> None:
    client = make_client()
    taken, *others = [left_behind(client, "one"), left_behind(client, "two")]
    others.append(left_behind(make_client(), "one"))
    before = [(each.attempt, each.started_at) for each in others]

    assert claim(client, "one") == ("claimed", taken.pk, 8)

    for each in others:
        each.refresh_from_db()
    assert [(each.attempt, each.started_at) for each in others] == before


@pytest.mark.django_db(transaction=True)
def test_of_two_takeovers_at_once_one_is_told_to_wait() -> None:
    client = make_client()
    record = left_behind(client, "one")

    taking_over = (
        "UPDATE idempotency_idempotencyrecord SET attempt = 8, started_at = now() WHERE id = %s"
    )
    takeover = partial(claim, client, "one")
    with holding_locks(taking_over, record.pk) as first, in_background(takeover) as second:
        wait_for_waiting()
        first.commit()

    assert second.result().outcome == "in_progress"
    record.refresh_from_db()
    assert record.attempt == 8


@pytest.mark.django_db
def test_a_release_deletes_its_own_record_and_only_for_its_attempt() -> None:
    client = make_client()
    refused, other = left_behind(client, "one"), left_behind(client, "two")

    assert release(refused.pk, 6) is False
    assert release(refused.pk, 7) is True

    kept = IdempotencyRecord.objects.filter(pk__in=[refused.pk, other.pk])
    assert list(kept) == [other]


@pytest.mark.django_db
def test_an_order_is_written_on_its_own_record_once_and_stays() -> None:
    client = make_client()
    bought, other = left_behind(client, "one"), left_behind(client, "two")

    with pytest.raises(DatabaseError, match="attempt_lost"):
        stamp(bought.pk, 6, "0" * 26)
    stamp(bought.pk, 7, "0" * 26)
    with pytest.raises(DatabaseError, match="attempt_lost"):
        stamp(bought.pk, 7, "1" * 26)
    assert release(bought.pk, 7) is False

    for record in (bought, other):
        record.refresh_from_db()
    assert (bought.order_reference, other.order_reference) == ("0" * 26, None)


@pytest.mark.django_db
def test_a_response_is_stored_in_its_own_record_and_only_by_its_attempt() -> None:
    client = make_client()
    bought, other = left_behind(client, "one"), left_behind(client, "two")

    stamp(bought.pk, 7, "0" * 26)
    assert store(bought.pk, 6) is False
    bought.refresh_from_db()
    assert bought.response is None
    assert store(bought.pk, 7) is True

    for record in (bought, other):
        record.refresh_from_db()
    assert (bytes(bought.response or b""), other.response) == (b"new", None)


@pytest.mark.django_db
def test_a_success_that_nobody_looked_up_is_replayed() -> None:
    """Another request may store it after the key was looked up, and before it is claimed."""
    client = make_client()
    claim = claimed(client)
    stamp(claim.record_id, claim.attempt, "0" * 26)
    store_response(claim=claim, body=b"{}")

    again = claim_key(client=client, key="one", fingerprint=FINGERPRINT)

    assert again == Replay(body=b"{}")


def claimed(client: ApiClient) -> ClaimedKey:
    claim = claim_key(client=client, key="one", fingerprint=FINGERPRINT)
    assert isinstance(claim, ClaimedKey)
    return claim


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("code", "stays"), [(ErrorCode.SERVER_ERROR, True), (ErrorCode.ORDER_REFUSED, False)]
)
def test_only_a_refusal_releases_the_key(code: ErrorCode, stays: bool) -> None:
    client = make_client()
    with pytest.raises(ApiError), release_on_refusal(claimed(client)):
        raise ApiError(code)

    assert IdempotencyRecord.objects.filter(client=client).exists() == stays


@pytest.mark.django_db
def test_a_blocked_key_changes_no_purchase() -> None:
    client = make_client()
    mine = claimed(client)
    stamp(mine.record_id, mine.attempt, "A" * 26)
    before = IdempotencyRecord.objects.filter(client=client).values()[0]

    block_key(client_id=client.pk, key="one", fingerprint=b"another", reference="B" * 26)

    assert IdempotencyRecord.objects.filter(client=client).values()[0] == before


@pytest.mark.django_db
def test_a_stored_response_opens_for_its_client_alone() -> None:
    client, other = make_client(), make_client()
    mine = claimed(client)
    stamp(mine.record_id, mine.attempt, "A" * 26)
    store_response(claim=mine, body=b"the codes")
    sealed = IdempotencyRecord.objects.get(client=client).response
    assert sealed is not None

    assert open_response(sealed, response_row(client.pk, "one")) == b"the codes"
    with pytest.raises(CannotOpen):
        open_response(sealed, response_row(other.pk, "one"))
