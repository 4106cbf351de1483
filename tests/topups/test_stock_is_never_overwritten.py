"""Editing a top-up product while it sells never undoes a purchase's change of the stock."""

import pytest

from tests.factories import Merchant, buy_topup, make_topup_product
from tests.neighbour import ours
from topups.models import TopUpProduct
from topups.topup_product_import import save_topup_products

pytestmark = pytest.mark.django_db


def test_saving_a_stale_product_keeps_the_stock(merchant: Merchant) -> None:
    product = make_topup_product(available_stock=5)
    buy_topup(merchant, product)

    product.name = "Another name"
    product.save()

    assert ours(TopUpProduct).get().available_stock == 4
    assert ours(TopUpProduct).get().name == "Another name"


def test_set_stock_sets_the_stock(merchant: Merchant) -> None:
    product = make_topup_product(available_stock=5)

    product.set_stock(None)

    assert ours(TopUpProduct).get().available_stock is None


def test_import_sets_the_stock_only_if_the_file_has_it(merchant: Merchant) -> None:
    product = make_topup_product(available_stock=5)
    row = {"id": product.pk, "name": "New", "currency": "USD", "price": product.price}

    save_topup_products(products=[row])
    assert ours(TopUpProduct).get().available_stock == 5

    save_topup_products(products=[{**row, "available_stock": 9}])
    assert ours(TopUpProduct).get().available_stock == 9
