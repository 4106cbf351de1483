"""The Python library buys from the real service, over a network that loses answers."""

import asyncio
import json
import logging
import socket
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.utils import timezone
from voucher_topup import (
    ApiError,
    AsyncClient,
    Bought,
    Client,
    ErrorCode,
    Journal,
    MemoryJournal,
    NotInJournal,
    OrderNumberTaken,
    Outcome,
    PostgresJournal,
    ReferenceNotFound,
    RefusalReason,
    Refused,
    Rules,
    SQLiteJournal,
    TopUpOrder,
    Unavailable,
    Unknown,
    VoucherOrder,
    advice,
    top_up,
    voucher,
)
from voucher_topup.journal import new_entry
from voucher_topup.pace import Pace
from voucher_topup.wire import Failure

from idempotency.models import IdempotencyRecord
from merchants.money.statement import write_csv, write_json
from orders.models import Order
from tests.factories import (
    Merchant,
    add_codes,
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
    own_shelf,
)
from tests.live import LiveServer, owner_url
from tests.merchants.bad_network import FOREIGN, bad_network, running
from tests.neighbour import ours
from tests.sdk.servers import SlowNetwork, untrusted_server
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move
from wallets.models import EntryKind, LedgerEntry

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = Rules(first_pause=0.01, longest_pause=0.05, crowd_pause=0.1, progress_pause=0.05)
GIVES_UP = replace(QUICK, patience=0.3, progress_patience=0.3)

Buy = Callable[[str, Merchant, Journal, str, dict[str, Any]], Outcome]


def buy_with_threads(
    base_url: str, merchant: Merchant, journal: Journal, number: str, purchase: dict[str, Any]
) -> Outcome:
    with Client(base_url, merchant.key, journal, rules=QUICK) as client:
        return client.buy(number, purchase)


def buy_with_asyncio(
    base_url: str, merchant: Merchant, journal: Journal, number: str, purchase: dict[str, Any]
) -> Outcome:
    async def buy() -> Outcome:
        async with AsyncClient(base_url, merchant.key, journal, rules=QUICK) as client:
            return await client.buy(number, purchase)

    return asyncio.run(buy())


BOTH = pytest.mark.parametrize("buy", [buy_with_threads, buy_with_asyncio])


@pytest.fixture
def journal(tmp_path: Path) -> SQLiteJournal:
    return SQLiteJournal(tmp_path / "purchases.db")


def debits() -> list[str | None]:
    purchases = ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).order_by("pk")
    return list(purchases.values_list("order_reference", flat=True))


def url(live: LiveServer) -> str:
    return f"{live.base_url}/api/v1"


@BOTH
@pytest.mark.parametrize(
    "plan", [(), ("lose",), ("half", "gateway", "lose"), ("limit", "lose"), tuple(FOREIGN)]
)
def test_it_buys_once_when_messages_are_lost(
    live: LiveServer, journal: SQLiteJournal, buy: Buy, plan: tuple[str, ...]
) -> None:
    merchant, product = make_merchant(), make_product(price="9.99", codes=5)

    with bad_network(live.port, *plan) as network:
        outcome = buy(network.base_url, merchant, journal, "1", voucher(2, product_id=product.pk))
        again = buy(network.base_url, merchant, journal, "1", voucher(2, product_id=product.pk))

    assert isinstance(outcome, Bought)
    assert isinstance(outcome.order, VoucherOrder)
    assert debits() == [outcome.order.reference]
    assert len(outcome.order.codes) == 2
    assert outcome.order.total_price == Decimal("19.98")
    assert again == outcome


@BOTH
def test_a_refusal_names_its_reason_and_can_be_retried(
    live: LiveServer, journal: SQLiteJournal, buy: Buy
) -> None:
    merchant, product = make_merchant(balance="5.00"), make_product(price="9.99", codes=5)
    purchase = voucher(1, product_id=product.pk)

    outcome = buy(url(live), merchant, journal, "1", purchase)

    assert isinstance(outcome, Refused)
    assert outcome.error.reason == RefusalReason.INSUFFICIENT_BALANCE
    said = advice(outcome.error)
    assert said is not None
    assert said.charged == "no"
    assert buy(url(live), merchant, journal, "1", purchase) == outcome


