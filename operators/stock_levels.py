"""Which shelves need codes: those that are sold from, and the days until they are sold out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from catalogue.models import Shelf
from catalogue.selectors import shelves_on_sale
from orders.models import DailySales

LOW_STOCK = 10
PACE_DAYS = 7
SHOWN = 8


@dataclass(frozen=True)
class StockLevel:
    """A shelf with its codes in stock. `days_left` is None if nothing was sold lately."""

    shelf: Shelf
    stock: int
    sold: int
    days_left: float | None


def shelves_to_fill() -> QuerySet[Shelf]:
    """The shelves that should hold codes: on sale, with a price.

    A product may be sold only by its variations, although its own shelf has a price. That shelf is
    left out: it is empty, it never sold a code, and a variation is on sale.
    """
    priced = shelves_on_sale().filter(price__isnull=False)
    of_variations = priced.filter(product=OuterRef("product"), variation__isnull=False)
    sales = DailySales.objects.filter(shelf=OuterRef("pk"))
    only_by_variations = (
        Q(variation=None, available_stock=0) & Exists(of_variations) & ~Exists(sales)
    )
    return priced.exclude(only_by_variations)


def count_low_shelves() -> dict[str, int]:
    """How many of these shelves are sold out (`none`), and how many nearly (`low`)."""
    shelves = shelves_to_fill()
    return {
        "none": shelves.filter(available_stock=0).count(),
        "low": shelves.filter(available_stock__gt=0, available_stock__lt=LOW_STOCK).count(),
    }


def first_to_run_out(now: datetime) -> list[StockLevel]:
    """The shelves that will be sold out first, at the pace of today and the seven days before it.

    Reads the daily sales of a week. Those without stock come first, the others by days left.
    """
    since = now.date() - timedelta(days=PACE_DAYS)
    elapsed = PACE_DAYS + (now.hour * 60 + now.minute) / (24 * 60)
    sold = dict(
        DailySales.objects.filter(day__gte=since, shelf__isnull=False)
        .values_list("shelf")
        .annotate(sold=Coalesce(Sum("quantity"), 0))
        .order_by()
    )
    shelves = shelves_to_fill().filter(Q(pk__in=list(sold)) | Q(available_stock__lt=LOW_STOCK))
    levels = [
        _level(shelf, sold.get(shelf.pk, 0), elapsed)
        for shelf in shelves.select_related("product", "variation__product")
    ]
    return sorted(levels, key=_urgency)[:SHOWN]


def _level(shelf: Shelf, sold: int, elapsed: float) -> StockLevel:
    days_left = shelf.available_stock * elapsed / sold if sold else None
    return StockLevel(shelf, shelf.available_stock, sold, days_left)


def _urgency(level: StockLevel) -> tuple[Any, ...]:
    never = float("inf")
    days = never if level.days_left is None else level.days_left
    return (level.stock > 0, -level.sold if not level.stock else 0, days, level.stock)
