"""The database function that takes codes refuses what a purchase must not hand over."""

import pytest
from django.db import ProgrammingError, connection, transaction
from django.db.models import Q

from catalogue.models import Shelf, VoucherCode
from catalogue.stock.holds import hold_codes
from orders.models import Order
from tests.factories import make_merchant, make_product, own_shelf

pytestmark = pytest.mark.django_db


@pytest.fixture
def order() -> Order:
    """The order for which codes are taken."""
    product = make_product(codes=1)
    answer = make_merchant().buy(product_id=product.pk, quantity=1)
    return Order.objects.get(reference=answer.json()["data"]["reference"])


def take(shelf: Shelf, quantity: int, order: Order, *, keys: bytes | None) -> list[bytes]:
    """Takes codes as a process with these encryption keys does; returns them sealed."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT sealed_codes FROM catalogue_take_codes(%s, %s, %s, %s)",
            [shelf.pk, quantity, order.pk, keys],
        )
        (codes,) = cursor.fetchone()
        return [bytes(code) for code in codes]


def key_of(shelf: Shelf) -> int:
    """The id of the key that sealed the codes of the shelf."""
    return bytes(VoucherCode.objects.filter(shelf=shelf)[0].sealed)[0]


def test_codes_are_taken_with_the_key_that_sealed_them(order: Order) -> None:
    shelf = own_shelf(make_product(codes=3))

    assert len(take(shelf, 2, order, keys=bytes([255, key_of(shelf)]))) == 2


def test_held_codes_are_left_out(order: Order) -> None:
    shelf = own_shelf(make_product(codes=3))
    first, *others = VoucherCode.objects.filter(shelf=shelf).order_by("position")
    hold_codes(codes=Q(digest__in=[bytes(first.digest)]), reason="test", held_by="shell:anna")

    taken = take(shelf, 2, order, keys=bytes([key_of(shelf)]))

    assert taken == [bytes(code.sealed) for code in others]


@pytest.mark.parametrize("keys", [b"", b"\xff", None], ids=["no key", "another key", "null"])
def test_codes_that_the_caller_cannot_open_are_not_taken(order: Order, keys: bytes | None) -> None:
    shelf = own_shelf(make_product(codes=3))

    with pytest.raises(ProgrammingError, match="a key that this process does not have"):
        take(shelf, 2, order, keys=keys)

    assert VoucherCode.objects.filter(shelf=shelf, order_id=None).count() == 3


def test_a_shelf_that_counts_too_many_codes_hands_out_none(order: Order) -> None:
    shelf = own_shelf(make_product(codes=3))
    Shelf.objects.filter(pk=shelf.pk).update(available_stock=4)

    with pytest.raises(ProgrammingError, match="counts more codes than it holds"):
        take(shelf, 4, order, keys=bytes([key_of(shelf)]))

    assert VoucherCode.objects.filter(shelf=shelf, order_id=None).count() == 3
