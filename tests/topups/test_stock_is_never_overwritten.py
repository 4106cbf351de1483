"""Editing a package while it sells never brings sold packages back."""

import pytest

from tests.factories import Merchant, buy_topup, make_topup_product
from topups.models import TopUpProduct
from topups.topup_product_import import save_topup_products

pytestmark = pytest.mark.django_db


def test_saving_a_product_that_was_read_before_a_sale_keeps_the_sale(merchant: Merchant) -> None:
    product = make_topup_product(available_stock=5)
    buy_topup(merchant, product)

    product.name = "Another name"
    product.save()

    assert TopUpProduct.objects.get().available_stock == 4
    assert TopUpProduct.objects.get().name == "Another name"


def test_stock_is_set_on_purpose_only(merchant: Merchant) -> None:
    product = make_topup_product(available_stock=5)

    product.set_stock(None)

    assert TopUpProduct.objects.get().available_stock is None


def test_an_import_that_does_not_mention_stock_leaves_it_alone(merchant: Merchant) -> None:
    product = make_topup_product(available_stock=5)
    row = {"id": product.pk, "name": "New", "currency": "USD", "price": product.price}

    save_topup_products(products=[row])
    assert TopUpProduct.objects.get().available_stock == 5

    save_topup_products(products=[{**row, "available_stock": 9}])
    assert TopUpProduct.objects.get().available_stock == 9
