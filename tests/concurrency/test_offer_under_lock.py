"""A purchase uses the price and state current when it acquires the lock of its shelf."""

from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from functools import partial
from itertools import chain, count
from threading import Event
from typing import Any

import psycopg
import pytest

from accounts.models import Account
from catalogue.models import PriceList, PriceListEntry
from orders.models import Order
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    holding_locks,
    in_background,
    outcome,
    race,
    unlocked_shelves,
    wait_for_waiting,
    weakened_sql,
    with_own_http,
)
from tests.factories import (
    Merchant,
    buy_topup,
    link,
    make_category,
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.live import owner_url
from wallets.models import EntryKind, LedgerEntry

pytestmark = pytest.mark.django_db(transaction=True)

GUARDED, CONTROL = pytest.param(True, id="guarded"), pytest.param(False, id="control")
BOUGHT_BEFORE = ("bought", Decimal("9.99"))

# Without this lock, the offer of a top-up product is read before the purchase waits.
TOP_UP_LOCK = ("FOR NO KEY UPDATE", "")

# A change while a purchase waits for the lock, and the outcome of the purchase.
SHELF_CHANGES = {
    "price": ("UPDATE catalogue_shelf SET price = 12.50", ("bought", Decimal("12.50"))),
    "no price": ("UPDATE catalogue_shelf SET price = NULL", ("price_unavailable", None)),
    "step": ("UPDATE catalogue_shelf SET quantity_step = 2", ("quantity_step", None)),
    "product": ("UPDATE catalogue_product SET active = false", ("product_inactive", None)),
    "category": ("UPDATE catalogue_category SET active = false", ("product_inactive", None)),
}
TOP_UP_CHANGES = {
    "price": ("UPDATE topups_topupproduct SET price = 12.50", ("bought", Decimal("12.50"))),
    "product": ("UPDATE topups_topupproduct SET active = false", ("product_inactive", None)),
    "publication": ("UPDATE topups_topupproduct SET published = false", ("product_inactive", None)),
    "category": ("UPDATE catalogue_category SET active = false", ("product_inactive", None)),
}


@pytest.mark.parametrize("guarded", [GUARDED, CONTROL])
@pytest.mark.parametrize("named_by", ["id", "variation", "reference"])
@pytest.mark.parametrize(("change", "ends"), SHELF_CHANGES.values(), ids=SHELF_CHANGES)
def test_a_voucher_purchase_uses_the_state_under_the_shelf_lock(
    change: str, ends: tuple[str, Decimal | None], named_by: str, guarded: bool
) -> None:
    merchant = make_merchant()
    product = make_product(price="9.99", codes=3, category=make_category())
    shelf = own_shelf(product)
    name: dict[str, Any] = {"product_id": product.pk}
    if named_by == "variation":
        shelf = make_variation(product, price="9.99", codes=3).shelf
        name["variation_id"] = shelf.variation_id
    if named_by == "reference":
        link(merchant.account, "mine", shelf)
        name = {"merchant_reference": "mine"}
    guard = nullcontext() if guarded else unlocked_shelves()

    with guard:
        ended = change_during_the_wait(
            partial(with_own_http(merchant).buy, quantity=1, **name),
            "SELECT FROM catalogue_shelf WHERE id = %s FOR UPDATE",
            shelf.pk,
            change,
        )

    assert ended == (ends if guarded else BOUGHT_BEFORE)
    assert_books_balance()


@pytest.mark.parametrize("guarded", [GUARDED, CONTROL])
@pytest.mark.parametrize(("change", "ends"), TOP_UP_CHANGES.values(), ids=TOP_UP_CHANGES)
def test_a_top_up_purchase_uses_the_state_under_the_product_lock(
    change: str, ends: tuple[str, Decimal | None], guarded: bool
) -> None:
    merchant = make_merchant()
    product = make_topup_product(price="9.99", available_stock=3, category=make_category())
    guard = nullcontext() if guarded else weakened_sql("topups/sql/offer.sql", TOP_UP_LOCK)

    with guard:
        ended = change_during_the_wait(
            partial(
                with_own_http(merchant).buy,
                delivery_type="top_up",
                system_product_id=product.pk,
                player_id="0012345",
            ),
            "SELECT FROM topups_topupproduct WHERE id = %s FOR UPDATE",
            product.pk,
            change,
        )

    assert ended == (ends if guarded else BOUGHT_BEFORE)
    assert_books_balance()


# A change of a merchant's own price while its purchase waits for the lock.
LIST_CHANGES = {
    "entry": "INSERT INTO catalogue_pricelistentry (price_list_id, for_sale, price, added_by,"
    " ended_by, {target}) SELECT id, true, 12.50, 'test', '', {row} FROM catalogue_pricelist",
    "end of an entry": "UPDATE catalogue_pricelistentry SET valid_until = clock_timestamp()",
    "assignment": "UPDATE accounts_account SET price_list_id = NULL WHERE id = {account}",
}


@pytest.mark.parametrize("guarded", [GUARDED, CONTROL])
@pytest.mark.parametrize("kind", ["shelf", "top-up"])
@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_purchase_uses_the_price_list_under_the_lock(
    change: str, kind: str, guarded: bool
) -> None:
    merchant, of_shelf = make_merchant(), kind == "shelf"
    sold: Any = own_shelf(make_product(price="12.50", codes=3)) if of_shelf else None
    sold = sold or make_topup_product(price="12.50", available_stock=3)
    prices = PriceList.objects.create(name="Gold", currency="USD")
    Account.objects.filter(pk=merchant.account.pk).update(price_list_id=prices.pk)
    target = {"shelf_id" if of_shelf else "topup_product_id": sold.pk}
    category = make_category()
    type(sold.product if of_shelf else sold).objects.update(category=category)
    PriceListEntry.objects.create(
        price_list=prices, category=category, price=Decimal("9.99"), added_by="test"
    )
    if of_shelf:
        body = {"product_id": sold.product_id, "quantity": 1}
        guard = unlocked_shelves()
    else:
        body = {
            "delivery_type": "top_up", "system_product_id": sold.pk, "player_id": "0012345",
        }  # fmt: skip
        guard = weakened_sql("topups/sql/offer.sql", TOP_UP_LOCK)
    (column,) = target

    with nullcontext() if guarded else guard:
        ended = change_during_the_wait(
            partial(with_own_http(merchant).buy, **body),
            f"SELECT FROM {sold._meta.db_table} WHERE id = %s FOR UPDATE",
            sold.pk,
            LIST_CHANGES[change].format(target=column, row=sold.pk, account=merchant.account.pk),
        )

    assert ended == (("bought", Decimal("12.50")) if guarded else BOUGHT_BEFORE)
    assert_books_balance()


@pytest.mark.parametrize("guarded", [GUARDED, CONTROL])
def test_each_sale_among_price_changes_has_the_price_of_its_moment(guarded: bool) -> None:
    """Who changes the price holds the shelf, so all earlier sales are committed then, and no later
    one has begun: the number of orders at each change says which price each order must have."""
    product, ended = make_product(price="10.00", codes=300), Event()
    shelf, merchants = own_shelf(product), [make_merchant(balance="9999") for _ in range(3)]
    changes = [(0, Decimal("10.00"))]

    def change_prices() -> None:
        prices = (Decimal("10.01") + Decimal(n) / 100 for n in count())
        with psycopg.connect(owner_url()) as editor:
            while not ended.is_set():
                price = next(prices)
                editor.execute(
                    "UPDATE catalogue_shelf SET price = %s WHERE id = %s", [price, shelf.pk]
                )
                found = editor.execute(
                    "SELECT count(*) FROM orders_order WHERE shelf_id = %s", [shelf.pk]
                ).fetchone()
                editor.commit()
                changes.append((found[0] if found else 0, price))

    def buy(merchant: Merchant) -> tuple[str, Decimal]:
        order = merchant.buy(product_id=product.pk, quantity=1).json()["data"]
        return order["reference"], Decimal(str(order["total_price"]))

    def buy_many(merchant: Merchant) -> list[tuple[str, Decimal]]:
        return [buy(merchant) for _ in range(60)]

    def buy_during_a_change(merchant: Merchant) -> list[tuple[str, Decimal]]:
        """One sale waits for the shelf while its price changes."""
        lock = "SELECT FROM catalogue_shelf WHERE id = %s FOR UPDATE"
        with holding_locks(lock, shelf.pk) as editor, in_background(partial(buy, merchant)) as sale:
            wait_for_waiting()
            editor.execute("UPDATE catalogue_shelf SET price = 9.99 WHERE id = %s", [shelf.pk])
            editor.commit()
        changes.append((0, Decimal("9.99")))
        return [sale.result()]

    with nullcontext() if guarded else unlocked_shelves():
        first = buy_during_a_change(with_own_http(merchants[0]))
        with in_background(change_prices):
            try:
                buyers = [partial(buy_many, with_own_http(merchant)) for merchant in merchants]
                shown = dict([*first, *chain.from_iterable(race(buyers))])
            finally:
                ended.set()

    orders = list(Order.objects.filter(shelf=shelf).order_by("pk"))
    debits = dict(
        LedgerEntry.objects.filter(kind=EntryKind.PURCHASE, order_reference__in=shown).values_list(
            "order_reference", "amount"
        )
    )
    wrong = [
        order.reference
        for place, order in enumerate(orders)
        if order.total_price != next(price for before, price in changes[::-1] if before <= place)
    ]
    assert len(orders) == 181
    assert len({order.total_price for order in orders}) > 10  # the prices did change meanwhile
    for order in orders:
        assert shown[order.reference] == order.total_price == -debits[order.reference]
    assert bool(wrong) is not guarded
    assert_books_balance()


def test_top_ups_without_a_stock_count_do_not_wait() -> None:
    merchant, product = make_merchant(), make_topup_product(price="9.99")

    with holding_locks(
        "SELECT FROM topups_topupproduct WHERE id = %s FOR NO KEY UPDATE", product.pk
    ):
        answer = merchant.buy(
            delivery_type="top_up", system_product_id=product.pk, player_id="0012345"
        )

    assert outcome(answer) == "bought"


def change_during_the_wait(
    buy: Callable[[], Any], hold: str, row: int, change: str
) -> tuple[str, Decimal | None]:
    """Outcome and price of a purchase that waits for a row while a change of it is committed."""
    with holding_locks(hold, row) as editor, in_background(buy) as buying:
        wait_for_waiting()
        editor.execute(change.encode())
        editor.commit()
    answer = buying.result()
    ended = outcome(answer)
    price = answer.json()["data"]["unit_price"] if ended == "bought" else None
    return ended, None if price is None else Decimal(str(price))


def test_a_top_up_does_not_wait_for_another_product() -> None:
    merchant = make_merchant()
    product, other = (make_topup_product(available_stock=5) for _ in range(2))

    with holding_locks("SELECT FROM topups_topupproduct WHERE id = %s FOR UPDATE", other.pk):
        assert buy_topup(merchant, product)
