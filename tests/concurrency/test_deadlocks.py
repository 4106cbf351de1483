"""A purchase that PostgreSQL ends because of a deadlock is made again, once."""

from contextlib import suppress
from functools import partial

import pytest
from django.http import HttpResponse
from psycopg.errors import QueryCanceled

from core.database import functions
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    holding_wallet,
    in_background,
    outcome,
    scalar,
    wait_for_waiting,
    with_own_http,
)
from tests.factories import Merchant, make_product

pytestmark = pytest.mark.django_db(transaction=True)


def buy_in_a_deadlock(merchant: Merchant) -> HttpResponse:
    """The response to a purchase that waits for a wallet whose holder waits for its shelf.

    The purchase looks for a deadlock first, after a second, so PostgreSQL ends it and not the
    other. The other gives up before the next second: when its process wakes late, the repeated
    purchase has the shelf already, and they would meet again.
    """
    buy = partial(
        with_own_http(merchant).buy, product_id=make_product(codes=2).pk, quantity=1, key="one"
    )
    with holding_wallet(merchant) as other, in_background(buy) as purchase:
        wait_for_waiting()
        other.execute("SET deadlock_timeout = '1min'")
        other.execute("SET statement_timeout = '1500ms'")
        with suppress(QueryCanceled):
            other.execute("SELECT FROM catalogue_shelf FOR UPDATE")
        other.rollback()
        response: HttpResponse = purchase.result()
    return response


def test_a_deadlock_does_not_fail_a_purchase(merchant: Merchant) -> None:
    assert outcome(buy_in_a_deadlock(merchant)) == "bought"

    ordered = "SELECT count(*) FROM orders_order WHERE client_id = %s"
    assert scalar(ordered, merchant.client.pk) == 1
    assert_books_balance()


def test_control_without_the_repetition_it_is_a_server_error(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "DEADLOCK", "")

    assert outcome(buy_in_a_deadlock(merchant)) == "server_error"
