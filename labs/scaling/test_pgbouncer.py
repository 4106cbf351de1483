"""The service works through PgBouncer, with more web processes than database connections."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pytest
from django.conf import settings

from labs.installation.pgbouncer import pgbouncer
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import outcome, race, scalar
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.live import LiveServer, live_server
from tests.merchants.ledger import book_many
from tests.merchants.people import browser_of, make_member
from tests.tasks.running import running_broker, running_crew, wait_until
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.pgbouncer]

TO_THIS_DATABASE = "FROM pg_stat_activity WHERE datname = current_database()"
POOL = 2  # connections to PostgreSQL


@pytest.fixture(scope="module")
def others(django_db_setup: None, django_db_blocker: Any) -> list[int]:
    """The connections to the database that exist before the pool, such as those of a web server
    that other tests share."""
    with django_db_blocker.unblock():
        found: list[int] = scalar(f"SELECT array_agg(pid) {TO_THIS_DATABASE}")
    return found


@pytest.fixture(scope="module")
def pool(others: list[int]) -> Iterator[str]:
    with pgbouncer(POOL) as url:
        yield url


@pytest.fixture(scope="module")
def server(pool: str) -> Iterator[LiveServer]:
    """More processes than the pool has connections."""
    with live_server({"DATABASE_URL": pool}, workers=4) as server:
        yield server


def test_one_key_and_the_last_codes_sell_once(server: LiveServer, others: list[int]) -> None:
    merchant = make_merchant(balance="100.00", rate_limit_per_minute=100_000)
    product = make_product(price="1.00", codes=9)
    callers = [Merchant(merchant.client, http=server.http) for _ in range(24)]

    def buy(number: int) -> str:
        key = "one" if number % 2 else f"own-{number}"
        return outcome(callers[number].buy(key, product_id=product.pk, quantity=1))

    told = Counter(race([partial(buy, number) for number in range(24)]))
    again = Merchant(merchant.client, http=server.http).buy(
        "one", product_id=product.pk, quantity=1
    )

    assert told["bought"] == 9
    assert told["bought"] + told["replayed"] + told["request_in_progress"] + told[
        "insufficient_stock"
    ] == sum(told.values())
    assert outcome(again) in ("replayed", "insufficient_stock")
    assert_books_balance()
    pooled = f"SELECT count(*) {TO_THIS_DATABASE} AND pid <> ALL (ARRAY{others})"
    assert 1 <= scalar(f"{pooled} AND pid <> pg_backend_pid()") <= POOL


def test_a_rejected_top_up_is_refunded_by_a_worker(
    pool: str, server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant = make_merchant(balance="100.00")
    with running_broker() as broker:
        monkeypatch.setenv("CELERY_BROKER_URL", broker.url)
        with running_crew(broker.url, DATABASE_URL=pool) as crew:
            crew.worker()
            buyer = Merchant(make_client(merchant.client.account), http=server.http)
            reference = buy_topup(buyer, make_topup_product(price="4.99"))
            move_now(reference=reference, move=Move.REJECT, operator=make_operator())
            wait_until(
                lambda: Fulfilment.objects.get(order_reference=reference).refunded, "refunded"
            )
            assert buyer.get(f"/orders/{reference}").json()["data"]["refunded"] is True
            assert buyer.get("/balance").json()["data"]["balance"] == 100
    assert_books_balance()


def test_the_timeouts_come_from_the_role(pool: str) -> None:
    """PgBouncer ignores the options of a client, so the settings must come from the role."""
    with psycopg.connect(pool, options="-c statement_timeout=1s") as connection:
        for name, expected in [
            ("statement_timeout", "20s"),
            ("lock_timeout", "10s"),
            ("idle_in_transaction_session_timeout", "20s"),
        ]:
            assert connection.execute(f"SHOW {name}".encode()).fetchone() == (expected,)


def test_a_statement_is_downloaded_completely(server: LiveServer) -> None:
    """Each chunk is a separate query, so a download needs no connection between two chunks."""
    account = make_account(balance="0")
    book_many(account, 10_000)
    browser = browser_of(make_member(account))
    cookie = browser.cookies[settings.SESSION_COOKIE_NAME].value
    answer = server.http.get(
        "/merchant/wallet/statement.json",
        headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}={cookie}"},
    )

    assert answer.status_code == 200
    assert len(answer.json()["entries"]) == 10_000
