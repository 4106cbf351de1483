"""Two orders never get the same code, and an order is refused only when no code is left."""

import time
from collections import Counter
from functools import partial

import pytest

from tests.concurrency.books import assert_books_balance, findings
from tests.concurrency.racing import (
    codes_of,
    execute,
    in_background,
    outcome,
    race,
    spending,
    unlocked_shelves,
    wait_for_waiting,
    waiting,
    weakened_sql,
    with_own_http,
)
from tests.factories import make_merchant, make_product

pytestmark = pytest.mark.django_db(transaction=True)

TAKE_CODES = "catalogue/sql/take_codes.sql"
# Take_codes without its lock: it reads the stock first and takes the codes later.
NO_LOCK = [
    (
        "UPDATE catalogue_shelf\n"
        "       SET available_stock = available_stock - p_quantity\n"
        "     WHERE id = p_shelf AND available_stock >= p_quantity;",
        "PERFORM FROM catalogue_shelf\n     WHERE id = p_shelf AND available_stock >= p_quantity;",
    ),
    ("         FOR UPDATE\n", ""),
    (
        "        RETURNING position, sealed, digest\n",
        "          AND pg_sleep(0.2) IS NOT NULL\n        RETURNING position, sealed, digest\n",
    ),
]
# Take_codes with SKIP LOCKED: it skips codes of a running purchase and reports no stock.
SKIP_LOCKED = [
    (NO_LOCK[0][0], "PERFORM 1;"),
    ("FOR UPDATE\n", "FOR UPDATE SKIP LOCKED\n"),
    (
        "RAISE EXCEPTION 'shelf % counts more codes than it holds; run reconcile', p_shelf;",
        "RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'insufficient_stock';",
    ),
]


@pytest.mark.parametrize("quantity", [1, 3])
def test_the_last_codes_go_to_one_buyer(quantity: int) -> None:
    product = make_product(price="9.99", codes=quantity)
    merchants = [make_merchant() for _ in range(16)]

    answers = race(
        [
            partial(with_own_http(merchant).buy, product_id=product.pk, quantity=quantity)
            for merchant in merchants
        ]
    )

    assert Counter(map(outcome, answers)) == {"bought": 1, "insufficient_stock": 15}
    assert_books_balance()


def test_many_buyers_of_several_shelves_get_every_code_once() -> None:
    merchants = [make_merchant(balance="1000.00") for _ in range(4)]
    products = [make_product(price="1.00", codes=7) for _ in range(3)]

    def shop(merchant_number: int) -> list[tuple[str, list[str]]]:
        merchant = with_own_http(merchants[merchant_number % len(merchants)])
        taken = []
        for step in range(6):
            product = products[(merchant_number + step) % len(products)]
            answer = merchant.buy(product_id=product.pk, quantity=1 + step % 2)
            found = outcome(answer)
            taken.append((found, codes_of(answer) if found == "bought" else []))
        return taken

    taken = [
        one for shopped in race([partial(shop, number) for number in range(12)]) for one in shopped
    ]

    assert {found for found, _ in taken} == {"bought", "insufficient_stock"}
    sold = [code for _, codes in taken for code in codes]
    assert len(sold) == len(set(sold))
    # A purchase of one code was refused only when none was left, so all 21 codes are sold.
    assert len(sold) == 21
    assert_books_balance()


def test_without_the_lock_the_trigger_still_prevents_a_double_sale() -> None:
    product = make_product(codes=1)
    merchants = [make_merchant() for _ in range(4)]

    with unlocked_shelves(), weakened_sql(TAKE_CODES, *NO_LOCK):
        answers = race(
            [
                partial(with_own_http(one).buy, product_id=product.pk, quantity=1)
                for one in merchants
            ]
        )

    assert Counter(map(outcome, answers)) == {"bought": 1, "server_error": 3}
    assert list(findings()) == ["available_stock is not the number of unsold codes"]


def test_control_without_lock_and_trigger_a_code_is_sold_twice() -> None:
    product = make_product(codes=1)
    merchants = [make_merchant() for _ in range(4)]

    execute("ALTER TABLE catalogue_vouchercode DISABLE TRIGGER catalogue_code_is_sold_once")
    try:
        with unlocked_shelves(), weakened_sql(TAKE_CODES, *NO_LOCK):
            answers = race(
                [
                    partial(with_own_http(one).buy, product_id=product.pk, quantity=1)
                    for one in merchants
                ]
            )
    finally:
        execute("ALTER TABLE catalogue_vouchercode ENABLE TRIGGER catalogue_code_is_sold_once")

    bought = [codes_of(answer) for answer in answers if outcome(answer) == "bought"]
    assert len(bought) > 1
    assert all(codes == bought[0] for codes in bought)
    assert "an order does not have its quantity of codes" in findings()


def test_a_refused_purchase_leaves_its_code_to_the_next() -> None:
    assert race_of_poor_and_rich() == ("insufficient_balance", "bought")
    assert_books_balance()


def test_control_skip_locked_refuses_although_a_code_is_left() -> None:
    with unlocked_shelves(), weakened_sql(TAKE_CODES, *SKIP_LOCKED):
        assert race_of_poor_and_rich() == ("insufficient_balance", "insufficient_stock")


def race_of_poor_and_rich() -> tuple[str, str]:
    """Two merchants buy the only code at once; the one that locks the shelf first cannot pay."""
    product = make_product(price="9.99", codes=1)
    poor, rich = make_merchant(), make_merchant()
    with (
        spending(poor, "99.00") as wallet,
        in_background(partial(with_own_http(poor).buy, product_id=product.pk, quantity=1)) as first,
    ):
        wait_for_waiting(1)
        with in_background(
            partial(with_own_http(rich).buy, product_id=product.pk, quantity=1)
        ) as second:
            while not second.done() and waiting() < 2:  # until it ends or waits for the shelf
                time.sleep(0.01)
            wallet.commit()
        return outcome(first.result()), outcome(second.result())
