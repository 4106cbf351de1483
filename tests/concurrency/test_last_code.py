"""Nobody gets a code that somebody else got, and nobody is told of a shortage that is not there."""

import time
from collections import Counter
from functools import partial

import pytest

from tests.concurrency.books import assert_books_balance, findings
from tests.concurrency.racing import (
    codes_of,
    execute,
    in_background,
    of_own,
    outcome,
    race,
    spending,
    unlocked_shelves,
    wait_for_waiting,
    waiting,
    without,
)
from tests.factories import make_merchant, make_product

pytestmark = pytest.mark.django_db(transaction=True)

TAKE_CODES = "catalogue/sql/take_codes.sql"
# Looks first and takes later: what the code would be without its lock.
NO_LOCK = [
    (
        "UPDATE catalogue_shelf\n"
        "       SET available_stock = available_stock - p_quantity\n"
        "     WHERE id = p_shelf AND available_stock >= p_quantity;",
        "PERFORM FROM catalogue_shelf\n     WHERE id = p_shelf AND available_stock >= p_quantity;",
    ),
    ("         FOR UPDATE\n", ""),
    (
        "        RETURNING position, sealed\n",
        "          AND pg_sleep(0.2) IS NOT NULL\n        RETURNING position, sealed\n",
    ),
]
# Passes over codes in somebody's hand, and takes none left for none there.
SKIP_LOCKED = [
    (NO_LOCK[0][0], "PERFORM 1;"),
    ("FOR UPDATE\n", "FOR UPDATE SKIP LOCKED\n"),
    (
        "RAISE EXCEPTION 'shelf % counts more codes than it holds; run reconcile', p_shelf;",
        "RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'insufficient_stock';",
    ),
]


@pytest.mark.parametrize("quantity", [1, 3])
def test_the_last_codes_go_to_one_of_many(quantity: int) -> None:
    product = make_product(price="9.99", codes=quantity)
    merchants = [make_merchant() for _ in range(16)]

    answers = race(
        [
            partial(of_own(merchant).buy, product_id=product.pk, quantity=quantity)
            for merchant in merchants
        ]
    )

    assert Counter(map(outcome, answers)) == {"bought": 1, "insufficient_stock": 15}
    assert_books_balance()


def test_a_rush_on_several_shelves_sells_every_code_once() -> None:
    merchants = [make_merchant(balance="1000.00") for _ in range(4)]
    products = [make_product(price="1.00", codes=7) for _ in range(3)]

    def shop(merchant_number: int) -> list[tuple[str, list[str]]]:
        merchant = of_own(merchants[merchant_number % len(merchants)])
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
    # Whoever asked for one code was refused only where none was left.
    assert len(sold) == 21
    assert_books_balance()


def test_without_the_lock_the_database_still_sells_no_code_twice() -> None:
    product = make_product(codes=1)
    merchants = [make_merchant() for _ in range(4)]

    with unlocked_shelves(), without(TAKE_CODES, *NO_LOCK):
        answers = race(
            [partial(of_own(one).buy, product_id=product.pk, quantity=1) for one in merchants]
        )

    assert Counter(map(outcome, answers)) == {"bought": 1, "server_error": 3}
    assert list(findings()) == ["a shelf counts other codes than it holds"]


def test_control_without_lock_and_trigger_one_code_is_sold_twice() -> None:
    product = make_product(codes=1)
    merchants = [make_merchant() for _ in range(4)]

    execute("ALTER TABLE catalogue_vouchercode DISABLE TRIGGER catalogue_code_is_sold_once")
    try:
        with unlocked_shelves(), without(TAKE_CODES, *NO_LOCK):
            answers = race(
                [partial(of_own(one).buy, product_id=product.pk, quantity=1) for one in merchants]
            )
    finally:
        execute("ALTER TABLE catalogue_vouchercode ENABLE TRIGGER catalogue_code_is_sold_once")

    bought = [codes_of(answer) for answer in answers if outcome(answer) == "bought"]
    assert len(bought) > 1
    assert all(codes == bought[0] for codes in bought)
    assert "an order without exactly its codes" in findings()


def test_a_purchase_that_fails_on_its_balance_leaves_the_code_to_the_one_waiting() -> None:
    assert race_of_poor_and_rich() == ("insufficient_balance", "bought")
    assert_books_balance()


def test_control_skipping_locked_codes_reports_a_shortage_that_is_not_there() -> None:
    with unlocked_shelves(), without(TAKE_CODES, *SKIP_LOCKED):
        assert race_of_poor_and_rich() == ("insufficient_balance", "insufficient_stock")


def race_of_poor_and_rich() -> tuple[str, str]:
    """Both want the only code; who has it in hand cannot pay, and the other comes meanwhile."""
    product = make_product(price="9.99", codes=1)
    poor, rich = make_merchant(), make_merchant()
    with (
        spending(poor, "99.00") as wallet,
        in_background(partial(of_own(poor).buy, product_id=product.pk, quantity=1)) as first,
    ):
        wait_for_waiting(1)
        with in_background(partial(of_own(rich).buy, product_id=product.pk, quantity=1)) as second:
            while not second.done() and waiting() < 2:  # answered already, or waits for the shelf
                time.sleep(0.01)
            wallet.commit()
        return outcome(first.result()), outcome(second.result())