def test_a_retry_of_a_refused_purchase_sends_the_same_key_and_bytes(
    live: LiveServer, journal: SQLiteJournal
) -> None:
    merchant, product = make_merchant(), make_product(codes=0)
    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        refused = client.buy("1", voucher(1, product_id=product.pk))
        before = journal.find("1")
        add_codes(own_shelf(product), 1)
        bought = client.retry("1")

    after = journal.find("1")
    assert isinstance(refused, Refused)
    assert isinstance(bought, Bought)
    assert before is not None
    assert after is not None
    assert (before.key, before.body) == (after.key, after.body)


def test_an_old_refused_purchase_is_not_retried(live: LiveServer, journal: SQLiteJournal) -> None:
    """The service may have forgotten its key, and a retry does not make the key younger."""
    merchant, product = make_merchant(), make_product(codes=0)
    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        refused = client.buy("1", voucher(1, product_id=product.pk))
        add_codes(own_shelf(product), 1)
        with sqlite3.connect(_path(journal)) as database:
            database.execute("UPDATE voucher_purchases SET opened_at = opened_at - 86400")
        assert client.retry("1") == refused
    assert debits() == []


def test_a_refusal_settles_only_when_no_lost_attempt_can_arrive(
    live: LiveServer, journal: SQLiteJournal
) -> None:
    merchant, product = make_merchant(), make_product(codes=0)
    with (
        bad_network(live.port, "gateway") as network,
        Client(network.base_url, merchant.key, journal, rules=QUICK) as client,
    ):
        unknown = client.buy("1", voucher(1, product_id=product.pk))
        with sqlite3.connect(_path(journal)) as database:
            database.execute("UPDATE voucher_purchases SET sent_at = sent_at - 90")
        (refused,) = client.resume()

    assert isinstance(unknown, Unknown)
    assert unknown.error is not None
    assert unknown.error.reason == RefusalReason.INSUFFICIENT_STOCK
    assert refused == Refused("1", unknown.error)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_a_refusal_does_not_settle_the_attempt_of_another_process(
    kind: str, tmp_path: Path
) -> None:
    journal: Journal = MemoryJournal()
    if kind == "sqlite":
        journal = SQLiteJournal(tmp_path / "purchases.db")
    if kind == "postgres":
        journal = PostgresJournal(lambda: psycopg.connect(owner_url()))
        journal.create_table()
    error = Failure(ErrorCode.ORDER_REFUSED, "")
    try:
        journal.write(new_entry("1", "key-1", b"{}"))
        assert journal.begin_attempt("1", None, 10.5)
        assert not journal.begin_attempt("1", None, 11.5), "the other has sent it"
        assert journal.begin_attempt("1", 10.5, 12.5)
        journal.settle_refused("1", 10.5, error)
        assert [entry.sent_at for entry in journal.open_entries()] == [12.5]
        journal.settle_refused("1", 12.5, error)
        assert not journal.begin_attempt("1", 12.5, 13.5), "it is settled"
        journal.reopen("1", time.time() + 1)
        assert journal.open_entries() == []
        journal.reopen("1", time.time() - 60)
        assert [entry.sent_at for entry in journal.open_entries()] == [None]
    finally:
        if kind == "postgres":
            with psycopg.connect(owner_url()) as shop:
                shop.execute("DROP TABLE voucher_purchases")


def test_an_order_number_belongs_to_one_content(live: LiveServer, journal: SQLiteJournal) -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        client.buy("1", voucher(1, product_id=product.pk))
        with pytest.raises(OrderNumberTaken):
            client.buy("1", voucher(2, product_id=product.pk))
    assert len(debits()) == 1


