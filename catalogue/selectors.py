"""Reading the catalogue as one merchant sees it (contract, "Product")."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    BigIntegerField,
    BooleanField,
    Case,
    CharField,
    DateTimeField,
    DecimalField,
    Exists,
    F,
    Func,
    Model,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from accounts.models import Account
from catalogue.models import Product, ReferenceLink, Shelf, ShelfPriceChange
from core.api.errors import ApiError, ErrorCode
from core.api.pagination import Page
from core.api.serializer_fields import MAX_ID
from core.database.columns import NAME_LENGTH
from core.inputs import InputProblem

Named = TypeVar("Named", bound=Model)


def list_products(
    *, account: Account | None, page: Page, search: str = "", in_stock: bool = False
) -> tuple[list[dict[str, Any]], int]:
    """One page of the products on sale and the total; a constant number of queries."""
    products = products_on_sale()
    if search:
        products = with_name(products, search)
    if in_stock:
        shelves = _active_shelves().filter(product=OuterRef("pk"))
        products = products.filter(Exists(shelves.filter(available_stock__gt=0)))
    total = products.count()
    rows = list(products.order_by("pk")[page.offset : page.offset + page.per_page])
    return show_products(rows, account=account), total


def get_product(*, account: Account | None, product_id: int) -> dict[str, Any]:
    """One product on sale. Raises `product_not_found`."""
    product = products_on_sale().filter(pk=product_id).first() if product_id <= MAX_ID else None
    if product is None:
        raise ApiError(ErrorCode.PRODUCT_NOT_FOUND)
    return show_products([product], account=account)[0]


class OnSale(Func):
    """Whether a shelf is sold, from whether its product, category and variation are active.

    The rule is in catalogue/sql/is_on_sale.sql, where purchases use it too.
    """

    function = "catalogue_is_on_sale"
    arity = 3
    output_field = BooleanField()


class RegularPrice(Func):
    """The price of a row now, for merchants without prices of their own.

    Its arguments are the row's `price`, `next_price` and `next_price_from`, and a time.

    The rule is in catalogue/sql/regular_price.sql.
    """

    function = "catalogue_regular_price"
    arity = 4
    output_field = DecimalField()


class MerchantPrice(Func):
    """The price of a shelf for one merchant; null if it cannot buy.

    Its arguments are the account's currency and price list, the ids of shelf, product and category,
    the product's currency, the shelf's `price`, `next_price` and `next_price_from`, and a time.

    The rule is in catalogue/sql/price.sql, where purchases use it too.
    """

    function = "catalogue_price"
    arity = 10
    output_field = DecimalField()


def buyer(account: Account | None) -> tuple[Value, Value]:
    """The first two arguments of a merchant's price. Without an account it is the regular price."""
    return (
        Value(account.currency if account else None, CharField()),
        Value(account.price_list_id if account else None, BigIntegerField()),
    )


def products_on_sale() -> QuerySet[Product]:
    """The products that merchants see (contract, "Catalogue visibility rules")."""
    return Product.objects.filter(OnSale("active", "category__active", Value(None)))


def shelves_on_sale() -> QuerySet[Shelf]:
    """The shelves that merchants see: of products on sale, without inactive variations."""
    return Shelf.objects.filter(
        OnSale("product__active", "product__category__active", "variation__active")
    )


def _active_shelves() -> QuerySet[Shelf]:
    """Shelves whose variation is active, or that have none. Their products may not be on sale."""
    return Shelf.objects.filter(OnSale(Value(True), Value(True), "variation__active"))


def find_shelf(*, product_id: int, variation_id: int | None) -> Shelf:
    """The product's own shelf, or the shelf of its variation. Raises InputProblem."""
    shelf = Shelf.objects.filter(product=product_id, variation=variation_id).first()
    if shelf is None:
        template = _("There is no product %(product)s.")
        if variation_id is not None:
            template = _("There is no variation %(variation)s of product %(product)s.")
        raise InputProblem(template % {"product": product_id, "variation": variation_id})
    return shelf


def example_purchase() -> dict[str, int]:
    """The body of a purchase that could succeed now, from the first shelf with stock. If nothing is
    in stock, it names product 10, which may not exist."""
    shelf = (
        shelves_on_sale()
        .filter(available_stock__gte=F("quantity_step"), price__isnull=False)
        .order_by("pk")
        .first()
    )
    if shelf is None:
        return {"product_id": 10, "quantity": 1}
    variation = {"variation_id": shelf.variation_id} if shelf.variation_id else {}
    return {"product_id": shelf.product_id, **variation, "quantity": shelf.quantity_step}


def references_of(account: Account | None, shelf_ids: Sequence[int]) -> dict[int, str]:
    """The account's merchant references of these shelves, by shelf id."""
    if account is None:
        return {}
    links = ReferenceLink.objects.filter(account=account, shelf__in=shelf_ids)
    return dict(links.values_list("shelf_id", "reference"))


