"""The cost of a shelf is that of codes that can be sold: in stock or held, and not expired."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Q
from django.utils import timezone

from catalogue.models import Batch, CodeHold, Shelf
from catalogue.stock.holds import hold_codes, release_hold, void_hold
from figures.price_lines import stock_costs
from tests.factories import Merchant, add_codes, make_batch, make_product, own_shelf

pytestmark = pytest.mark.django_db


def _shelf() -> Shelf:
    return own_shelf(make_product(price="10.00"))


def _batch(shelf: Shelf, cost: str, number: int = 2, **more: Any) -> Batch:
    batch = make_batch(shelf, number, **more)
    Batch.objects.filter(pk=batch.pk).update(unit_cost=Decimal(cost), cost_currency="USD")
    return batch


def _hold(codes: Q) -> CodeHold:
    hold, _number = hold_codes(codes=codes, reason="recalled", held_by="test")
    assert hold is not None
    return hold


def _void(batch: Batch) -> None:
    void_hold(_hold(batch.its_codes).pk)


def _costs(*shelves: Shelf) -> list[Decimal | None]:
    costs = stock_costs([("shelf", shelf.pk) for shelf in shelves])
    return [costs.get(("shelf", shelf.pk)) for shelf in shelves]


def test_void_codes_have_no_cost_beside_codes_in_stock() -> None:
    shelf = _shelf()
    dear, _cheap = _batch(shelf, "9.00"), _batch(shelf, "8.00")
    assert _costs(shelf) == [9]

    _void(dear)

    assert _costs(shelf) == [8]


def test_void_codes_have_no_cost_while_others_are_held() -> None:
    shelf = _shelf()
    dear, held, _cheap = _batch(shelf, "9.00"), _batch(shelf, "8.00"), _batch(shelf, "7.00")
    _void(dear)

    hold = _hold(held.its_codes)
    assert _costs(shelf) == [8]

    void_hold(hold.pk)
    assert _costs(shelf) == [7]


def test_a_batch_with_one_code_left_has_its_cost() -> None:
    shelf = _shelf()
    batch = _batch(shelf, "9.00", 3)
    void_hold(_hold(batch.its_codes & ~Q(pk=batch.last_code)).pk)
    assert _costs(shelf) == [9]
    hold = _hold(batch.its_codes)
    assert _costs(shelf) == [9]
    void_hold(hold.pk)
    assert _costs(shelf) == [None]


def test_sold_codes_have_no_cost(merchant: Merchant) -> None:
    shelf = _shelf()
    _batch(shelf, "9.00"), _batch(shelf, "8.00")
    for _sale in range(2):
        merchant.buy(product_id=shelf.product_id, quantity=1)
    assert _costs(shelf) == [8]


def test_expired_codes_have_no_cost_in_stock_or_held() -> None:
    shelf, yesterday = _shelf(), timezone.now().date() - timedelta(days=1)
    expired = _batch(shelf, "9.00", expires_on=yesterday)
    _batch(shelf, "8.00", expires_on=yesterday + timedelta(days=1))
    assert _costs(shelf) == [8]
    _hold(expired.its_codes)
    assert _costs(shelf) == [8]


def test_released_codes_have_their_cost_at_once() -> None:
    shelf = _shelf()
    dear, _cheap = _batch(shelf, "9.00"), _batch(shelf, "8.00")
    hold = _hold(dear.its_codes)

    release_hold(hold.pk)

    assert _costs(shelf) == [9]


def test_one_hold_has_codes_of_many_batches_and_shelves() -> None:
    shelves = [_shelf() for _ in range(3)]
    batches = [_batch(shelf, f"{n}.50") for n in range(3) for shelf in shelves]
    _hold(Q())
    assert _costs(*shelves) == [Decimal("2.50")] * 3
    void_hold(_hold_of(batches[-1]).pk)
    assert _costs(*shelves) == [Decimal("2.50"), Decimal("2.50"), Decimal("1.50")]


def _hold_of(batch: Batch) -> CodeHold:
    """A hold of its own for the held codes of a batch."""
    hold, _number = hold_codes(
        codes=Q(pk__in=()), held_codes=batch.its_codes, reason="recalled", held_by="test"
    )
    assert hold is not None
    return hold


def test_codes_without_a_batch_hide_no_cost() -> None:
    shelf = _shelf()
    add_codes(shelf, 2)
    _batch(shelf, "7.00")
    add_codes(shelf, 2)
    _batch(shelf, "9.00")
    assert _costs(shelf) == [9]
    _hold(Q(shelf=shelf))
    assert _costs(shelf) == [9]
