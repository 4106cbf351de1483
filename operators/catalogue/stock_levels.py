"""Which shelves need codes: those that are sold from, and the days until they are sold out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from catalogue.models import Batch, Shelf
from catalogue.selectors import shelves_on_sale
from core.formats import local_day
from figures.models import DailySales, DailyTotal
from operators.catalogue.batches import HAS_STOCK, LEFT

LOW_STOCK = 10
PACE_DAYS = 7
SHOWN, QUIET = 8, 3


@dataclass(frozen=True)
class StockLevel:
    """A shelf, and how many codes it sold. `days_left` is None if it sold nothing lately, and
    `is_new` is true before the first import of codes. `expires_on` is the first last day of sale of
    its codes."""

    shelf: Shelf
    is_new: bool
    sold: int
    days_left: float | None
    expires_on: date | None = None

    @property
    def left_in_words(self) -> str:
        """How long the codes last at the present pace."""
        if not self.shelf.available_stock:
            return _("no codes yet") if self.is_new and not self.sold else _("sold out")
        if self.days_left is None:
            return _("no recent sales")
        days = int(self.days_left)
        if days < 1:
            return _("less than a day")
        words = ngettext("%(days)s day", "%(days)s days", days) % {"days": days}
        if self.expires_on is None or (self.expires_on - datetime.now(UTC).date()).days >= days:
            return words
        return _("%(days)s, but the first codes expire on %(day)s") % {
            "days": words,
            "day": local_day(self.expires_on),
        }


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
    """The numbers of these shelves that are sold out (`none`), and nearly sold out (`low`)."""
    low = shelves_to_fill().filter(available_stock__lt=LOW_STOCK)
    return low.aggregate(
        none=Count("pk", filter=Q(available_stock=0)),
        low=Count("pk", filter=Q(available_stock__gt=0)),
    )


def first_to_run_out(now: datetime) -> list[StockLevel]:
    """The shelves that are sold out, then those that will be first, at the pace of today and the
    seven days before it. Reads the daily sales of each shelf on these days.

    Of those with few codes that sold nothing, it names three.
    """
    sales, days = _recent_sales(now)
    sold = dict(
        sales.filter(shelf__isnull=False)
        .values_list("shelf")
        .annotate(sold=Sum("quantity"))
        .order_by()
    )
    stock = dict(shelves_to_fill().filter(pk__in=list(sold)).values_list("pk", "available_stock"))
    # Nothing is sold from a shelf that has been sold out for long.
    quiet = shelves_to_fill().filter(available_stock__lt=LOW_STOCK).exclude(pk__in=list(sold))
    stock |= quiet.order_by("available_stock", "pk").values_list("pk", "available_stock")[:QUIET]
    left = {pk: stock[pk] * days / sold[pk] for pk in stock if pk in sold}
    first = sorted(
        stock, key=lambda pk: (stock[pk] > 0, left.get(pk, float("inf")), -sold.get(pk, 0), pk)
    )[:SHOWN]
    expiring = Batch.objects.filter(
        LEFT, HAS_STOCK, shelf=OuterRef("pk"), expires_on__isnull=False
    ).order_by("expires_on")
    shelves = (
        Shelf.objects.select_related("product", "variation__product")
        .annotate(
            is_new=~Exists(Batch.objects.filter(shelf=OuterRef("pk"))),
            expires_on=Subquery(expiring.values("expires_on")[:1]),
        )
        .in_bulk(first)
    )
    return [
        StockLevel(one, one.is_new, sold.get(one.pk, 0), left.get(one.pk), one.expires_on)
        for one in (shelves[pk] for pk in first)
    ]


def level_of(shelf: Shelf, now: datetime) -> StockLevel:
    """How long the codes of a shelf last, at the same pace."""
    sales, days = _recent_sales(now)
    sold = sales.filter(shelf=shelf).aggregate(sold=Sum("quantity"))["sold"] or 0
    is_new = not Batch.objects.filter(shelf=shelf).exists()
    return StockLevel(shelf, is_new, sold, shelf.available_stock * days / sold if sold else None)


def _recent_sales(now: datetime) -> tuple[QuerySet[DailyTotal], float]:
    """The daily sales of today and the seven days before it, and how many days these are by now."""
    since = now.date() - timedelta(days=PACE_DAYS)
    days = PACE_DAYS + (now.hour * 60 + now.minute) / (24 * 60)
    return DailyTotal.objects.filter(day__gte=since), days
