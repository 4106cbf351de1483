"""Each purchase attempt and each refused request leaves a record, off the path of the request."""

import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from accounts.api_access import request_records
from accounts.api_access.request_records import (
    MAX_REFUSALS,
    delete_old_records,
    find_records,
    write_records,
)
from accounts.models import ApiClient, ApiKey, RequestRecord
from tests.concurrency.racing import codes_of
from tests.factories import (
    Merchant,
    make_client,
    make_field,
    make_merchant,
    make_product,
    make_record,
    make_topup_product,
)
from tests.live import owner_url
from tests.neighbour import ours

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_waits() -> Iterator[None]:
    """Other tests of this process leave records that nobody writes."""
    request_records._waiting.clear()
    request_records._refusals.clear()
    yield
    request_records._waiting.clear()


def written(client: ApiClient) -> list[RequestRecord]:
    write_records()
    return list(RequestRecord.objects.filter(client=client).order_by("pk"))


def test_a_purchase_its_replay_and_its_refusal_are_recorded() -> None:
    merchant = make_merchant()
    product = make_product(codes=1)
    bought = merchant.buy("first", product_id=product.pk, quantity=1)
    replayed = merchant.buy("first", product_id=product.pk, quantity=1)
    refused = merchant.buy("second", product_id=product.pk, quantity=1)

    first, replay, second = written(merchant.client)
    assert first.request_id == UUID(bought["X-Request-Id"])
    assert (first.method, first.path, first.status) == ("POST", "/api/v1/orders", 201)
    assert (first.code, first.reason) == ("", "")
    assert first.order_reference == bought.json()["data"]["reference"]
    assert first.idempotency_key == replay.idempotency_key == "first"
    assert first.account == merchant.client.account
    assert timezone.now() - timedelta(minutes=1) < first.at <= timezone.now()
    assert replay.request_id == UUID(replayed["X-Request-Id"])
    assert (second.status, second.code) == (409, "order_refused")
    assert second.reason == "insufficient_stock"
    assert second.request_id == UUID(refused["X-Request-Id"])


def test_an_abandoned_purchase_names_its_order() -> None:
    merchant = make_merchant()
    product = make_product(codes=1)
    bought = merchant.buy("first", product_id=product.pk, quantity=1)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_idempotencyrecord SET response = NULL, started_at = 'epoch'"
            " WHERE key = 'first'"
        )
    merchant.buy("first", product_id=product.pk, quantity=1)

    record = written(merchant.client)[-1]
    assert record.code == "request_abandoned"
    assert record.order_reference == bought.json()["data"]["reference"]


def test_reads_are_recorded_only_when_they_are_refused() -> None:
    merchant = make_merchant()
    merchant.get("/ping")
    merchant.get("/products")
    merchant.get("/orders/UNKNOWN")

    (record,) = written(merchant.client)
    assert (record.method, record.path, record.code) == (
        *("GET", "/api/v1/orders/UNKNOWN"),
        "order_not_found",
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"enabled": False}, "client_disabled"),
        ({"allowed_networks": ["192.0.2.0/24"]}, "ip_not_allowed"),
        ({"rate_limit_per_minute": 1}, "rate_limited"),
    ],
)
def test_a_refusal_before_the_purchase_is_recorded(change: dict[str, object], code: str) -> None:
    merchant = make_merchant()
    merchant.get("/ping")
    ApiClient.objects.filter(pk=merchant.client.pk).update(**change)
    merchant.get("/balance")
    merchant.get("/balance")

    assert {record.code for record in written(merchant.client)} == {code}


def test_a_key_that_works_no_more_is_recorded_for_its_client() -> None:
    merchant = make_merchant()
    ApiKey.objects.filter(client=merchant.client).update(revoked_at=timezone.now())
    merchant.get("/ping")
    Merchant.get(nobody := make_merchant(), "/ping")
    nobody.key = f"vk_{'0' * 12}_{'0' * 64}"
    nobody.get("/ping")
    nobody.key = "nonsense"
    nobody.get("/ping")

    assert [record.code for record in written(merchant.client)] == ["invalid_token"]
    assert written(nobody.client) == []


