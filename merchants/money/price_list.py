"""An account's own prices of vouchers and top-ups, as the API sells them: a page and a file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet, TextChoices

from accounts.models import Account
from catalogue.models import Product
from catalogue.selectors import (
    is_bought_by_variation,
    prices_since,
    products_on_sale,
    show_products,
)
from core.files.table_files import exact_time
from core.texts import lazy
from topups.selectors import show_topup_products, topup_prices_since, topup_products_on_sale

COLUMNS = (
    *("kind", "product_id", "variation_id", "name", "merchant_reference"),
    *("price", "currency", "codes_in_a_unit", "since"),
)
PRODUCTS_AT_ONCE = 500


class Kind(TextChoices):
    VOUCHER = "voucher", lazy("Voucher")
    TOP_UP = "top_up", lazy("Top-up")


@dataclass(frozen=True)
class PriceRow:
    """The price of one unit. `price` is None if the account cannot buy it."""

    kind: Kind
    product: int
    variation: int | None
    name: str
    reference: str | None
    price: Decimal | None
    currency: str
    step: int
    since: datetime | None
    by_variation: bool = False  # it has variations, and no codes of its own


def voucher_prices(account: Account, products: Sequence[Product]) -> list[PriceRow]:
    """A row for each shelf of these products on sale."""
    since = prices_since(account=account, products=products)
    return [
        PriceRow(
            kind=Kind.VOUCHER,
            product=product["id"],
            variation=None if shelf is product else shelf["id"],
            name=product["name"] if shelf is product else f"{product['name']} / {shelf['name']}",
            reference=shelf["merchant_reference"],
            price=shelf["price"],
            currency=product["currency"],
            step=shelf["quantity_step"],
            since=since[product["id"], None if shelf is product else shelf["id"]]
            if shelf["sellable"]
            else None,
            by_variation=shelf is product and is_bought_by_variation(product),
        )
        for product in show_products(products, account=account)
        for shelf in (product, *product["variations"])
    ]


def topup_prices(account: Account, products: Any) -> list[PriceRow]:
    """A row for each of these top-up products on sale."""
    since = topup_prices_since(account=account, products=products)
    return [
        PriceRow(
            kind=Kind.TOP_UP,
            product=product["id"],
            variation=None,
            name=product["name"],
            reference=None,
            price=product["price"] if product["sellable"] else None,
            currency=product["currency"],
            step=1,
            since=since[product["id"]] if product["sellable"] else None,
        )
        for product in show_topup_products(products, account=account)
    ]


def price_rows(account: Account) -> Iterator[list[Any]]:
    """The cells of COLUMNS for each price of the account."""
    kinds: tuple[tuple[QuerySet[Any], Callable[[Account, Any], list[PriceRow]]], ...] = (
        (products_on_sale(), voucher_prices),
        (topup_products_on_sale(), topup_prices),
    )
    for products, show in kinds:
        last = 0
        while found := list(products.filter(pk__gt=last).order_by("pk")[:PRODUCTS_AT_ONCE]):
            last = found[-1].pk
            yield from map(_cells, show(account, found))


def _cells(row: PriceRow) -> list[Any]:
    since = None if row.since is None else exact_time(row.since)
    what = [row.kind, row.product, row.variation, row.name, row.reference]
    return [*what, row.price, row.currency, row.step, since]
