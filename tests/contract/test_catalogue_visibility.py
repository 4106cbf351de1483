"""Contract, "Catalogue visibility rules": what is switched off is omitted, never flagged."""

from collections.abc import Callable

import pytest

from catalogue.models import Category, Product, Variation
from tests.contract.rows import VISIBILITY, table
from tests.contract.situations import Shop, data, make_shop, refusal
from tests.factories import make_category, make_variation

pytestmark = pytest.mark.django_db(transaction=True)


def _category_off(shop: Shop) -> int:
    Product.objects.filter(pk=shop.product.pk).update(category=make_category(active=False))
    return shop.product.pk


def _product_off(shop: Shop) -> int:
    Product.objects.filter(pk=shop.product.pk).update(active=False)
    return shop.product.pk


def _missing(shop: Shop) -> int:
    return shop.product.pk + 1


def _variation_off(shop: Shop) -> int:
    Variation.objects.update(active=False)
    return shop.product.pk


def _hidden(hide: Callable[[Shop], int]) -> None:
    shop = make_shop()
    product = hide(shop)
    assert product not in [item["id"] for item in data(shop.merchant.get("/products"))["items"]]
    assert refusal(shop.merchant.get(f"/products/{product}"))[:2] == (404, "product_not_found")


def _omitted(hide: Callable[[Shop], int]) -> None:
    shop = make_shop()
    make_variation(shop.product, codes=1)
    product = hide(shop)
    assert data(shop.merchant.get("/products"))["items"][0]["variations"] == []
    assert data(shop.merchant.get(f"/products/{product}"))["variations"] == []


@table(
    VISIBILITY,
    {
        "product off": lambda: _hidden(_product_off),
        "category off": lambda: _hidden(_category_off),
        "product missing": lambda: _hidden(_missing),
        "variation off": lambda: _omitted(_variation_off),
    },
)
def test_each_rule(case: Callable[[], None]) -> None:
    case()


def test_switched_on_again_it_is_back() -> None:
    shop = make_shop()
    _category_off(shop)
    Category.objects.update(active=True)
    assert data(shop.merchant.get(f"/products/{shop.product.pk}"))["id"] == shop.product.pk


@pytest.mark.parametrize("product", ["0", "9223372036854775807", "9223372036854775808", "9" * 4000])
def test_an_id_that_nothing_can_have_is_not_found(product: str) -> None:
    answer = make_shop().merchant.get(f"/products/{product}")
    assert refusal(answer)[:2] == (404, "product_not_found")