def test_no_code_key_or_body_is_in_a_record() -> None:
    merchant = make_merchant()
    bought = merchant.buy(product_id=make_product(codes=2).pk, quantity=2)
    write_records()

    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(to_json(r)::text, '') FROM accounts_requestrecord r")
        (stored,) = cursor.fetchone()
    secrets = [*codes_of(bought), merchant.key, merchant.key.rpartition("_")[2]]
    assert not [secret for secret in secrets if secret in stored]


def test_recording_costs_a_request_no_statement() -> None:
    merchant = make_merchant()
    with CaptureQueriesContext(connection) as refused:
        merchant.get("/orders/UNKNOWN")

    assert not [one for one in refused.captured_queries if "requestrecord" in one["sql"]]
    assert len(request_records._waiting) == 1


def test_records_wait_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    merchant = make_merchant()
    merchant.get("/orders/ONE")
    with monkeypatch.context() as patched:
        patched.setattr(request_records, "_insert", lambda records: 1 / 0)
        write_records()
    merchant.get("/orders/TWO")

    assert [record.path[-3:] for record in written(merchant.client)] == ["ONE", "TWO"]


def test_a_kept_connection_is_replaced_when_it_is_lost() -> None:
    merchant = make_merchant()
    server = backend()
    merchant.get("/orders/ONE")
    assert len(written(merchant.client)) == 1
    assert backend() == server

    merchant.get("/orders/TWO")
    with psycopg.connect(owner_url(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [server])
    assert len(written(merchant.client)) == 2
    assert backend() != server


def backend() -> int:
    """The process of the server that this thread's connection uses."""
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)


def test_a_flood_of_refusals_is_cut_and_purchases_are_not() -> None:
    merchant = make_merchant()
    product = make_product(codes=1)
    for _ in range(MAX_REFUSALS + 20):
        merchant.get("/orders/UNKNOWN")
    merchant.buy(product_id=product.pk, quantity=1)

    records = written(merchant.client)
    assert len(records) == MAX_REFUSALS + 1
    assert records[-1].status == 201


def test_a_process_keeps_no_more_than_it_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_records, "MAX_WAITING", 2)
    merchant = make_merchant()
    for _ in range(3):
        merchant.get("/orders/UNKNOWN")

    assert len(written(merchant.client)) == 2


def test_odd_values_are_stored() -> None:
    merchant = make_merchant()
    merchant.get("/orders/" + "x" * 3000)
    merchant.get("/orders/%00%FF%0A%1B[31m%7F%C2%85")
    merchant.buy("k" * 500, product_id=1, quantity=1)

    long, odd, key = written(merchant.client)
    assert len(long.path) == 300
    assert odd.code == "order_not_found"
    assert not any(unicodedata.category(one) == "Cc" for one in odd.path), repr(odd.path)
    assert key.code == "idempotency_key_too_long"


def test_a_record_is_found_by_each_of_its_values_through_an_index() -> None:
    client = make_client()
    rows = [
        RequestRecord(
            at=timezone.now(),
            request_id=uuid4(),
            client=client,
            method="POST",
            path="/api/v1/orders",
            status=201,
            order_reference=f"REF{number:023}",
            idempotency_key=f"key-{number}",
            milliseconds=1,
        )
        for number in range(20_000)
    ]
    RequestRecord.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        cursor.execute("SELECT brin_summarize_new_values('accounts_request_by_value')")
        cursor.execute("ANALYZE accounts_requestrecord")
    wanted = rows[12_345]

    with transaction.atomic():  # between two, PostgreSQL may reset its counts
        before = scans("seq_scan"), scans("idx_scan")
        for field in ("request_id", "order_reference", "idempotency_key"):
            found = find_records(RequestRecord.objects.all(), str(getattr(wanted, field)))
            assert [one.pk for one in found] == [wanted.pk], field
        assert scans("seq_scan") == before[0]  # though the table is small enough
        assert scans("idx_scan") > before[1]

        looked_up = scans("idx_scan")
        for text in ("", "x" * 129):  # cannot be a key
            assert not find_records(RequestRecord.objects.all(), text).exists()
        assert scans("idx_scan") == looked_up


