"""Reading the top-up catalogue as one merchant sees it (contract, "Top-up product")."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    BigIntegerField,
    BooleanField,
    CharField,
    DecimalField,
    Func,
    OuterRef,
    QuerySet,
    Value,
)
from django.db.models.functions import Now

from accounts.models import Account
from catalogue.selectors import (
    RegularPrice,
    buyer,
    newest_changes,
    price_times,
    since,
    with_name,
)
from core.api.errors import ApiError, ErrorCode
from core.api.pagination import Page
from core.api.serializer_fields import MAX_ID
from topups.models import TopUpField, TopUpPriceChange, TopUpProduct


def list_topup_products(
    *, account: Account | None, page: Page, search: str = ""
) -> tuple[list[dict[str, Any]], int]:
    """One page of the top-up products on sale and the total; a constant number of queries."""
    products = topup_products_on_sale()
    if search:
        products = with_name(products, search)
    rows = _with_prices(products.order_by("pk"), account)
    on_page = rows[page.offset : page.offset + page.per_page]
    return [_show(product) for product in on_page], products.count()


def get_topup_product(*, account: Account | None, product_id: int) -> dict[str, Any]:
    """One top-up product on sale. Raises `product_not_found`."""
    product = None
    if product_id <= MAX_ID:
        product = _with_prices(topup_products_on_sale(), account).filter(pk=product_id).first()
    if product is None:
        raise ApiError(ErrorCode.PRODUCT_NOT_FOUND)
    return _show(product)


def show_topup_products(
    products: Sequence[TopUpProduct], *, account: Account | None
) -> list[dict[str, Any]]:
    """Top-up products on sale, as the API shows them."""
    ids = [product.pk for product in products]
    rows = _with_prices(topup_products_on_sale(), account).filter(pk__in=ids).order_by("pk")
    return [_show(product) for product in rows]


def topup_price_times(price_list_id: int | None) -> dict[str, Any]:
    """`price_times` of top-up products."""
    return price_times(
        price_list_id,
        _Targets("pk", "category_id"),
        newest_changes(TopUpPriceChange.objects.all(), "product_id", OuterRef("pk")),
    )


def topup_prices_since(
    *, account: Account, products: Sequence[TopUpProduct]
) -> dict[int, datetime | None]:
    """The start of the account's price of each of these top-up products, by id."""
    rows = TopUpProduct.objects.filter(pk__in=[product.pk for product in products]).annotate(
        **topup_price_times(account.price_list_id)
    )
    return {row.pk: since(row) for row in rows}


class _Targets(Func):
    function = "topups_targets"
    arity = 2
    output_field = ArrayField(BigIntegerField())


class Obstacle(Func):
    """The reason for which each purchase of a top-up product by an account would be refused now;
    null if there is none.

    Its arguments are the product's id and currency, and the account's id.

    The rule is in topups/sql/obstacle.sql, where purchases use it too.
    """

    function = "topups_obstacle"
    arity = 3
    output_field = CharField()


class MerchantPrice(Func):
    """The price of a top-up product for one merchant; null if it cannot buy.

    Its arguments are the account's currency and price list, the ids of product and category, the
    product's `currency`, `price`, `next_price` and `next_price_from`, and a time.

    The rule is in topups/sql/price.sql, where purchases use it too.
    """

    function = "topups_price"
    arity = 9
    output_field = DecimalField()


class OnSale(Func):
    """Whether a top-up product is sold.

    Its arguments are the product's `active`, `published` and `external_provider`, and whether the
    category is active.

    The rule is in topups/sql/is_on_sale.sql, where purchases use it too.
    """

    function = "topups_is_on_sale"
    arity = 4
    output_field = BooleanField()


def topup_products_on_sale() -> QuerySet[TopUpProduct]:
    """The top-up products that merchants see (contract, "Catalogue visibility rules")."""
    return TopUpProduct.objects.filter(
        OnSale("active", "published", "external_provider", "category__active")
    ).select_related("category")


def _with_prices(
    products: QuerySet[TopUpProduct], account: Account | None
) -> QuerySet[TopUpProduct]:
    payer = Value(account.pk if account else None, BigIntegerField())
    obstacle = Obstacle("pk", "currency", payer)
    prices = ("price", "next_price", "next_price_from", Now())
    price = MerchantPrice(*buyer(account), *("pk", "category_id", "currency"), *prices)
    return products.annotate(
        obstacle=obstacle, own_price=price, regular_price=RegularPrice(*prices)
    ).prefetch_related("fields__options")


def _show(product: Any) -> dict[str, Any]:
    return {
        "id": product.pk,
        "name": product.name,
        "category": product.category.name if product.category else None,
        "delivery_type": "top_up",
        # A number, also for a merchant that cannot buy (docs/contract-decisions.md).
        "price": product.regular_price if product.own_price is None else product.own_price,
        "currency": product.currency,
        "available_stock": product.available_stock,
        "sellable": product.obstacle is None and product.own_price is not None,
        "quantity_step": 1,
        "max_quantity": 1,
        "fields": [_show_field(field) for field in product.fields.all()],
    }


def _show_field(field: TopUpField) -> dict[str, Any]:
    return {
        "id": field.number,
        "name": field.name,
        "label": field.label,
        "type": field.type,
        "required": field.required,
        "options": [
            {"value": option.value, "label": option.label} for option in field.options.all()
        ],
    }
