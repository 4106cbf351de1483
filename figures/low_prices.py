"""Prices that one person does not set alone: large falls, and prices below the cost of the codes.

A fall is compared with the highest price of the last week, so that small steps add up. A price
after none is compared with the last one. Prices are compared by code: a larger quantity step is a
lower price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import F, IntegerField, QuerySet, Value
from django.db.models.functions import Now

from catalogue.models import PriceListEntry, Shelf
from catalogue.selectors import RegularPrice
from core.json_output import money_text

Key = tuple[str, int]  # `shelf` or `topupproduct`, and an id

# The highest price of the last week, and the last price that there was.
HIGHEST = """
    SELECT row.id,
           (SELECT max(before) FROM {history} AS change
             WHERE {column} = row.id AND starts_at IS NULL
               AND changed_at > now() - interval '7 days'),
           (SELECT before FROM {history} AS change
             WHERE {column} = row.id AND before IS NOT NULL AND starts_at IS NULL
             ORDER BY change.id DESC LIMIT 1)
      FROM unnest(%s::bigint[]) AS row (id)
"""
# The cost of the most expensive code in stock, in the currency of the shelf. Batches are those with
# codes when they were last counted, and later ones. A cost without an exchange rate is left out.
COST = """
    SELECT shelf.id, max(CASE WHEN batch.cost_currency = product.currency THEN batch.unit_cost
               ELSE batch.unit_cost * (
                   SELECT rate FROM figures_exchangerate AS known
                    WHERE known.currency = batch.cost_currency AND known.into = product.currency
                      AND day <= (batch.imported_at AT TIME ZONE 'UTC')::date
                    ORDER BY day DESC LIMIT 1) END)
      FROM catalogue_shelf AS shelf
      JOIN catalogue_product AS product ON product.id = shelf.product_id
      JOIN catalogue_batch AS batch ON batch.shelf_id = shelf.id AND batch.taken_back_at IS NULL
     CROSS JOIN (SELECT max(day) AS day FROM figures_dailystock) AS counted
     WHERE shelf.id = ANY(%s) AND available_stock > 0 AND unit_cost IS NOT NULL
       AND (counted.day IS NULL OR (batch.imported_at AT TIME ZONE 'UTC')::date >= counted.day
            OR EXISTS (SELECT FROM figures_dailystock AS stock
                        WHERE stock.day = counted.day AND stock.batch_id = batch.id
                          AND codes > 0))
     GROUP BY shelf.id
"""
HISTORIES = {
    "shelf": ("catalogue_shelfpricechange", "shelf_id"),
    "topupproduct": ("topups_topuppricechange", "product_id"),
}
# The prices of a list, or the regular ones if it is NULL, of the things in a currency.
PRICES = """
    SELECT 'shelf', shelf.id, concat_ws(' / ', product.name, variation.name),
           catalogue_price(product.currency, %(price_list)s, shelf.id, product.id,
                           product.category_id, product.currency, shelf.price, next_price,
                           next_price_from, %(at)s),
           catalogue_regular_price(shelf.price, next_price, next_price_from, %(at)s),
           quantity_step, product.currency
      FROM catalogue_shelf AS shelf
      JOIN catalogue_product AS product ON product.id = shelf.product_id
      LEFT JOIN catalogue_variation AS variation ON variation.id = shelf.variation_id
     WHERE product.currency = %(currency)s
     UNION ALL
    SELECT 'topupproduct', topup.id, topup.name,
           topups_price(currency, %(price_list)s, topup.id, category_id, currency, price,
                        next_price, next_price_from, %(at)s),
           catalogue_regular_price(price, next_price, next_price_from, %(at)s), 1, currency
      FROM topups_topupproduct AS topup
     WHERE currency = %(currency)s
     ORDER BY 1, 2
