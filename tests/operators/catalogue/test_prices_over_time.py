"""What one person does in several steps, or for later, is no way around the limit of low prices."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Account
from catalogue.models import Batch, Category, PriceList, Product, Shelf
from catalogue.price_lists import Target, Terms
from catalogue.prices import set_prices
from operators.catalogue.price_list_changes import ListChoice, NewEntries
from operators.imports.low_prices import LowPrices, two_people_set_low_prices
from tests.factories import (
    Merchant,
    make_batch,
    make_merchant,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.operators.back_office import make_staff
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db

LOW = "0.01"
HAPPENED = {
    "catalogue_shelfpricechange": ("changed_at", "starts_at"),
    "catalogue_pricelistentry": ("valid_from", "valid_until"),
    "figures_agreedfall": ("since",),
    "figures_earlierlist": ("until",),
    "figures_earlierterms": ("until",),
}
Attack = Callable[["Shop"], None]


@pytest.fixture
def merchant() -> Merchant:
    return make_merchant()


class Shop:
    """A product at 2.50 without codes, a merchant with a price list, and a stock keeper."""

    def __init__(self, merchant: Merchant) -> None:
        self.account = Account.objects.get(clients=merchant.client)
        self.product = make_product(price="2.50")
        self.row = self.list("Gold")
        Account.objects.filter(pk=self.account.pk).update(price_list_id=self.row.pk)
        self.person = make_staff()

    @property
    def shelf(self) -> Shelf:
        return own_shelf(Product.objects.get(pk=self.product.pk))

    def list(self, name: str) -> PriceList:
        return PriceList.objects.create(name=name, currency="USD")

    def regular(
        self, price: str | None, starts_at: datetime | None = None, row: Any = None
    ) -> None:
        row = row or self.shelf
        rows = type(row).objects.filter(pk=row.pk)
        new = None if price is None else Decimal(price)
        with two_people_set_low_prices(rows, actor=self.person):
            prices = {row.pk: (row.price, new)}
            set_prices(rows=rows, prices=prices, starts_at=starts_at, actor=self.person)

    def step(self, step: int, price: str) -> None:
        rows = Shelf.objects.filter(pk=self.shelf.pk)
        with two_people_set_low_prices(rows, actor=self.person):
            rows.update(price=price, quantity_step=step)

    def move(self, **values: Any) -> None:
        rows = Shelf.objects.filter(product=self.product)
        with two_people_set_low_prices(rows, actor=self.person):
            Product.objects.filter(pk=self.product.pk).update(**values)

    def entry(
        self,
        target: Any,
        price: str | None = None,
        percent_off: int | None = None,
        days: tuple[int | None, int | None] = (None, None),
        row: PriceList | None = None,
    ) -> Any:
        about = {}
        if target is not None:
            name = {"topupproduct": "topup_product"}.get(target._meta.model_name)
            about[f"{name or target._meta.model_name}_id"] = target.pk
        begins, ends = (
            None if one is None else timezone.now() + timedelta(days=one) for one in days
        )
        terms = Terms(
            price=Decimal(price) if price else None,
            percent_off=Decimal(percent_off) if percent_off else None,
        )
        entries = [(Target(**about), terms)]
        (made,) = NewEntries(row or self.row, entries, (begins, ends), self.person).make()
        return made

    def choose(self, price_list: PriceList | None) -> None:
        self.account.refresh_from_db()
        ListChoice(self.account, price_list, self.person).make()

    def cost(self, cost: str) -> None:
        batch = make_batch(self.shelf)
        Batch.objects.filter(pk=batch.pk).update(unit_cost=cost, cost_currency="USD")


# --- Attacks. One person may do all but the last step. --------------------------------------------


def low_under_a_cover_that_expires(shop: Shop) -> None:
    shop.entry(shop.shelf, "2.40", days=(None, 1))
    shop.entry(shop.product, LOW)


def low_under_a_cover_that_begins_later(shop: Shop) -> None:
    shop.entry(shop.shelf, "2.40", days=(1, 2))
    shop.entry(shop.product, LOW, days=(1, None))


def a_planned_regular_price_below_a_list(shop: Shop) -> None:
    shop.entry(shop.product, percent_off=25)
    shop.regular("1.80", starts_at=timezone.now() + timedelta(days=1))


def a_list_on_a_planned_regular_price(shop: Shop) -> None:
    shop.regular("1.80", starts_at=timezone.now() + timedelta(days=1))
    shop.entry(None, percent_off=25)


def regular_price_then_list(shop: Shop) -> None:
    shop.regular("1.90")
    shop.entry(shop.product, percent_off=25)


def list_then_regular_price(shop: Shop) -> None:
    shop.entry(shop.product, percent_off=25)
    shop.regular("1.90")


def a_category_with_a_discount(shop: Shop) -> None:
    category = Category.objects.create(name="Sale")
    shop.entry(category, percent_off=99)
    shop.move(category=category)


def a_category_then_a_regular_price(shop: Shop) -> None:
    category = Category.objects.create(name="Sale")
    shop.entry(category, percent_off=25)
    shop.move(category=category)
    shop.regular("1.90")


def small_falls_of_a_dear_list(shop: Shop) -> None:
    shop.entry(shop.product, "4.00")
    shop.entry(shop.product, "3.00")
    shop.entry(shop.product, "2.60")


def several_choices(shop: Shop) -> None:
    shop.entry(shop.product, "4.00")
    second = shop.list("Silver")
    shop.entry(shop.product, "3.00", row=second)
    shop.choose(second)
    shop.choose(None)


def a_choice_then_an_entry(shop: Shop) -> None:
    shop.entry(shop.product, "4.00")
    second = shop.list("Silver")
    shop.entry(shop.product, "3.00", row=second)
    shop.choose(second)
    shop.entry(shop.product, "2.60", row=second)


def growing_steps(shop: Shop) -> None:
    shop.step(2, "5.02")
    shop.step(2, "3.60")
    shop.step(4, "7.30")
    shop.step(4, "5.20")


def a_larger_step_of_a_fixed_list_price(shop: Shop) -> None:
    shop.entry(shop.product, "2.40")
    shop.step(2, "5.02")


def a_larger_step_without_a_price(shop: Shop) -> None:
    shop.regular(None)
    _a_week_later()
    rows = Shelf.objects.filter(pk=shop.shelf.pk)
    with two_people_set_low_prices(rows, actor=shop.person):
        rows.update(quantity_step=2)
    shop.regular("2.40")


def another_currency_without_a_price(shop: Shop) -> None:
    shop.regular(None)
    shop.move(currency="JPY")


def below_cost_in_a_list(shop: Shop) -> None:
    shop.cost("2.00")
    shop.entry(None, percent_off=10)
    shop.regular("2.20")


def below_cost_in_an_old_list(shop: Shop) -> None:
    shop.cost("2.00")
    shop.entry(None, percent_off=10)
    _a_week_later()
    shop.regular("2.20")


def a_category_of_an_old_list(shop: Shop) -> None:
    category = Category.objects.create(name="Sale")
    shop.entry(category, percent_off=50)
    _a_week_later()
    shop.move(category=category)


def a_category_of_an_old_list_then_a_regular_price(shop: Shop) -> None:
    category = Category.objects.create(name="Sale")
    shop.entry(category, percent_off=25)
    _a_week_later()
    shop.move(category=category)
    shop.regular("1.90")


def a_larger_step_of_an_old_list(shop: Shop) -> None:
    shop.entry(shop.product, "2.40")
    _a_week_later()
    shop.step(2, "5.02")


def a_top_up_in_a_list(shop: Shop) -> None:
    topup = make_topup_product(price="10.00")
    shop.entry(topup, percent_off=25)
    shop.regular("7.50", row=TopUpProduct.objects.get(pk=topup.pk))


def a_top_up_in_a_category(shop: Shop) -> None:
    topup = make_topup_product(price="10.00")
    category = Category.objects.create(name="Sale")
    shop.entry(category, percent_off=50)
    rows = TopUpProduct.objects.filter(pk=topup.pk)
    with two_people_set_low_prices(rows, actor=shop.person):
        rows.update(category=category)


ATTACKS: list[Attack] = [
    low_under_a_cover_that_expires,
    low_under_a_cover_that_begins_later,
    a_planned_regular_price_below_a_list,
    a_list_on_a_planned_regular_price,
    regular_price_then_list,
    list_then_regular_price,
    a_category_with_a_discount,
    a_category_then_a_regular_price,
    small_falls_of_a_dear_list,
    several_choices,
    a_choice_then_an_entry,
    growing_steps,
    a_larger_step_of_a_fixed_list_price,
    a_larger_step_without_a_price,
    another_currency_without_a_price,
    below_cost_in_a_list,
    below_cost_in_an_old_list,
    a_category_of_an_old_list,
    a_category_of_an_old_list_then_a_regular_price,
    a_larger_step_of_an_old_list,
    a_top_up_in_a_list,
    a_top_up_in_a_category,
]


def _line_of(error: BaseException, attack: Attack) -> int:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not attack.__code__:
        trace = trace.tb_next
    assert trace is not None
    return trace.tb_lineno


def _last_line(attack: Attack) -> int:
    return max(line for _start, _end, line in attack.__code__.co_lines() if line)


def test_no_row_of_steps_leads_one_person_to_a_low_price(merchant: Merchant) -> None:
    wrong = []
    for attack in ATTACKS:
        with transaction.atomic():
            try:
                attack(Shop(merchant))
            except LowPrices as refused:
                if _line_of(refused, attack) < _last_line(attack) - 1:
                    wrong.append(f"{attack.__name__}: refused too early, {refused}")
            else:
                wrong.append(f"{attack.__name__}: nobody else was asked")
            transaction.set_rollback(True)
    assert wrong == []


def test_prices_are_remembered_for_a_week(merchant: Merchant) -> None:
    shop = Shop(merchant)
    shop.regular("1.90")
    with pytest.raises(LowPrices):
        shop.regular("1.60")
    _a_week_later()
    shop.regular("1.60")


def test_an_agreement_starts_a_new_week(merchant: Merchant) -> None:
    shop = Shop(merchant)
    for person in (shop.person, make_staff()):
        shop.person = person
        with suppress(LowPrices):
            shop.regular("1.00")
    shop.regular("0.90")
    assert shop.shelf.price == Decimal("0.90")
    with pytest.raises(LowPrices):
        shop.regular("0.69")


def test_an_agreed_choice_of_a_list_starts_a_new_week(merchant: Merchant) -> None:
    shop = Shop(merchant)
    second = shop.list("Silver")
    shop.entry(shop.product, "4.00")
    shop.entry(shop.product, "2.60", row=second)
    for person in (shop.person, make_staff()):
        shop.person = person
        with suppress(LowPrices):
            shop.choose(second)
    shop.entry(shop.product, "2.50", row=second)
    assert second.entries.count() == 2


def test_a_smaller_step_and_equal_prices_of_codes_are_no_fall(merchant: Merchant) -> None:
    shop = Shop(merchant)
    shop.step(2, "5.20")
    shop.step(1, "2.60")
    shop.step(1, "2.00")
    assert shop.shelf.price == 2


def test_a_list_that_says_nothing_about_a_product_costs_nobody_a_second_person(
    merchant: Merchant,
) -> None:
    shop, other = Shop(merchant), make_product(price="10.00")
    shop.entry(other, "10.00")
    shop.regular("1.80")
    assert shop.shelf.price == Decimal("1.80")


def test_a_small_fall_under_an_agreed_discount_needs_one_person(merchant: Merchant) -> None:
    shop = Shop(merchant)
    for person in (shop.person, make_staff()):
        shop.person = person
        with suppress(LowPrices):
            shop.entry(shop.product, percent_off=50)
    shop.regular("2.40")
    assert shop.shelf.price == Decimal("2.40")


def _a_week_later() -> None:
    """Moves what happened a week into the past."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for table, columns in HAPPENED.items():
            moved = ", ".join(f"{one} = {one} - interval '7 days 1 second'" for one in columns)
            cursor.execute(f"UPDATE {table} SET {moved}")
        cursor.execute("SET session_replication_role = origin")
