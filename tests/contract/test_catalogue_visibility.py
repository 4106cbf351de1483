"""Contract, "Catalogue visibility rules": switched-off products and variations are left out."""

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


def assert_hidden(hide: Callable[[Shop], int]) -> None:
    shop = make_shop()
    product = hide(shop)
    assert product not in [item["id"] for item in data(shop.merchant.get("/products"))["items"]]
    assert refusal(shop.merchant.get(f"/products/{product}"))[:2] == (404, "product_not_found")


def assert_variation_omitted(hide: Callable[[Shop], int]) -> None:
    shop = make_shop()
    make_variation(shop.product, codes=1)
    product = hide(shop)
    assert data(shop.merchant.get("/products"))["items"][0]["variations"] == []
    assert data(shop.merchant.get(f"/products/{product}"))["variations"] == []


@table(
    VISIBILITY,
    {
        "product off": lambda: assert_hidden(_product_off),
        "category off": lambda: assert_hidden(_category_off),
        "product missing": lambda: assert_hidden(_missing),
        "variation off": lambda: assert_variation_omitted(_variation_off),
    },
)
def test_each_visibility_rule(case: Callable[[], None]) -> None:
    case()


def test_a_product_is_visible_again_after_its_category() -> None:
    shop = make_shop()
    _category_off(shop)
    Category.objects.update(active=True)
    assert data(shop.merchant.get(f"/products/{shop.product.pk}"))["id"] == shop.product.pk


@pytest.mark.parametrize("product", ["0", "9223372036854775807", "9223372036854775808", "9" * 4000])
def test_an_impossible_id_is_not_found(product: str) -> None:
    answer = make_shop().merchant.get(f"/products/{product}")
    assert refusal(answer)[:2] == (404, "product_not_found")
