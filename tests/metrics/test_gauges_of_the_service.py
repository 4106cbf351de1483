"""The gauges that the apps declare: right, bounded, and without one that cannot be read."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from math import inf
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from catalogue.models import PriceList, PriceListEntry, Shelf
from core.backoffice.declarations import Gauges
from figures.margin_counting import count_margins
from figures.sales_counting import count_sales
from idempotency.models import IdempotencyRecord
from idempotency.services import block_key
from merchants.models import Email, EmailKind
from operators.telegram.models import Announcement, AnnouncementState, PlatformSettings
from operators.telegram.updates import bot_cache
from operators.upkeep.models import Copy, CopyKind, Heartbeat, HeartbeatKind, ReconcileRun, RunState
from operators.upkeep.monitoring import gauges
from operators.upkeep.monitoring.gauges import GAUGES, Reader
from operators.upkeep.monitoring.readiness import missing_processes
from orders.backoffice import CHECKS
from orders.models import Order
from tests.concurrency.racing import execute, in_background, scalar, without_triggers
from tests.factories import (
    Merchant,
    buy_topup,
    make_operator,
    make_product,
    make_topup_product,
    make_variation,
    move_now,
)
from tests.metrics.scraping import scrape_service, value
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment, TopUpProduct

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

# Tables that grow with every purchase, upload or email. A gauge reads them by a range of an index.
GROWING = {
    "catalogue_vouchercode",
    "idempotency_idempotencyrecord",
    "merchants_email",
    "telegram_announcement",
    "orders_order",
    "topups_fulfilment",
}
# For PostgreSQL, a table without statistics may be large. Earlier tests leave statistics that say
# it is empty, and any plan reads an empty table equally fast. They leave indexes of different
# depths, too, and a whole index that is flat costs less than the end of one that is deep.
TABLES = f"'{{{','.join(sorted(GROWING))}}}'::regclass[]"
FORGET_STATISTICS = f"""
    {"".join(f"REINDEX TABLE {table};" for table in sorted(GROWING))}
    DELETE FROM pg_statistic WHERE starelid = ANY ({TABLES});
    UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE oid = ANY ({TABLES});
    UPDATE pg_class SET reltuples = 0, relpages = 1
     WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = ANY ({TABLES}))