def show_products(products: Sequence[Product], *, account: Account | None) -> list[dict[str, Any]]:
    """Products on sale with their shelves and active variations, as the API shows them."""
    shelves = list(
        _active_shelves()
        .filter(product__in=products)
        .annotate(price_now=_price_for(account))
        .select_related("variation")
        .order_by("variation_id")
    )
    of_product: dict[int, list[Shelf]] = defaultdict(list)
    for shelf in shelves:
        of_product[shelf.product_id].append(shelf)
    references = references_of(account, [shelf.pk for shelf in shelves])
    return [
        _show_product(
            product,
            of_product[product.pk],
            references,
        )
        for product in products
    ]


def _price_for(account: Account | None) -> MerchantPrice:
    return MerchantPrice(
        *buyer(account),
        *("pk", "product_id", "product__category_id", "product__currency"),
        *("price", "next_price", "next_price_from", Now()),
    )


def _show_product(
    product: Product, shelves: Sequence[Shelf], references: dict[int, str]
) -> dict[str, Any]:
    own = next(shelf for shelf in shelves if shelf.variation is None)
    return {
        "id": product.pk,
        "name": product.name,
        "type": product.type,
        "currency": product.currency,
        **_show_shelf(own, references),
        "in_stock": any(shelf.available_stock > 0 for shelf in shelves),
        "variations": [
            {
                "id": shelf.variation.pk,
                "name": shelf.variation.name,
                **_show_shelf(shelf, references),
            }
            for shelf in shelves
            if shelf.variation is not None
        ],
    }


def is_bought_by_variation(product: dict[str, Any]) -> bool:
    """Whether a product of `show_products` has variations, and no codes of its own."""
    return bool(product["variations"]) and not product["available_stock"]


def _show_shelf(shelf: Any, references: dict[int, str]) -> dict[str, Any]:
    price = shelf.price_now
    return {
        "merchant_reference": references.get(shelf.pk),
        "available_stock": shelf.available_stock,
        "price": price,
        "quantity_step": shelf.quantity_step,
        "sellable": price is not None,
    }


class _EntryPart(Func):
    """A column of what the account's list says of a shelf or top-up product now.

    Its arguments are the list, the numbers of the targets, and a time.
    """

    function = "catalogue_entry_of"
    template = "(%(function)s(%(expressions)s)).%(part)s"
    arity = 3


class _Targets(Func):
    function = "catalogue_targets"
    arity = 3
    output_field = ArrayField(BigIntegerField())


def price_times(price_list_id: int | None, targets: Func, changes: QuerySet[Any]) -> dict[str, Any]:
    """Annotations of shelves or top-up products that tell since when a row has its price:
    `regular_since`, and of the price list `entry_since` and `entry_price`."""
    of_list = (Value(price_list_id, BigIntegerField()), targets, Now())
    at_once = changes.filter(starts_at=None)
    return {
        "entry_since": _EntryPart(*of_list, part="valid_from", output_field=DateTimeField()),
        "entry_price": _EntryPart(*of_list, part="price", output_field=DecimalField()),
        "regular_since": Case(
            When(next_price_from__lte=Now(), then=F("next_price_from")),
            default=Subquery(at_once.values("changed_at")[:1]),
        ),
    }


def since(row: Any) -> datetime | None:
    """The start of the price of an annotated row; None if it was not recorded."""
    if row.entry_price is not None:
        found: datetime | None = row.entry_since
        return found
    times = [one for one in (row.regular_since, row.entry_since) if one is not None]
    return max(times, default=None)


def newest_changes(changes: QuerySet[Any], column: str, row: Any) -> QuerySet[Any]:
    """The price changes of a row, the newest first.

    The index over both columns finds them. With `=` PostgreSQL leaves the column out of the order,
    and may look through the changes of all rows by the primary key.
    """
    of_row = {f"{column}__gte": row, f"{column}__lte": row}
    return changes.filter(**of_row).order_by(f"-{column}", "-pk")


def shelf_price_times(price_list_id: int | None) -> dict[str, Any]:
    """`price_times` of shelves."""
    return price_times(
        price_list_id,
        _Targets("pk", "product_id", "product__category_id"),
        newest_changes(ShelfPriceChange.objects.all(), "shelf_id", OuterRef("pk")),
    )


def prices_since(
    *, account: Account, products: Sequence[Product]
) -> dict[tuple[int, int | None], datetime | None]:
    """The start of the account's price of these products' shelves, by product and variation."""
    shelves = Shelf.objects.filter(product__in=products).annotate(
        **shelf_price_times(account.price_list_id)
    )
    return {(shelf.product_id, shelf.variation_id): since(shelf) for shelf in shelves}


def with_name(products: QuerySet[Named], search: str) -> QuerySet[Named]:
    """The products whose name contains `search` in any case; no character is special."""
    if "\x00" in search or len(search) > NAME_LENGTH:  # no name contains it
        return products.none()
    return products.filter(name__icontains=search)
