"""Whoever changes a price, and by whatever way, the change is kept."""

from decimal import Decimal

import pytest

from catalogue.models import Shelf
from tests.factories import make_product, make_topup_product, own_shelf
from tests.operators.desk import signed_in, url
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db


def test_a_shelf_remembers_its_prices_and_shows_them() -> None:
    shelf = own_shelf(make_product(price="9.99"))
    before = shelf.price_changes.count()
    Shelf.objects.filter(pk=shelf.pk).update(price=Decimal("8.50"))
    Shelf.objects.filter(pk=shelf.pk).update(price=None)
    Shelf.objects.filter(pk=shelf.pk).update(price=None, quantity_step=2)

    changes = list(shelf.price_changes.order_by("pk").values_list("before", "after"))[before:]
    assert changes == [(Decimal("9.99"), Decimal("8.50")), (Decimal("8.50"), None)]
    assert "8.50" in signed_in().get(url(shelf)).content.decode()


def test_a_package_remembers_its_prices_and_shows_them() -> None:
    product = make_topup_product(price="4.99")
    TopUpProduct.objects.update(price=Decimal("3.21"))

    (change,) = product.price_changes.all()
    assert (change.before, change.after) == (Decimal("4.99"), Decimal("3.21"))
    assert "3.21" in signed_in().get(url(product)).content.decode()