def scans(kind: str) -> int:
    """How often this transaction has scanned the table of request records."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {kind} FROM pg_stat_xact_user_tables WHERE relname = 'accounts_requestrecord'"
        )
        (number,) = cursor.fetchone()
    return int(number)


def make_records(client: ApiClient, number: int, *, days_ago: int) -> None:
    at = timezone.now() - timedelta(days=days_ago)
    for _ in range(number):
        make_record(client, at=at)


def test_old_records_are_deleted(settings: Settings) -> None:
    settings.RETENTION_DAYS = {**settings.RETENTION_DAYS, "requests": 7}
    merchant = make_merchant()
    for _ in range(3):
        merchant.get("/orders/UNKNOWN")
    oldest, old, young = written(merchant.client)
    week = timezone.now() - timedelta(days=7)
    RequestRecord.objects.filter(pk=oldest.pk).update(at=week - timedelta(hours=1))
    RequestRecord.objects.filter(pk=old.pk).update(at=week - timedelta(seconds=1))

    assert delete_old_records(seconds=5) == 2
    assert list(ours(RequestRecord)) == [young]


@pytest.mark.usefixtures("alone")
def test_records_of_the_future_do_not_stop_the_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock was ahead when the rows with the lowest ids were written."""
    monkeypatch.setattr(request_records, "WINDOW", 5)
    client = make_client()
    make_records(client, 12, days_ago=-365)
    make_records(client, 7, days_ago=31)
    make_records(client, 6, days_ago=1)

    assert delete_old_records(seconds=5) == 7
    assert RequestRecord.objects.count() == 18


@pytest.mark.usefixtures("alone")
def test_it_stops_at_young_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_records, "WINDOW", 5)
    client = make_client()
    make_records(client, 7, days_ago=31)
    make_records(client, 20, days_ago=1)

    with CaptureQueriesContext(connection) as read:
        assert delete_old_records(seconds=5) == 7
    assert len(read) == 3


def test_the_clock_of_a_host_dates_no_record_and_deletes_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merchant = make_merchant()
    ahead = timezone.now() + timedelta(days=365)
    with monkeypatch.context() as patched:
        patched.setattr(timezone, "now", lambda: ahead)
        merchant.get("/orders/UNKNOWN")
        (record,) = written(merchant.client)
        assert delete_old_records(seconds=5) == 0

    assert abs(timezone.now() - record.at) < timedelta(minutes=1)


CANARY = "Sec-ret_9"


def test_a_refused_request_keeps_its_wrong_fields_and_no_value() -> None:
    merchant = make_merchant()
    topup = make_topup_product()
    field = make_field(topup, "number", required=True)
    voucher: dict[str, Any] = {"product_id": CANARY, "quantity": CANARY, "variation_id": CANARY}
    merchant.buy(**voucher)
    merchant.buy(product_id=1, quantity=1, delivery_type=CANARY, **{CANARY: CANARY})
    merchant.buy(merchant_reference=f"!{CANARY}", quantity=1)
    package: dict[str, Any] = {"delivery_type": "top_up", "system_product_id": topup.pk}
    merchant.buy(**package, player_id=f"{CANARY}!", quantity=CANARY)
    sent = {str(field.number): CANARY, CANARY: CANARY}
    merchant.buy(**package, player_id="7", fields=sent)
    merchant.post(f'{{"{CANARY}": 1, "{CANARY}": 2}}', key="twice")
    merchant.get("/products", page=CANARY)

    records = written(merchant.client)

    assert {record.code for record in records} == {"validation_failed"}
    assert all(record.problems for record in records)
    assert records[0].problems.keys() == {"product_id", "quantity", "variation_id"}
    assert "unknown name" in records[1].problems
    assert records[4].problems.keys() == {f"fields.{field.number}", "unknown name"}
    assert CANARY not in str([record.problems for record in records])
