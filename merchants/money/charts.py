"""Computes the bars that a template draws as SVG.

The Content-Security-Policy forbids inline scripts and styles, so every bar has its position and
size as numbers. Lengths are in SVG units.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

from django.utils.formats import date_format
from django.utils.translation import ngettext

from core.formats import local_day, local_number
from figures.sales import Spend, today

DAYS = 30
HEIGHT = 160
ALL, WIDTH = 660, 16  # the width of all days, and of a bar
DIGIT = 15  # the width of a digit on a phone
TICKS = 4  # above zero, at most
LONGEST = 300
MOST_PRODUCTS = 200
LABEL_EVERY = 7  # days


@dataclass(frozen=True)
class Bar:
    """The bar of one day or product: its numbers, and where it is drawn."""

    name: str
    orders: int
    amount: Decimal
    length: int
    place: int = 0  # along the axis
    end: int = 0  # the y of an upright bar's upper end
    labelled: bool = True
    short: str = ""
    percent: str = ""  # of the sum of all bars

    @property
    def middle(self) -> int:
        """The middle of an upright bar, along the axis."""
        return self.place + WIDTH // 2

    @property
    def right(self) -> int:
        """The right end of an upright bar, along the axis."""
        return self.place + WIDTH


@dataclass(frozen=True)
class Chart:
    """Bars, and the size of the drawing."""

    bars: list[Bar]
    width: int
    height: int = 0
    margin: int = 0  # at the left of upright bars, for the amounts
    ticks: list[tuple[str, int]] = field(default_factory=list)  # amounts, and the y of each

    @property
    def highest(self) -> Bar:
        """The first of the longest bars."""
        return max(self.bars, key=lambda bar: bar.amount)

    @property
    def empty(self) -> bool:
        return not any(bar.orders for bar in self.bars)


def charted_days() -> tuple[date, date]:
    """The first and the last of the days whose spend pages show; today (UTC) is the last."""
    last = today()
    return last - timedelta(days=DAYS - 1), last


def draw_days(spent: Iterable[Spend], *, first: date, last: date) -> Chart:
    """One bar for each day from `first` to `last`, including days without an order."""
    orders: dict[date, int] = defaultdict(int)
    amounts: dict[date, Decimal] = defaultdict(Decimal)
    for row in spent:
        orders[row.day] += row.orders
        amounts[row.day] += row.amount
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    most = max((amounts[day] for day in days), default=Decimal(0))
    step, decimals = _step(most)
    steps = max(math.ceil(most / step), 1)
    ticks = [
        (local_number(number * step, decimals), HEIGHT - number * HEIGHT // steps)
        for number in range(steps + 1)
    ]
    slot = ALL // len(days)
    bars = []
    for number, day in enumerate(days):
        length = _share(amounts[day], steps * step, HEIGHT)
        bars.append(
            Bar(
                name=local_day(day),
                short=date_format(day, "MONTH_DAY_FORMAT"),
                orders=orders[day],
                amount=amounts[day],
                place=number * slot + (slot - WIDTH) // 2,
                length=length,
                end=HEIGHT - length,
                labelled=(last - day).days % LABEL_EVERY == 0,
            )
        )
    margin = (max(len(label) for label, _ in ticks) + 1) * DIGIT
    width = len(days) * slot + margin
    return Chart(bars, width=width, height=HEIGHT + 54, margin=margin, ticks=ticks)


def _step(most: Decimal) -> tuple[Decimal, int]:
    """The amount from tick to tick, which is 1, 2 or 5 times a power of ten, and its decimals."""
    least = most / TICKS or Decimal(1)
    power = Decimal(1).scaleb(least.adjusted())
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)
    return step, max(-least.adjusted(), 0)


def draw_products(spent: Iterable[Spend]) -> Chart:
    """One bar for each of MOST_PRODUCTS with the highest spend, and one for all others.

    A bar of the length LONGEST stands for the sum of all.
    """
    orders: dict[str, int] = defaultdict(int)
    amounts: dict[str, Decimal] = defaultdict(Decimal)
    for row in spent:
        orders[row.product] += row.orders
        amounts[row.product] += row.amount
    names = sorted(amounts, key=lambda name: (-amounts[name], name))
    sums = [(name, orders[name], amounts[name]) for name in names[:MOST_PRODUCTS]]
    if others := names[MOST_PRODUCTS:]:
        sums.append(
            (
                ngettext("%(number)d other", "%(number)d others", len(others))
                % {"number": len(others)},
                sum(orders[name] for name in others),
                sum((amounts[name] for name in others), Decimal(0)),
            )
        )
    total = sum((amount for _, _, amount in sums), Decimal(0))
    bars = []
    for name, count, amount in sums:
        percent = round(100 * amount / total) if total else 0
        bars.append(
            Bar(
                name,
                count,
                amount,
                length=_share(amount, total, LONGEST),
                percent=str(percent) if percent or not amount else "< 1",
            )
        )
    return Chart(bars, width=LONGEST)


def _share(amount: Decimal, whole: Decimal, length: int) -> int:
    """The length of a bar, where `length` stands for `whole`.

    An amount above zero is at least one unit long, so it is visible.
    """
    return max(int(amount * length / whole), 1) if amount else 0
