"""A purchase whose commit fails is never reported as bought.

PostgreSQL sends the row of a statement before it commits; only the end of its response confirms the
commit.
"""

import pytest

from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import age_records, execute, outcome, scalar, with_own_http
from tests.concurrency.test_takeover import PAST_THE_WINDOW
from tests.factories import make_merchant, make_product

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]


def test_a_failed_commit_buys_nothing_and_leaves_the_key_in_progress() -> None:
    merchant, product = with_own_http(make_merchant()), make_product(price="9.99", codes=1)
    execute(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'no commit'; END $$"
    )
    execute(
        "CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON orders_order"
        " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()"
    )
    try:
        answer = merchant.buy("one", product_id=product.pk, quantity=1)
    finally:
        execute("DROP FUNCTION fail CASCADE")

    assert (answer.status_code, outcome(answer)) == (500, "server_error")
    assert scalar("SELECT count(*) FROM orders_order") == 0
    assert_books_balance()
    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "request_in_progress"
    age_records(PAST_THE_WINDOW)
    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "bought"
    assert_books_balance()


def test_refused_purchases_leave_no_gap_in_the_numbers() -> None:
    merchant, product = (
        with_own_http(make_merchant(balance="25.00")),
        make_product(price="9.99", codes=9),
    )

    told = [
        outcome(merchant.buy(product_id=product.pk, quantity=quantity))
        for quantity in (1, 10, 3, 1, 1)
    ]

    assert told == [
        "bought",
        "insufficient_stock",
        "insufficient_balance",
        "bought",
        "insufficient_balance",
    ]
    assert scalar("SELECT array_agg(number ORDER BY id) FROM orders_order") == [1, 2]
    assert_books_balance()
