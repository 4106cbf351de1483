"""Concurrent purchases never overdraw a wallet, and its ledger entries add up to its balance."""

from collections import Counter
from functools import partial
from itertools import chain

import pytest

from tests.concurrency.books import assert_books_balance, findings
from tests.concurrency.racing import (
    holding_wallet,
    in_background,
    outcome,
    race,
    scalar,
    wait_for_waiting,
    weakened_sql,
    with_own_http,
)
from tests.factories import Merchant, make_client, make_merchant, make_product

pytestmark = pytest.mark.django_db(transaction=True)


def test_sixteen_buyers_spend_exactly_the_balance() -> None:
    merchant = make_merchant(balance="100.00")
    # Several clients and several shelves, so the purchases share only the wallet.
    buyers = [merchant, *(Merchant(make_client(merchant.client.account)) for _ in range(3))]
    products = [make_product(price="3.33", codes=50) for _ in range(5)]

    def spend(number: int) -> list[str]:
        buyer = with_own_http(buyers[number % len(buyers)])
        product = products[number % len(products)]
        return [outcome(buyer.buy(product_id=product.pk, quantity=1)) for _ in range(4)]

    spent = race([partial(spend, number) for number in range(16)])

    assert Counter(chain.from_iterable(spent)) == {"bought": 30, "insufficient_balance": 34}
    assert balance(merchant) == "0.1000"
    assert_books_balance()


def test_an_entry_that_waited_for_the_wallet_has_the_later_id() -> None:
    merchant = make_merchant()
    product = make_product(price="9.99", codes=1)

    with (
        holding_wallet(merchant) as wallet,
        in_background(
            partial(with_own_http(merchant).buy, product_id=product.pk, quantity=1)
        ) as purchase,
    ):
        wait_for_waiting()  # for the wallet, while it inserts its entry
        wallet.execute(
            "INSERT INTO wallets_ledgerentry"
            " (wallet_id, kind, counterpart, amount, balance_after, actor, booking_reference)"
            " VALUES (%s, 'deposit', 'bank', 5, 0, 'test', 'more money')",
            [merchant.client.account_id],
        )
        wallet.commit()
        assert outcome(purchase.result()) == "bought"

    assert_books_balance()


def test_control_reading_the_balance_before_writing_loses_debits() -> None:
    merchant = make_merchant(balance="100.00")
    products = [make_product(price="3.00", codes=1) for _ in range(4)]
    read_then_write = (
        "UPDATE wallets_wallet\n"
        "       SET balance = balance + NEW.amount,\n"
        "           chain = wallets_chained(chain, account_id, shown,"
        " balance + NEW.amount, hidden)\n"
        "     WHERE account_id = NEW.wallet_id\n"
        "       AND balance + NEW.amount >= 0\n"
        "    RETURNING balance, chain INTO NEW.balance_after, NEW.chain;",
        "SELECT balance + NEW.amount, '' INTO NEW.balance_after, NEW.chain\n"
        "      FROM wallets_wallet WHERE account_id = NEW.wallet_id;\n"
        "    PERFORM pg_sleep(0.3);\n"
        "    UPDATE wallets_wallet SET balance = NEW.balance_after\n"
        "     WHERE account_id = NEW.wallet_id;",
    )

    with weakened_sql("wallets/sql/post_entry.sql", read_then_write):
        answers = race(
            [
                partial(with_own_http(merchant).buy, product_id=product.pk, quantity=1)
                for product in products
            ]
        )

    assert Counter(map(outcome, answers)) == {"bought": 4}
    assert float(balance(merchant)) > 88
    assert "a balance is not the sum of its entries" in findings()


def balance(merchant: Merchant) -> str:
    query = "SELECT balance FROM wallets_wallet WHERE account_id = %s"
    return str(scalar(query, merchant.client.account_id))