"""
# These indexes hold only the rows that are open, so reading all of one is bounded.
OF_OPEN_ROWS = {
    "merchants_email_due",
    "telegram_announcement_open",
    "topups_fulfilment_due_of_acct",
    "topups_fulfilment_open",
    "topups_fulfilment_refund_due",
}


@pytest.fixture(autouse=True)
def _bot(settings: Any) -> None:
    settings.TELEGRAM_BOT_TOKEN = "1234567:not-a-secret"


def age(table: str, column: str, seconds: int) -> None:
    """Moves the times of all rows into the past."""
    without_triggers(f"UPDATE {table} SET {column} = {column} - make_interval(secs => {seconds})")


def test_desk_and_refunds(merchant: Merchant) -> None:
    product, operator = make_topup_product(), make_operator()
    _, claimed, rejected = (buy_topup(merchant, product) for _ in range(3))
    age("topups_fulfilment", "created_at", 100)
    buy_topup(merchant, product)
    for reference in (claimed, rejected):
        move_now(reference=reference, move=Move.CLAIM, operator=operator)
    move_now(reference=rejected, move=Move.REJECT, operator=operator)
    age("topups_fulfilment", "refund_due_at", 400)

    samples = scrape_service()

    assert value(samples, "voucher_desk_orders", status="pending") == 2
    assert value(samples, "voucher_desk_orders", status="processing") == 1
    assert value(samples, "voucher_desk_orders", status="pending_review") == 0
    assert value(samples, "voucher_desk_oldest_seconds", status="pending") == pytest.approx(
        100, abs=20
    )
    assert value(samples, "voucher_desk_oldest_seconds", status="pending_review") == 0
    assert value(samples, "voucher_refunds_due") == 1
    assert value(samples, "voucher_refunds_oldest_seconds") == pytest.approx(400, abs=20)


def test_late_top_ups_and_refunds_are_percentages(merchant: Merchant) -> None:
    """One is late, one waits too long, one is in time, and one waits in time."""
    product, operator = make_topup_product(), make_operator()
    TopUpProduct.objects.update(promised_minutes=5)
    assert value(scrape_service(), "voucher_topups_late_percent") is None
    late, open_, in_time, rejected, _ = (buy_topup(merchant, product) for _ in range(5))
    for reference in (late, open_):
        without_triggers(
            "UPDATE topups_fulfilment SET created_at = created_at - interval '6 minutes'"
            " WHERE order_reference = %s",
            reference,
        )
    for reference in (late, in_time, rejected):
        move_now(reference=reference, move=Move.CLAIM, operator=operator)
    for reference in (late, in_time):
        move_now(reference=reference, move=Move.COMPLETE, operator=operator)
    move_now(reference=rejected, move=Move.REJECT, operator=operator)
    names = ("topups_late_percent", "refunds_late_percent")

    def read() -> list[float | None]:
        return [value(scrape_service(), f"voucher_{name}") for name in names]

    assert read() == [pytest.approx(200 / 3), 0]
    age("topups_fulfilment", "refund_due_at", 400)
    assert read() == [pytest.approx(200 / 3), 100]


def test_keys_in_progress_abandoned_and_unfinished(merchant: Merchant) -> None:
    product = make_product(codes=4, price="1.00")
    for _ in range(4):
        merchant.buy(product_id=product.pk, quantity=1)
    block_key(client_id=merchant.client.pk, key="lost", fingerprint=b"", reference="LOST")
    stored, runs, _, unfinished, blocked = IdempotencyRecord.objects.order_by("pk")
    long_ago = timezone.now() - timedelta(minutes=6)
    open_records = IdempotencyRecord.objects.exclude(pk=stored.pk)
    open_records.update(response=None)
    open_records.exclude(pk__in=[runs.pk, blocked.pk]).update(started_at=long_ago)
    open_records.filter(pk=unfinished.pk).update(order_reference=None, bought_at=None)

    samples = scrape_service()

    assert value(samples, "voucher_keys_in_progress") == 1
    assert value(samples, "voucher_keys_abandoned") == 1
    assert value(samples, "voucher_keys_unfinished") == 1


def test_stock_and_days_left(merchant: Merchant) -> None:
    product = make_product(codes=30, price="0.10", name="Card")
    variation = make_variation(product, codes=7, name="EU")
    make_product(codes=5, active=False)
    make_product(codes=5, price=None)
    for _ in range(2):
        merchant.buy(product_id=product.pk, quantity=5)
    age("orders_order", "created_at", 2 * 86_400)
    count_sales()
    shelf = product.shelves.get(variation=None)

    samples = scrape_service()

    own = {"shelf": str(shelf.pk), "product": "Card"}
    other = {"shelf": str(variation.shelf.pk), "product": "Card / EU"}
    assert value(samples, "voucher_shelf_codes", **own) == 20
    assert value(samples, "voucher_shelf_codes", **other) == 7
    assert len([name for name, _ in samples if name == "voucher_shelf_codes"]) == 2
    # Ten codes since that day began: twenty last twice as long.
    now = timezone.now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = (now - midnight + timedelta(days=2)) / timedelta(days=1)
    left = value(samples, "voucher_shelf_days_left", **own)
    assert left == pytest.approx(2 * days, rel=0.01)
    assert value(samples, "voucher_shelf_days_left", **other) is None


def test_days_left_forget_what_is_older_than_a_week(merchant: Merchant) -> None:
    product = make_product(codes=100, price="0.10")
    merchant.buy(product_id=product.pk, quantity=60)
    age("orders_order", "created_at", 8 * 86_400)
    merchant.buy(product_id=product.pk, quantity=20)
    count_sales()

    days = [v for (name, _), v in scrape_service().items() if name == "voucher_shelf_days_left"]

    assert days == [pytest.approx(1)]  # twenty in the last day, as far as anybody knows


def test_days_left_of_a_shelf_that_only_a_list_sells(merchant: Merchant) -> None:
    product = make_product(codes=100, price="0.10")
    merchant.buy(product_id=product.pk, quantity=20)
    count_sales()
    Shelf.objects.filter(product=product).update(price=None)
    assert not [name for name, _ in scrape_service() if name == "voucher_shelf_days_left"]

    prices = PriceList.objects.create(name="Large shops", currency="USD")
    PriceListEntry.objects.create(price_list=prices, product=product, price=9, added_by="test")
    days = [v for (name, _), v in scrape_service().items() if name == "voucher_shelf_days_left"]

    assert days == [pytest.approx(4)]


def test_emails_and_announcements(merchant: Merchant) -> None:
    Email.objects.create(kind=EmailKind.CHANGE, to="a@example.com")
    age("merchants_email", "created_at", 50)
    Email.objects.create(kind=EmailKind.CHANGE, to="a@example.com", sent_at=timezone.now())
    PlatformSettings.objects.create(announcing=True, chat_id=-1001)
    announced = make_topup_product(announce=True)
    buy_topup(merchant, make_topup_product(announce=False))
    given_up = Fulfilment.objects.get(order_reference=buy_topup(merchant, announced))
    Announcement.objects.create(fulfilment=given_up, state=AnnouncementState.GIVEN_UP)
    buy_topup(merchant, announced)
    age("topups_fulfilment", "created_at", 70)

    samples = scrape_service()

    assert value(samples, "voucher_emails_waiting") == 1
    assert value(samples, "voucher_emails_oldest_seconds") == pytest.approx(50, abs=20)
    assert value(samples, "voucher_announcements_waiting") == 1
    assert value(samples, "voucher_announcements_oldest_seconds") == pytest.approx(70, abs=20)
    assert value(samples, "voucher_announcements_given_up") == 1


def test_nothing_waits_to_be_announced_in_quiet_hours(merchant: Merchant) -> None:
    now = timezone.now()
    PlatformSettings.objects.create(
        announcing=True,
        chat_id=-1001,
        quiet_from=(now - timedelta(hours=1)).time(),
        quiet_until=(now + timedelta(hours=1)).time(),
        time_zone="UTC",
    )
    buy_topup(merchant, make_topup_product(announce=True))

    assert value(scrape_service(), "voucher_announcements_waiting") == 0


def test_heartbeats_and_reconcile(settings: Any) -> None:
    samples = scrape_service()
    for process in ("worker", "imports", "beat", "bot"):
        assert value(samples, "voucher_heartbeat_age_seconds", process=process) == inf
    assert value(samples, "voucher_reconcile_findings") is None
    assert value(samples, "voucher_reconcile_age_seconds") is not None

    now = timezone.now()
    for host, seconds in (("one", 40), ("two", 20)):
        Heartbeat.objects.create(
            kind=HeartbeatKind.WORKER, host=host, beat_at=now - timedelta(seconds=seconds)
        )
    bot_cache.beat()
    ReconcileRun.objects.create(
        state=RunState.FINDINGS,
        started_at=now - timedelta(hours=2),
        finished_at=now,
        findings=[{"check": "a", "finding": "b"}],
    )
    ReconcileRun.objects.create(state=RunState.RUNNING)
    ahead = now + timedelta(days=10)
    ReconcileRun.objects.create(state=RunState.CLEAN, started_at=ahead, finished_at=ahead)

    samples = scrape_service()

    worker = value(samples, "voucher_heartbeat_age_seconds", process="worker")
    assert worker == pytest.approx(20, abs=15)
    assert value(samples, "voucher_heartbeat_age_seconds", process="bot") == pytest.approx(
        0, abs=15
    )
    assert value(samples, "voucher_reconcile_age_seconds") == pytest.approx(7200, abs=20)
    assert value(samples, "voucher_reconcile_findings") == 1
    assert value(samples, "voucher_reconcile_warnings") == 0

    settings.TELEGRAM_BOT_TOKEN = ""
    assert value(scrape_service(), "voucher_heartbeat_age_seconds", process="bot") is None


def test_backups_and_replicas() -> None:
    """The suite's server archives nothing, and had neither a copy nor a replica."""
    before = scrape_service()
    assert value(before, "voucher_archiving_fails_seconds") is None
    assert value(before, "voucher_replica_behind_bytes", slot="gauge_test") is None
    assert {value(before, "voucher_copy_age_seconds", copy=kind) for kind in CopyKind} == {inf}

    for kind, host, hours in [("backup", "db1", 3), ("backup", "db2", 9), ("purchase_log", "a", 1)]:
        Copy.objects.create(kind=kind, host=host, seen_at=timezone.now() - timedelta(hours=hours))
    Copy.objects.create(kind="purchase_log", host="b")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_create_physical_replication_slot('gauge_test', true)")
        try:
            cursor.execute("SELECT pg_switch_wal()")
            samples = scrape_service()
        finally:
            cursor.execute("SELECT pg_drop_replication_slot('gauge_test')")
    ages = {kind: value(samples, "voucher_copy_age_seconds", copy=kind) for kind in CopyKind}
    assert ages[CopyKind.BACKUP] == pytest.approx(3 * 3600, abs=20), "the newest of all hosts"
    assert ages[CopyKind.PURCHASE_LOG] == pytest.approx(3600, abs=20), "the host without a new copy"
    assert ages[CopyKind.ROOTS] == inf
    behind = value(samples, "voucher_replica_behind_bytes", slot="gauge_test")
    assert behind is not None
    assert behind > 0


