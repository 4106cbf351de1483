"""What a sale costs, and whether it is one, is what holds when its turn at the stock comes."""

from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    held,
    in_background,
    of_own,
    outcome,
    unlocked_shelves,
    wait_for_waiting,
    without,
)
from tests.factories import (
    link,
    make_category,
    make_merchant,
    make_product,
    make_topup_product,
    own_shelf,
)

pytestmark = pytest.mark.django_db(transaction=True)

GUARDED, CONTROL = pytest.param(True, id="guarded"), pytest.param(False, id="control")
BOUGHT_BEFORE = ("bought", Decimal("9.99"))

# Packages are read before the purchase waits: what the code would be without its lock.
PACKAGE_LOCK = ("FOR NO KEY UPDATE", "")

# What changes while a purchase of one waits, and how the purchase ends.
SHELF_CHANGES = {
    "price": ("UPDATE catalogue_shelf SET price = 12.50", ("bought", Decimal("12.50"))),
    "no price": ("UPDATE catalogue_shelf SET price = NULL", ("price_unavailable", None)),
    "step": ("UPDATE catalogue_shelf SET quantity_step = 2", ("quantity_step", None)),
    "product": ("UPDATE catalogue_product SET active = false", ("product_inactive", None)),
    "category": ("UPDATE catalogue_category SET active = false", ("product_inactive", None)),
}
PACKAGE_CHANGES = {
    "price": ("UPDATE topups_topupproduct SET price = 12.50", ("bought", Decimal("12.50"))),
    "product": ("UPDATE topups_topupproduct SET active = false", ("product_inactive", None)),
    "publication": ("UPDATE topups_topupproduct SET published = false", ("product_inactive", None)),
    "category": ("UPDATE catalogue_category SET active = false", ("product_inactive", None)),
}


@pytest.mark.parametrize("guarded", [GUARDED, CONTROL])
@pytest.mark.parametrize("by_reference", [False, True], ids=["by_id", "by_reference"])
@pytest.mark.parametrize(("change", "ends"), SHELF_CHANGES.values(), ids=SHELF_CHANGES)
def test_codes_are_sold_as_the_shelf_is_when_it_is_free(
    change: str, ends: tuple[str, Decimal | None], by_reference: bool, guarded: bool
) -> None:
    merchant = make_merchant()
    product = make_product(price="9.99", codes=3, category=make_category())
    shelf = own_shelf(product)
    assert merchant.client.account
    link(merchant.client.account, "mine", shelf)
    name: dict[str, Any] = (
        {"merchant_reference": "mine"} if by_reference else {"product_id": product.pk}
    )
    guard = nullcontext() if guarded else unlocked_shelves()

    with guard:
        ended = change_while_it_waits(
            partial(of_own(merchant).buy, quantity=1, **name),
            "SELECT FROM catalogue_shelf WHERE id = %s FOR UPDATE",
            shelf.pk,
            change,
        )

    assert ended == (ends if guarded else BOUGHT_BEFORE)
    assert_books_balance()


@pytest.mark.parametrize("guarded", [GUARDED, CONTROL])
@pytest.mark.parametrize(("change", "ends"), PACKAGE_CHANGES.values(), ids=PACKAGE_CHANGES)
def test_a_counted_package_is_sold_as_it_is_when_it_is_free(
    change: str, ends: tuple[str, Decimal | None], guarded: bool
) -> None:
    merchant = make_merchant()
    package = make_topup_product(price="9.99", available_stock=3, category=make_category())
    guard = nullcontext() if guarded else without("topups/sql/offer.sql", PACKAGE_LOCK)

    with guard:
        ended = change_while_it_waits(
            partial(
                of_own(merchant).buy,
                delivery_type="top_up",
                system_product_id=package.pk,
                player_id="0012345",
            ),
            "SELECT FROM topups_topupproduct WHERE id = %s FOR UPDATE",
            package.pk,
            change,
        )

    assert ended == (ends if guarded else BOUGHT_BEFORE)
    assert_books_balance()


def test_packages_that_are_not_counted_do_not_wait_for_each_other() -> None:
    merchant, package = make_merchant(), make_topup_product(price="9.99")

    with held("SELECT FROM topups_topupproduct WHERE id = %s FOR NO KEY UPDATE", package.pk):
        answer = merchant.buy(
            delivery_type="top_up", system_product_id=package.pk, player_id="0012345"
        )

    assert outcome(answer) == "bought"


def change_while_it_waits(
    buy: Callable[[], Any], hold: str, row: int, change: str
) -> tuple[str, Decimal | None]:
    """How a purchase ends that waits for a row while something else is committed, and its price."""
    with held(hold, row) as editor, in_background(buy) as buying:
        wait_for_waiting()
        editor.execute(change.encode())
        editor.commit()
    answer = buying.result()
    ended = outcome(answer)
    price = answer.json()["data"]["unit_price"] if ended == "bought" else None
    return ended, None if price is None else Decimal(str(price))