def test_a_double_click_buys_once(live: LiveServer, journal: SQLiteJournal) -> None:
    merchant, product = make_merchant(), make_product(codes=9)
    outcomes: list[Outcome] = []
    start = threading.Barrier(4)

    def click() -> None:
        start.wait()
        outcomes.append(client.buy("order-1", voucher(1, product_id=product.pk)))

    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        threads = [threading.Thread(target=click) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(debits()) == 1
    assert {outcome.kind for outcome in outcomes} == {"bought"}
    assert len({outcome.order.reference for outcome in outcomes if outcome.kind == "bought"}) == 1


def test_an_unknown_outcome_is_settled_by_resume(live: LiveServer, journal: SQLiteJournal) -> None:
    merchant, product = make_merchant(), make_product(codes=5)

    with (
        bad_network(live.port, *["lose"] * 100) as network,
        Client(network.base_url, merchant.key, journal, rules=GIVES_UP) as client,
    ):
        unknown = client.buy("1", voucher(1, product_id=product.pk))
        network.plan.clear()
        outcomes = client.resume()
        again = client.resume()

    assert isinstance(unknown, Unknown)
    assert unknown == Unknown("1", cause=unknown.cause)
    assert "RemoteProtocolError" in unknown.cause
    assert [outcome.kind for outcome in outcomes] == ["bought"]
    assert again == []
    assert len(debits()) == 1


def test_a_disabled_client_says_nothing_about_a_lost_attempt(
    live: LiveServer, journal: SQLiteJournal
) -> None:
    merchant, product = make_merchant(), make_product(codes=5)

    with (
        bad_network(live.port, "lose", "disable") as network,
        Client(network.base_url, merchant.key, journal, rules=QUICK) as client,
    ):
        outcome = client.buy("1", voucher(1, product_id=product.pk))
        resumed = client.resume()

    assert isinstance(outcome, Unknown)
    assert outcome.error is not None
    assert outcome.error.code == ErrorCode.CLIENT_DISABLED
    assert [each.kind for each in resumed] == ["bought"]


def test_an_abandoned_purchase_is_read_and_not_bought_again(
    live: LiveServer, journal: SQLiteJournal
) -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        client.prepare("1", voucher(1, product_id=product.pk))
        entry = journal.find("1")
        assert entry is not None
        bought = merchant.buy(entry.key, product_id=product.pk, quantity=1).json()["data"]
        IdempotencyRecord.objects.update(
            response=None, started_at=timezone.now() - timedelta(minutes=10)
        )
        outcome = client.complete("1")

    assert isinstance(outcome, Bought)
    assert outcome.order.reference == bought["reference"]
    assert debits() == [bought["reference"]]


def test_a_running_request_leaves_the_purchase_open(
    live: LiveServer, journal: SQLiteJournal
) -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    with Client(url(live), merchant.key, journal, rules=GIVES_UP) as client:
        client.prepare("1", voucher(1, product_id=product.pk))
        entry = journal.find("1")
        assert entry is not None
        merchant.buy(entry.key, product_id=product.pk, quantity=1)
        ours(IdempotencyRecord).update(response=None, order_reference=None, bought_at=None)
        outcome = client.complete("1")

    assert isinstance(outcome, Unknown)
    assert outcome.error is not None
    assert outcome.error.code == ErrorCode.REQUEST_IN_PROGRESS
    assert [entry.order_number for entry in journal.open_entries()] == ["1"]


def test_a_purchase_older_than_a_day_is_not_sent(live: LiveServer, journal: SQLiteJournal) -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        client.prepare("1", voucher(1, product_id=product.pk))
        with sqlite3.connect(_path(journal)) as database:
            database.execute("UPDATE voucher_purchases SET opened_at = opened_at - 86400")
        cause = "it is older than 23 hours, so it is not sent again"
        assert client.resume() == [Unknown("1", cause=cause)]
    assert debits() == []


def _path(journal: SQLiteJournal) -> str:
    return str(journal._connection.execute("PRAGMA database_list").fetchone()[2])


def test_the_shop_writes_a_purchase_in_its_own_transaction(live: LiveServer) -> None:
    merchant, product = make_merchant(), make_product(codes=5)

    def connect() -> "psycopg.Connection[Any]":
        return psycopg.connect(owner_url())

    journal = PostgresJournal(connect)
    journal.create_table()
    try:
        with Client(url(live), merchant.key, journal, rules=QUICK) as client:
            with connect() as shop:
                client.prepare("1", voucher(1, product_id=product.pk), journal=journal.within(shop))
                with pytest.raises(NotInJournal):  # it is not committed yet
                    client.complete("1")
            first, again = client.complete("1"), client.complete("1")
            with connect() as shop:
                client.prepare("2", voucher(1, product_id=product.pk), journal=journal.within(shop))
                shop.rollback()
            with pytest.raises(NotInJournal):
                client.complete("2")
    finally:
        with connect() as shop:
            shop.execute("DROP TABLE voucher_purchases")

    assert isinstance(first, Bought)
    assert again == first
    assert len(debits()) == 1


def test_no_secret_is_printed_or_logged(
    live: LiveServer, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    merchant, product = make_merchant(), make_product(codes=5)
    journal = SQLiteJournal(tmp_path / "secrets.db")
    with (
        bad_network(live.port, "lose") as network,
        Client(network.base_url, merchant.key, journal, rules=QUICK) as client,
    ):
        outcome = client.buy("1", voucher(1, product_id=product.pk))
        text = repr(client) + repr(outcome) + repr(vars(outcome)) + caplog.text
        with pytest.raises(ApiError) as problem:
            client.order("unknown")
    journal.close()

    assert isinstance(outcome, Bought)
    assert isinstance(outcome.order, VoucherOrder)
    secrets = [merchant.key, *(code.code for code in outcome.order.codes)]
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for secret in secrets:
        assert secret not in text + str(problem.value)
        assert secret.encode() not in stored


def test_a_wrong_base_url_is_refused() -> None:
    with pytest.raises(ValueError, match="must end with /api/v1"):
        Client("https://shop.example", "vk_x", MemoryJournal())


@pytest.fixture
def no_name_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network, the resolver of this machine would wait for its servers."""
    resolve = socket.getaddrinfo

    def no_such_host(host: Any, *more: Any, **options: Any) -> Any:
        if ".invalid" in str(host):  # asyncio gives bytes
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(host, *more, **options)

    monkeypatch.setattr("socket.getaddrinfo", no_such_host)


@BOTH
@pytest.mark.usefixtures("no_name_servers")
@pytest.mark.parametrize(
    ("base_url", "cause"),
    [
        ("https://no-such-host.invalid/api/v1", "ConnectError"),
        ("https://127.0.0.1:{port}/api/v1", "SSL"),  # the port speaks plain HTTP
    ],
)
def test_an_unreachable_service_is_named_at_once(
    live: LiveServer, journal: SQLiteJournal, buy: Buy, base_url: str, cause: str
) -> None:
    merchant = make_merchant()
    started = time.monotonic()
    outcome = buy(base_url.format(port=live.port), merchant, journal, "1", voucher(1, product_id=1))

    assert isinstance(outcome, Unknown)
    assert outcome.status == 0
    assert cause in outcome.cause
    assert time.monotonic() - started < 5


@BOTH
def test_a_wrong_certificate_is_named_at_once(
    journal: SQLiteJournal, buy: Buy, tmp_path: Path
) -> None:
    """A program that sent its key to any server that answers would give it away."""
    merchant = make_merchant()
    with untrusted_server(tmp_path) as server:
        base_url = f"https://127.0.0.1:{server.server_port}/api/v1"
        outcome = buy(base_url, merchant, journal, "1", voucher(1, product_id=1))

    assert isinstance(outcome, Unknown)
    assert "CERTIFICATE_VERIFY_FAILED" in outcome.cause
    assert (server.connections, server.requests) == (1, 0)


RESUME = {
    "threads": lambda url, key, journal, **options: Client(url, key, journal, rules=QUICK).resume(
        **options
    ),
    "asyncio": lambda url, key, journal, **options: asyncio.run(
        AsyncClient(url, key, journal, rules=QUICK).resume(**options)
    ),
}


@pytest.mark.parametrize("kind", RESUME)
@pytest.mark.parametrize(("options", "at_once"), [({}, 4), ({"at_once": 2}, 2)])
def test_resume_settles_some_purchases_at_once_and_no_more(
    live: LiveServer, kind: str, options: dict[str, int], at_once: int
) -> None:
    merchant, product = make_merchant(), make_product(codes=6)
    journal = MemoryJournal()
    for number in range(6):
        body = json.dumps(voucher(1, product_id=product.pk)).encode()
        journal.write(new_entry(str(number), f"key-{number}", body))

    with running(SlowNetwork(live.port, [])) as network:
        outcomes = RESUME[kind](network.base_url, merchant.key, journal, **options)

    assert [outcome.order_number for outcome in outcomes] == [str(number) for number in range(6)]
    assert {outcome.kind for outcome in outcomes} == {"bought"}
    assert len(debits()) == 6
    assert network.most_at_once == at_once


@BOTH
def test_an_unknown_outcome_names_status_cause_and_request_id(
    live: LiveServer, journal: SQLiteJournal, buy: Buy, caplog: pytest.LogCaptureFixture
) -> None:
    merchant, product = make_merchant(), make_product(codes=1)
    with bad_network(live.port, "lose", "disable") as network:
        outcome = buy(network.base_url, merchant, journal, "1", voucher(1, product_id=product.pk))
    with Client(url(live), "vk_wrong", journal, rules=QUICK) as client:
        wrong = client.complete("1")

    assert isinstance(outcome, Unknown)
    assert (outcome.status, outcome.cause) == (403, "client_disabled")
    assert isinstance(wrong, Unknown)
    assert (wrong.status, wrong.cause) == (401, "invalid_token")
    assert wrong.request_id
    assert wrong.request_id in caplog.text


def test_a_failed_read_names_its_request_id(live: LiveServer) -> None:
    with (
        Client(url(live), "vk_wrong", MemoryJournal(), rules=QUICK) as client,
        pytest.raises(ApiError) as problem,
    ):
        client.balance()
    assert problem.value.request_id
    assert problem.value.request_id in str(problem.value)


def test_a_reference_stays_below_orders(live: LiveServer) -> None:
    merchant = make_merchant()
    with (
        bad_network(live.port) as network,
        Client(network.base_url, merchant.key, MemoryJournal(), rules=GIVES_UP) as client,
    ):
        with pytest.raises(Unavailable):
            client.order("../balance")
        with pytest.raises(ValueError, match="Not a reference"):
            client.order("..")
    assert {path for _, path, _ in network.seen} == {"/api/v1/orders/..%2Fbalance"}


@BOTH
def test_a_final_refusal_closes_a_purchase_whose_first_request_was_lost(
    live: LiveServer, journal: SQLiteJournal, buy: Buy
) -> None:
    merchant, product = make_merchant(), make_product(codes=1)
    purchase = {"product_id": product.pk, "quantity": 1000}
    with bad_network(live.port, "lose") as network:
        unknown = buy(network.base_url, merchant, journal, "1", purchase)
    with sqlite3.connect(_path(journal)) as database:
        database.execute("UPDATE voucher_purchases SET sent_at = sent_at - 90")
    refused = buy(url(live), merchant, journal, "1", purchase)

    assert isinstance(unknown, Unknown)
    assert isinstance(refused, Refused)
    assert refused.error.code == ErrorCode.VALIDATION_FAILED


@pytest.mark.parametrize("is_debited", [True, False])
@pytest.mark.parametrize("sent_at", ["opened_at", "NULL"])
def test_an_old_purchase_is_closed_by_the_statement(
    live: LiveServer, journal: SQLiteJournal, is_debited: bool, sent_at: str
) -> None:
    merchant, product = make_merchant(), make_product(codes=1, price="1.10")
    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        client.prepare("1", voucher(1, product_id=product.pk), key="order-1")
        if is_debited:
            merchant.buy("order-1", product_id=product.pk, quantity=1)
        with sqlite3.connect(_path(journal)) as database:
            database.execute(
                "UPDATE voucher_purchases SET opened_at ="
                " unixepoch('now', 'start of day', '-36 hours')"
            )
            database.execute(f"UPDATE voucher_purchases SET sent_at = {sent_at}")
        now = timezone.now()
        day, earlier = str((now - timedelta(days=2)).date()), str((now - timedelta(days=4)).date())
        entries = ours(LedgerEntry).order_by("pk")
        statement = b"".join(write_json(entries, account=merchant.account)).decode()
        (unknown,) = client.resume()
        with pytest.raises(ValueError, match="does not contain every attempt"):
            client.close_purchase("1", statement, since=earlier, until=earlier)
        assert client.reconcile(statement, since=earlier, until=earlier).open_purchases == ()
        before = client.reconcile(statement, since=day, until=day).open_purchases
        outcome = client.close_purchase("1", statement, since=day, until=day)
        after = client.reconcile(statement, since=day, until=day).open_purchases

    assert isinstance(unknown, Unknown)
    assert "older than 23 hours" in unknown.cause
    assert (before, after) == (("1",), ())
    if is_debited:
        assert isinstance(outcome, Bought)
        assert debits() == [outcome.order.reference]
    else:
        assert isinstance(outcome, Refused)
        assert outcome.error.code == "not_debited"


@BOTH
def test_a_call_ends_after_its_time(live: LiveServer, journal: SQLiteJournal, buy: Buy) -> None:
    merchant, product = make_merchant(), make_product(codes=1)
    with bad_network(live.port, *["gateway"] * 1000) as network:
        started = time.monotonic()
        if buy is buy_with_threads:
            with Client(network.base_url, merchant.key, journal) as client:
                outcome = client.buy("1", voucher(1, product_id=product.pk), timeout=0.5)
        else:
            outcome = asyncio.run(_buy_for(0.5, network.base_url, merchant, journal, product.pk))
    assert isinstance(outcome, Unknown)
    assert outcome.status == 502
    assert time.monotonic() - started < 5


async def _buy_for(
    seconds: float, base_url: str, merchant: Merchant, journal: Journal, product_id: int
) -> Outcome:
    async with AsyncClient(base_url, merchant.key, journal) as client:
        return await client.buy("1", voucher(1, product_id=product_id), timeout=seconds)


def test_the_key_may_be_the_order_number(live: LiveServer, journal: SQLiteJournal) -> None:
    merchant, product = make_merchant(), make_product(codes=1)
    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        client.buy("order-4711", voucher(1, product_id=product.pk), key="order-4711")
        with pytest.raises(ValueError, match="ASCII"):
            client.buy("ä", voucher(1, product_id=product.pk), key="ä")
    assert ours(IdempotencyRecord).get().key == "order-4711"


def test_fields_in_another_order_are_the_same_purchase(
    live: LiveServer, journal: SQLiteJournal
) -> None:
    merchant, product = make_merchant(), make_product(codes=1)
    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        first = client.buy("1", {"product_id": product.pk, "quantity": 1})
        assert client.buy("1", {"quantity": 1, "product_id": product.pk}) == first
        with pytest.raises(OrderNumberTaken):
            client.buy("1", {"quantity": 1.0, "product_id": product.pk})


def test_an_own_http_client_is_used_and_stays_open(live: LiveServer) -> None:
    merchant = make_merchant()
    seen: list[httpx.Request] = []
    with httpx.Client(event_hooks={"request": [seen.append]}) as http:
        with Client(url(live), merchant.key, MemoryJournal(), http=http) as client:
            client.balance()
        assert not http.is_closed
    assert len(seen) == 1


@BOTH
def test_requests_name_the_library_and_its_version(
    live: LiveServer, buy: Buy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "voucher_topup-9.8.7.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: voucher-topup\nVersion: 9.8.7\n")
    monkeypatch.syspath_prepend(tmp_path)
    merchant, product = make_merchant(), make_product(codes=1)
    with running(SlowNetwork(live.port, [])) as network:
        buy(network.base_url, merchant, MemoryJournal(), "1", voucher(1, product_id=product.pk))

    assert network.user_agents == {"voucher-topup-python/9.8.7"}


def test_watching_survives_an_outage_and_an_unknown_reference(live: LiveServer) -> None:
    merchant, product = make_merchant(), make_topup_product(price="1.00")
    reference = buy_topup(merchant, product)
    move_now(reference=reference, move=Move.CLAIM, operator=(operator := make_operator()))
    move_now(reference=reference, move=Move.COMPLETE, operator=operator)
    with (
        bad_network(live.port, *["gateway"] * 20) as network,
        Client(network.base_url, merchant.key, MemoryJournal(), rules=GIVES_UP) as client,
    ):
        watch = client.watch([reference, "unknown"], every=0.05)
        assert next(watch).reference == reference
        with pytest.raises(ReferenceNotFound, match="unknown"):
            next(watch)


def test_a_plain_address_is_refused() -> None:
    with pytest.raises(ValueError, match="https"):
        Client("http://shop.example/api/v1", "vk_x", MemoryJournal())


@pytest.mark.parametrize("wrong", ["", "vk_secret\n", "vk_ secret", "vk_sécret"])
def test_a_key_that_no_header_can_carry_is_refused(wrong: str) -> None:
    """Otherwise each request would fail as if nothing had answered."""
    with pytest.raises(ValueError, match="api_key must be the key only") as problem:
        Client("https://shop.example/api/v1", wrong, MemoryJournal())
    assert "secret" not in str(problem.value)


def test_reading_the_catalogue(live: LiveServer) -> None:
    merchant = make_merchant(balance="12.34")
    kept, gone = make_product(name="Card", codes=1, price="0.10"), make_product(name="Old")
    topup = make_topup_product(name="Gems")
    gone.active = False
    gone.save()
    with Client(url(live), merchant.key, MemoryJournal(), rules=QUICK) as client:
        assert client.ping().client == merchant.client.name
        assert client.balance().balance == Decimal("12.34")
        copy = client.sync([kept.pk, gone.pk])
        topups = client.sync(topups=True)
        assert client.product(kept.pk).price == Decimal("0.1")

    assert kept.pk in {product.id for product in copy.products}
    assert copy.gone == (gone.pk,)
    assert topup.pk in {product.id for product in topups.products}


def test_orders_since_a_reference(live: LiveServer) -> None:
    merchant, product = make_merchant(balance="1000"), make_product(codes=9, price="1")
    bought = [
        merchant.buy(f"k{number}", product_id=product.pk, quantity=1).json()["data"]["reference"]
        for number in range(4)
    ]
    with Client(url(live), merchant.key, MemoryJournal(), rules=QUICK) as client:
        assert [order.reference for order in client.since(bought[1])] == bought[2:]
        assert [order.reference for order in client.since(None)] == bought
        with pytest.raises(ReferenceNotFound):
            client.since("unknown")


def test_watching_reads_many_topups_at_once(live: LiveServer) -> None:
    merchant, product = make_merchant(), make_topup_product(price="1.00")
    operator = make_operator()
    delivered, failed, waiting = (buy_topup(merchant, product) for _ in range(3))
    for reference, move in [(delivered, Move.COMPLETE), (failed, Move.REJECT)]:
        move_now(reference=reference, move=Move.CLAIM, operator=operator)
        move_now(reference=reference, move=move, operator=operator)

    with (
        bad_network(live.port) as network,
        Client(network.base_url, merchant.key, MemoryJournal(), rules=QUICK) as client,
    ):
        watch = client.watch([delivered, failed, waiting], every=0.1)
        first = next(watch)
        assert [path.partition("?")[0] for _, path, _ in network.seen] == [
            "/api/v1/ping",
            "/api/v1/orders",
        ]
        assert sweep_refunds() == 1
        second = next(watch)
        move_now(reference=waiting, move=Move.CLAIM, operator=operator)
        move_now(reference=waiting, move=Move.COMPLETE, operator=operator)
        third = next(watch)
        assert next(watch, None) is None

    assert [order.reference for order in (first, second, third)] == [delivered, failed, waiting]
    assert isinstance(second, TopUpOrder)
    assert second.refunded


def test_purchases_go_before_reads_within_the_limit() -> None:
    pace = Pace()
    pace.limit = 10
    reads = [pace.ask(object(), is_purchase=False, now=0.0) for _ in range(10)]
    purchases = [pace.ask(object(), is_purchase=True, now=1.0) for _ in range(3)]

    assert [wait == 0 for wait in reads] == [True] * 8 + [False] * 2
    assert [wait == 0 for wait in purchases] == [True, True, False]
    assert purchases[2] == pytest.approx(59)
    assert pace.ask(object(), is_purchase=False, now=60.5) > 0  # a purchase waits


def test_the_client_keeps_the_limit_that_ping_reports(live: LiveServer) -> None:
    merchant = make_merchant(rate_limit_per_minute=5)
    with Client(url(live), merchant.key, MemoryJournal(), rules=QUICK) as client:
        client.ping()
        started = time.monotonic()
        for _ in range(3):
            client.balance()
        assert time.monotonic() - started < 10
        assert client._flows.pace.ask(object(), is_purchase=False, now=time.monotonic()) > 30


def test_reconciling_with_a_statement(live: LiveServer, journal: SQLiteJournal) -> None:
    merchant, product = make_merchant(), make_product(codes=5, price="1.10")
    with Client(url(live), merchant.key, journal, rules=QUICK) as client:
        client.buy("1", voucher(1, product_id=product.pk))
        entries = ours(LedgerEntry).order_by("pk")
        account = merchant.account
        as_csv = b"".join(write_csv(entries, account=account)).decode()
        as_json = b"".join(write_json(entries, account=account)).decode()
        assert client.reconcile(as_csv).is_clean
        assert client.reconcile(as_json).is_clean

        stranger = merchant.buy("other", product_id=product.pk, quantity=1).json()["data"]
        client.prepare("2", voucher(1, product_id=product.pk))
        as_json = b"".join(write_json(ours(LedgerEntry).order_by("pk"), account=account)).decode()
        changed = json.loads(as_json)
        changed["entries"][-2]["amount"] = -9
        result = client.reconcile(json.dumps(changed))

    mine = Order.objects.exclude(reference=stranger["reference"]).latest("pk").reference
    assert result.debits_unknown_here == (stranger["reference"],)
    assert result.open_purchases == ("2",)
    assert result.other_amounts == (mine,)
    assert result.debited_twice == ()


def test_a_top_up_keeps_the_zeroes_of_its_player(live: LiveServer, journal: SQLiteJournal) -> None:
    merchant, product = make_merchant(), make_topup_product()
    outcome = buy_with_threads(url(live), merchant, journal, "1", top_up(product.pk, "0012345"))
    assert isinstance(outcome, Bought)
    assert isinstance(outcome.order, TopUpOrder)
    assert outcome.order.player_id == "0012345"


def test_the_balance_of_a_wrong_key_is_an_error(live: LiveServer) -> None:
    with (
        Client(url(live), "vk_wrong", MemoryJournal(), rules=QUICK) as client,
        pytest.raises(ApiError) as problem,
    ):
        client.balance()
    assert problem.value.error.code == ErrorCode.INVALID_TOKEN