def test_the_oldest_ids_of_all_databases() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(age(datfrozenxid)), max(mxid_age(datminmxid)) FROM pg_database")
        transaction, multixact = cursor.fetchone()
    samples = scrape_service()
    found = [
        value(samples, "voucher_oldest_id_age", kind=kind) for kind in ("transaction", "multixact")
    ]
    assert found == [pytest.approx(transaction, abs=10_000), pytest.approx(multixact, abs=10_000)]


def test_a_clock_that_is_behind_makes_no_dead_worker_young(monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    dead = now - timedelta(minutes=10)
    Heartbeat.objects.create(kind=HeartbeatKind.WORKER, host="one", beat_at=dead)
    monkeypatch.setattr(timezone, "now", lambda: now - timedelta(hours=2))
    age = value(scrape_service(), "voucher_heartbeat_age_seconds", process="worker")
    assert age == pytest.approx(600, abs=15)
    assert "worker" in missing_processes()


def test_figures_are_as_late_as_their_oldest_order(merchant: Merchant) -> None:
    def late() -> float | None:
        return value(scrape_service(), "voucher_figures_late_seconds")

    product = make_product(codes=3, price="1.00")
    assert late() == 0

    merchant.buy(product_id=product.pk, quantity=1)
    age("orders_order", "created_at", 200)
    merchant.buy(product_id=product.pk, quantity=1)
    assert late() == pytest.approx(200, abs=20)

    count_sales()
    assert late() == pytest.approx(200, abs=20)
    count_margins()
    assert late() == 0

    merchant.buy(product_id=product.pk, quantity=1)
    age("orders_order", "created_at", 100)
    count_margins()
    assert late() == pytest.approx(100, abs=20)
    count_sales()
    assert late() == 0


def test_values_of_a_key_are_at_most_what_it_sealed(merchant: Merchant) -> None:
    (key,) = [dict(labels)["key_id"] for name, labels in scrape_service() if "sealed" in name]
    before = value(scrape_service(), "voucher_key_sealed_values", key_id=key)
    assert before is not None
    product = make_product(codes=3, price="1.00")
    merchant.buy(product_id=product.pk, quantity=1)

    after = value(scrape_service(), "voucher_key_sealed_values", key_id=key)

    assert after == before + 3 + 2


def test_values_count_since_the_key_began_to_seal(merchant: Merchant) -> None:
    key = scalar("SELECT key_id::text FROM core_encryptionkey")
    product = make_product(codes=20, price="1.00")
    for _ in range(8):
        merchant.buy(product_id=product.pk, quantity=1)
    orders = list(Order.objects.order_by("pk").values_list("pk", flat=True))
    without_triggers("UPDATE orders_order SET created_at = now() - interval '1 day'")
    without_triggers("UPDATE orders_order SET created_at = now() WHERE id >= %s", orders[2])
    execute("UPDATE core_encryptionkey SET sealing_since = now() - interval '1 hour'")
    codes = scalar("SELECT last_value FROM catalogue_vouchercode_id_seq")
    assert value(scrape_service(), "voucher_key_sealed_values", key_id=key) == codes + 2 * 6

    (check,) = [one for one in CHECKS if "sealed too many values" in one.name]
    with connection.cursor() as cursor:
        cursor.execute(check.sql, {"limit": 11})
        (finding,) = cursor.fetchall()
    stored = scalar("SELECT count(*) FROM catalogue_vouchercode")
    assert f"sealed {stored + 12} values" in finding[0]


def test_cache_and_database_are_up() -> None:
    samples = scrape_service()

    assert value(samples, "voucher_cache_up") == 1
    assert value(samples, "voucher_database_up") == 1
    assert value(samples, "voucher_gauges_failed") == 0


def test_what_cannot_be_read_is_missing_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Gauges({"voucher_slow": "Slow."}, "SELECT pg_sleep(60)::text")
    wrong = Gauges({"voucher_wrong": "Wrong."}, "SELECT 1 FROM a_table_that_does_not_exist")
    monkeypatch.setattr(gauges, "GAUGES", [slow, wrong, *GAUGES])
    monkeypatch.setattr(gauges, "TIMEOUT_SECONDS", 1)

    samples = scrape_service()

    assert value(samples, "voucher_gauges_failed") == 2
    assert value(samples, "voucher_slow") is None
    assert value(samples, "voucher_refunds_due") == 0


def test_a_declaration_is_read_once_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    def read() -> Iterator[tuple[int]]:
        reads.append(1)
        yield (len(reads),)

    monkeypatch.setattr(gauges, "GAUGES", [Gauges({"voucher_a": "A."}, read)])
    reader = Reader()

    for _ in range(3):
        readings, failed = reader.read()

    assert len(reads) == 1
    assert ([reading.samples for reading in readings], failed) == ([[([], 1.0)]], 0)


def declare(monkeypatch: pytest.MonkeyPatch, *reads: Callable[[], Any]) -> None:
    """Declares gauges whose time is over at once."""
    declared = [
        Gauges({f"voucher_{place}": "A."}, read, seconds=0) for place, read in enumerate(reads)
    ]
    monkeypatch.setattr(gauges, "GAUGES", declared)


def test_slow_declarations_do_not_keep_others_from_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What one reading leaves out, the next one reads first."""
    monkeypatch.setattr(gauges, "BUDGET_SECONDS", 0.5)

    def slow() -> list[tuple[int]]:
        sleep(0.6)
        return [(1,)]

    declare(monkeypatch, slow, slow, lambda: [(3,)])
    reader = Reader()

    assert [reader.read()[1] for _ in range(3)] == [2, 1, 0]


def test_a_second_reader_takes_the_last_result(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, leave = Event(), Event()
    results = iter([1, 2])

    def read() -> list[tuple[int]]:
        value = next(results)
        if value == 2:
            entered.set()
            assert leave.wait(10)
        return [(value,)]

    declare(monkeypatch, read)
    reader = Reader()
    reader.read()

    with in_background(reader.read) as first:
        assert entered.wait(10)
        ((shown,), failed) = reader.read()
        leave.set()
    assert (shown.samples, failed) == ([([], 1.0)], 0)
    assert first.result()[0][0].samples == [([], 2.0)]

    reader._readings[0] = (monotonic() - 61, [])
    with reader._lock:
        assert reader.read() == ([], 1)


def nodes(plan: dict[str, Any], parent: str = "") -> Iterator[tuple[dict[str, Any], str]]:
    """Every node of a plan, with the type of the node above it."""
    yield plan, parent
    for child in plan.get("Plans", ()):
        yield from nodes(child, plan["Node Type"])


def is_bounded(node: dict[str, Any], parent: str) -> bool:
    """Whether a node reads a range of an index, an index of open rows, or the end of an index."""
    first_rows = parent == "Limit" and "Filter" not in node
    return "Index Cond" in node or node.get("Index Name") in OF_OPEN_ROWS or first_rows


@pytest.mark.parametrize(
    "declared",
    [one for one in GAUGES if isinstance(one.read, str)],
    ids=lambda one: next(iter(one.meanings)),
)
def test_no_gauge_reads_a_whole_table_that_grows(declared: Gauges) -> None:
    assert isinstance(declared.read, str)
    execute("SET LOCAL enable_seqscan = off")
    execute(FORGET_STATISTICS)
    with connection.cursor() as cursor:
        parameters = declared.parameters() if declared.parameters else None
        cursor.execute(f"EXPLAIN (FORMAT JSON) {declared.read}", parameters)
        (plan,) = cursor.fetchone()
    (root,) = json.loads(plan) if isinstance(plan, str) else plan

    for node, parent in nodes(root["Plan"]):
        kind = node["Node Type"]
        if kind == "Bitmap Index Scan" or node.get("Relation Name") in GROWING:
            assert "Seq" not in kind, node
            assert kind == "Bitmap Heap Scan" or is_bounded(node, parent), node
