"""A next price begins at its time by itself, for reads and purchases, and is in the history."""

import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from catalogue.models import PRICE_LIMIT, Shelf
from catalogue.prices import set_prices
from core.inputs import InputProblem
from tests.contract.situations import data
from tests.factories import Merchant, make_merchant, make_product, make_topup_product, own_shelf
from tests.operators.back_office import make_staff
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db

OLD, NEW, OTHER = Decimal("10.00"), Decimal("12.00"), Decimal("15.00")
LATER = timedelta(hours=1)


def _shelf() -> Shelf:
    return own_shelf(make_product(price="10.00", codes=5))


def _topup() -> TopUpProduct:
    return make_topup_product(price="10.00")


def _plan(row: Any, after: timedelta = timedelta(0)) -> None:
    type(row).objects.filter(pk=row.pk).update(
        next_price=NEW, next_price_from=timezone.now() + after
    )


def _price(merchant: Merchant, row: Any) -> Any:
    """The price of list and purchase, which are the same."""
    if isinstance(row, Shelf):
        shown = data(merchant.get(f"/products/{row.product_id}"))["price"]
        bought = merchant.buy(product_id=row.product_id, quantity=1)
    else:
        shown = data(merchant.get(f"/topup-products/{row.pk}"))["price"]
        bought = merchant.buy(delivery_type="top_up", system_product_id=row.pk, player_id="1")
    assert data(bought)["unit_price"] == shown == type(row).objects.get(pk=row.pk).price
    return shown


both = pytest.mark.parametrize("make", [_shelf, _topup])


@both
def test_a_next_price_holds_from_its_time(make: Callable[[], Any]) -> None:
    merchant, row = make_merchant(), make()
    _plan(row, timedelta(seconds=3))
    begins = time.monotonic() + 3
    assert _price(merchant, row) == OLD
    time.sleep(begins + 0.1 - time.monotonic())
    assert _price(merchant, row) == NEW


@both
def test_a_price_set_after_the_next_has_begun_replaces_it(make: Callable[[], Any]) -> None:
    merchant, row = make_merchant(), make()
    for price in (OTHER, OLD):  # OLD is still in the column
        _plan(row)
        type(row).objects.filter(pk=row.pk).update(price=price)
        assert _price(merchant, row) == price


@both
def test_planning_again_keeps_the_price_that_has_begun(make: Callable[[], Any]) -> None:
    merchant, row = make_merchant(), make()
    _plan(row)
    type(row).objects.filter(pk=row.pk).update(
        next_price=OTHER, next_price_from=timezone.now() + LATER
    )
    assert _price(merchant, row) == NEW


@both
def test_saving_a_row_keeps_the_price_that_has_begun(make: Callable[[], Any]) -> None:
    merchant, row = make_merchant(), make()
    _plan(row)
    type(row).objects.get(pk=row.pk).save()
    assert _price(merchant, row) == NEW
    assert row.price_changes.latest("pk").after == NEW


@both
def test_the_history_names_the_start_of_a_next_price(make: Callable[[], Any]) -> None:
    row = make()
    before = row.price_changes.count()
    _plan(row, LATER)
    type(row).objects.filter(pk=row.pk).update(next_price=None, next_price_from=None)
    planned, withdrawn = row.price_changes.order_by("pk")[before:]
    assert (planned.before, planned.after) == (OLD, NEW)
    assert (withdrawn.before, withdrawn.after) == (NEW, OLD)
    assert planned.starts_at == withdrawn.starts_at > timezone.now()
    prices = AuditEntry.objects.filter(action=AuditAction.PRICE_CHANGED)
    assert prices.count() >= 2


@both
def test_a_form_sets_the_price_before_the_one_that_has_begun(make: Callable[[], Any]) -> None:
    merchant, row = make_merchant(), make()
    _plan(row)
    loaded = type(row).objects.get(pk=row.pk)
    loaded.price = OLD
    loaded.save()
    assert _price(merchant, row) == OLD


@both
@pytest.mark.parametrize("price", [OTHER, OLD])  # OLD is still in the column
def test_staff_replace_a_price_that_has_begun(make: Callable[[], Any], price: Decimal) -> None:
    merchant, row, staff = make_merchant(), make(), make_staff(superuser=True)
    _plan(row)
    rows = type(row).objects.all()
    assert set_prices(rows=rows, prices={row.pk: (NEW, price)}, actor=staff) == 1
    assert _price(merchant, row) == price
    begun, replaced = row.price_changes.order_by("-pk")[:2][::-1]
    assert (begun.before, begun.after, begun.changed_by) == (OLD, NEW, "next price")
    assert (replaced.before, replaced.after) == (NEW, price)


def test_prices_of_many_shelves_change_together() -> None:
    staff, shelves = make_staff(superuser=True), [_shelf(), _shelf()]
    prices = {shelf.pk: (OLD, OTHER) for shelf in shelves}

    assert set_prices(rows=Shelf.objects.all(), prices=prices, actor=staff) == 2
    assert [Shelf.objects.get(pk=one.pk).price for one in shelves] == [OTHER, OTHER]
    assert {one.price_changes.latest("pk").changed_by for one in shelves} == {
        f"admin:{staff.get_username()}"
    }
    entries = AuditEntry.objects.filter(action=AuditAction.PRICE_CHANGED, actor=staff)
    assert entries.count() == 2
    with pytest.raises(InputProblem, match="has changed meanwhile"):
        set_prices(rows=Shelf.objects.all(), prices=prices, actor=staff)


def test_planned_prices_of_many_shelves_begin_together() -> None:
    staff, shelf = make_staff(superuser=True), _shelf()
    begins = timezone.now() + LATER
    assert (
        set_prices(
            rows=Shelf.objects.all(), prices={shelf.pk: (OLD, NEW)}, actor=staff, starts_at=begins
        )
        == 1
    )
    found = Shelf.objects.get(pk=shelf.pk)
    assert (found.price, found.next_price, found.next_price_from) == (OLD, NEW, begins)
    assert (
        set_prices(rows=Shelf.objects.all(), prices={shelf.pk: (OLD, OLD)}, actor=staff) == 1
    )  # withdraws it
    assert Shelf.objects.get(pk=shelf.pk).next_price_from is None
    with pytest.raises(InputProblem, match="past"):
        set_prices(
            rows=Shelf.objects.all(),
            prices={shelf.pk: (OLD, NEW)},
            actor=staff,
            starts_at=timezone.now() - LATER,
        )
    with pytest.raises(InputProblem, match="needs a price"):
        set_prices(
            rows=Shelf.objects.all(), prices={shelf.pk: (OLD, None)}, actor=staff, starts_at=begins
        )


@pytest.mark.parametrize("price", [Decimal(0), Decimal(-1), Decimal(PRICE_LIMIT)])
def test_a_price_beyond_the_limits_is_refused(price: Decimal) -> None:
    shelf = _shelf()
    with pytest.raises(InputProblem, match="above 0 and below"):
        set_prices(
            rows=Shelf.objects.all(),
            prices={shelf.pk: (OLD, price)},
            actor=make_staff(superuser=True),
        )
    assert Shelf.objects.get(pk=shelf.pk).price == OLD