"""


@dataclass(frozen=True)
class RowPrice:
    """The price of a shelf or top-up product, and the next one."""

    name: str
    price: Decimal | None
    next_price: Decimal | None
    next_price_from: datetime | None
    step: int
    currency: str


@dataclass(frozen=True)
class ListPrice:
    """The price of a thing in a list, and its regular price."""

    name: str
    price: Decimal | None
    regular: Decimal | None
    step: int
    currency: str


def read_prices(*rows: QuerySet[Any]) -> dict[Key, RowPrice]:
    """The prices of these shelves and top-up products now."""
    found: dict[Key, RowPrice] = {}
    for some in rows:
        is_shelf = some.model is Shelf
        kind = some.model._meta.model_name or ""
        step = F("quantity_step") if is_shelf else Value(1, IntegerField())
        columns = some.order_by().values_list(
            "pk",
            *(("product__name", "variation__name") if is_shelf else ("name", "name")),
            RegularPrice("price", "next_price", "next_price_from", Now()),
            *("next_price", "next_price_from", step),
            "product__currency" if is_shelf else "currency",
        )
        for pk, name, other, *values in columns:
            whole = f"{name} / {other}" if is_shelf and other else name
            found[kind, pk] = RowPrice(whole, *values)
    return found


def find_low_prices(before: Mapping[Key, RowPrice], after: Mapping[Key, RowPrice]) -> list[str]:
    """The prices of `after` that need a second person, in words. Call it before the commit."""
    changed = [key for key, row in after.items() if before.get(key) != row]
    earlier, costs = _earlier(changed), _costs(changed)
    low = []
    for key in changed:
        old, new = before.get(key), after[key]
        old_price, old_step = (old.price, old.step) if old else (None, new.step)
        highest, last = earlier.get(key, (None, None))
        known = [one for one in (old_price or last, highest) if one is not None]
        for price, start in ((new.price, None), (new.next_price, new.next_price_from)):
            if price is None or (old and _same(old, new, start)):
                continue
            of_code = price / new.step
            old_of_code = None if old_price is None else old_price / old_step
            falls = old_of_code is None or of_code < old_of_code
            if (
                (falls and known and is_large_fall(max(known) / old_step, of_code))
                or (falls and of_code < costs.get(key, 0))
                # The history has prices of the steps of their time.
                or (new.step > old_step and old_of_code is not None and of_code <= old_of_code)
                or (old and old.currency != new.currency)
            ):
                low.append(_in_words(key, new, price, old_price, start))
    return low


def is_large_fall(before: Decimal, after: Decimal) -> bool:
    """Whether a price falls by more than one person may let it fall."""
    return bool(after < before * (100 - settings.PRICE_FALL_PERCENT) / 100)


def read_list_prices(
    *, price_list_id: int | None, currency: str, at: datetime
) -> dict[Key, ListPrice]:
    """The prices at a time for accounts with this list, or without one."""
    with connection.cursor() as cursor:
        cursor.execute(PRICES, {"price_list": price_list_id, "currency": currency, "at": at})
        return {(kind, pk): ListPrice(*values) for kind, pk, *values in cursor}


def find_low_list_prices(
    before: Mapping[Key, ListPrice], after: Mapping[Key, ListPrice]
) -> list[str]:
    """As `find_low_prices`, of a list. Its prices are compared with the regular ones."""
    falling = [
        key
        for key, new in after.items()
        if new.price is not None
        and key in before
        and ((old := before[key].price) is None or new.price < old)
        and (old is not None or new.regular is None or new.price < new.regular)
    ]
    costs, earlier = _costs(falling), _earlier(falling)
    low = []
    for key in falling:
        new = after[key]
        price = new.price or Decimal(0)
        known = [one for one in (before[key].price, new.regular) if one is not None] or [
            one for one in earlier.get(key, ()) if one is not None
        ]
        if (known and is_large_fall(max(known), price)) or price / new.step < costs.get(key, 0):
            low.append(_in_words(key, new, price, before[key].price, None))
    return low


def describe_entry(entry: PriceListEntry, start: datetime | None) -> str:
    """An entry of a list as the request for a second person names it."""
    terms = f"{entry.for_sale} {entry.price} {entry.percent_off}"
    return (
        f"target {entry.target} of price list {entry.price_list_id}: {terms},"
        f" from {start or 'now'} until {entry.valid_until or 'its end'}"
    )


def _same(old: RowPrice, new: RowPrice, start: datetime | None) -> bool:
    """Whether the present price, or the next one, is as it was."""
    if (old.step, old.currency) != (new.step, new.currency):
        return False
    if start is None:
        return old.price == new.price
    return (old.next_price, old.next_price_from) == (new.next_price, start)


def _earlier(keys: Sequence[Key]) -> dict[Key, tuple[Decimal | None, Decimal | None]]:
    """The highest price of the last week, and the last one that there was."""
    found: dict[Key, tuple[Decimal | None, Decimal | None]] = {}
    for kind, (history, column) in HISTORIES.items():
        ids = [pk for one, pk in keys if one == kind]
        with connection.cursor() as cursor:
            cursor.execute(HIGHEST.format(history=history, column=column), [ids])
            found |= {(kind, pk): (highest, last) for pk, highest, last in cursor}
    return found


def _costs(keys: Sequence[Key]) -> dict[Key, Decimal]:
    with connection.cursor() as cursor:
        cursor.execute(COST, [[pk for kind, pk in keys if kind == "shelf"]])
        return {("shelf", pk): cost for pk, cost in cursor if cost is not None}


def _in_words(
    key: Key,
    new: RowPrice | ListPrice,
    price: Decimal,
    before: Decimal | None,
    start: datetime | None,
) -> str:
    words = f"{new.name} ({key[0]} {key[1]}): {money_text(price)} {new.currency}"
    if new.step > 1:
        words += f" for {new.step}"
    words += f" instead of {money_text(before) if before is not None else 'no price'}"
    return words + (f" from {start:%Y-%m-%d %H:%M} UTC" if start else "")
