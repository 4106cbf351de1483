"""An attempt that lost the database is ended when it is back, and a retry buys at once."""

from functools import partial
from typing import Any

import pytest
from django.db import connection

from idempotency import lost_attempts
from idempotency.lost_attempts import end_later, end_lost_attempts
from idempotency.models import IdempotencyRecord
from idempotency.services import Claim, end_attempt
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    holding_wallet,
    in_background,
    outcome,
    rows,
    scalar,
    wait_for_waiting,
    weakened_sql,
    with_own_http,
)
from tests.concurrency.test_takeover import Attempt
from tests.factories import Merchant, make_client, make_merchant, make_product

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone", "empty")]


@pytest.fixture
def empty() -> None:
    lost_attempts._lost.clear()


def test_a_retry_buys_as_soon_as_the_lost_attempt_is_ended() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    buy_and_lose_the_database(merchant, product.pk)
    assert outcome(buy(merchant, product.pk)) == "request_in_progress"

    end_lost_attempts()

    assert outcome(buy(merchant, product.pk)) == "bought"
    assert outcome(buy(merchant, product.pk)) == "replayed"
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_another_content_does_not_get_the_key_of_an_ended_attempt() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    buy_and_lose_the_database(merchant, product.pk)
    end_lost_attempts()

    other = merchant.buy("one", product_id=product.pk, quantity=2)

    assert outcome(other) == "idempotency_key_reused"


def test_an_attempt_is_ended_when_the_database_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    buy_and_lose_the_database(merchant, product.pk)
    connection.close()
    with monkeypatch.context() as away:
        away.setitem(connection.settings_dict, "HOST", "/nowhere")
        end_lost_attempts()

    assert outcome(buy(merchant, product.pk)) == "request_in_progress"
    end_lost_attempts()

    assert outcome(buy(merchant, product.pk)) == "bought"


def test_an_attempt_that_has_ended_buys_nothing() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    lost = Attempt(merchant, product.pk)

    assert end_attempt(lost.claim)

    assert lost.finish() == "request_in_progress"
    assert not end_attempt(lost.claim)
    assert outcome(buy(merchant, product.pk)) == "bought"
    assert scalar("SELECT count(*) FROM orders_order") == 1


def test_the_end_of_an_attempt_changes_no_other_record() -> None:
    client, other = make_client(), make_client()
    key = {"attempt": 7, "fingerprint": b"the same body"}
    lost, *others = [
        IdempotencyRecord.objects.create(client=owner, key=name, **key)
        for owner, name in [(client, "one"), (client, "two"), (other, "one")]
    ]
    before = [(each.attempt, each.started_at) for each in others]

    assert end_attempt(Claim(client.pk, "one", b"", lost.pk, 7))

    for each in others:
        each.refresh_from_db()
    assert [(each.attempt, each.started_at) for each in others] == before


def test_control_with_its_old_number_an_ended_attempt_buys() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    lost = Attempt(merchant, product.pk)

    with weakened_sql("idempotency/sql/end_attempt.sql", ("attempt = attempt + 1,", "")):
        assert end_attempt(lost.claim)
        assert lost.finish() == "bought"


def test_an_attempt_that_commits_meanwhile_is_not_ended() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    lost = Attempt(merchant, product.pk)

    with holding_wallet(merchant) as wallet, in_background(lost.finish) as slow:
        wait_for_waiting(1)
        with in_background(partial(end_attempt, lost.claim)) as ending:
            wait_for_waiting(2)
            wallet.rollback()
            assert slow.result() == "bought"
            assert ending.result() is False

    assert outcome(buy(merchant, product.pk)) == "request_in_progress"
    assert scalar("SELECT count(*) FROM orders_order") == 1


def test_an_attempt_that_a_retry_took_over_is_not_ended() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    lost = Attempt(merchant, product.pk)
    assert end_attempt(lost.claim)
    successor = Attempt(merchant, product.pk)

    end_later(lost.claim)
    end_lost_attempts()

    assert outcome(buy(merchant, product.pk)) == "request_in_progress"
    assert successor.finish() == "bought"


def test_a_refusal_by_the_shop_is_not_ended_later() -> None:
    merchant, product = make_merchant(balance="0.00"), make_product(codes=5)

    assert outcome(buy(merchant, product.pk)) == "insufficient_balance"

    assert not lost_attempts._lost


def buy(merchant: Merchant, product: int) -> Any:
    return with_own_http(merchant).buy("one", product_id=product, quantity=1)


def buy_and_lose_the_database(merchant: Merchant, product: int) -> None:
    """PostgreSQL ends the session of the purchase while it waits for its last lock."""
    with (
        holding_wallet(merchant),
        in_background(partial(buy, merchant, product)) as slow,
    ):
        wait_for_waiting(1)
        ended = rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        assert ended == [(True,)]
        assert outcome(slow.result()) == "server_error"
