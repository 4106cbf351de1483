"""Charts as numbers for an SVG that a template draws: a page runs no script and has no styles of
its own, so every bar comes with its place and size."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from orders.of_account import Spend

HEIGHT = 160
STEP, WIDTH = 22, 16  # from bar to bar, and how wide each is
LONGEST = 300
MOST_PRODUCTS = 10
LABEL_EVERY = 7  # days


@dataclass(frozen=True)
class Bar:
    """One day or product: what it says, and where it is drawn."""

    name: str
    orders: int
    amount: Decimal
    length: int
    place: int = 0  # along the axis
    end: int = 0  # of its upper end, where it stands upright
    labelled: bool = True


@dataclass(frozen=True)
class Chart:
    """Bars, and the size of the picture."""

    bars: list[Bar]
    width: int
    height: int = 0

    @property
    def empty(self) -> bool:
        return not any(bar.orders for bar in self.bars)


def draw_days(spent: Iterable[Spend], *, first: date, last: date) -> Chart:
    """A bar for each day, the days without an order too."""
    orders: dict[date, int] = defaultdict(int)
    amounts: dict[date, Decimal] = defaultdict(Decimal)
    for row in spent:
        orders[row.day] += row.orders
        amounts[row.day] += row.amount
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    most = max((amounts[day] for day in days), default=Decimal(0))
    bars = []
    for number, day in enumerate(days):
        length = _share(amounts[day], most, HEIGHT)
        bars.append(
            Bar(
                name=day.isoformat(),
                orders=orders[day],
                amount=amounts[day],
                place=number * STEP,
                length=length,
                end=HEIGHT - length,
                labelled=(last - day).days % LABEL_EVERY == 0,
            )
        )
    return Chart(bars, width=len(days) * STEP + 2 * STEP, height=HEIGHT + 24)


def draw_products(spent: Iterable[Spend]) -> Chart:
    """A bar for each of the dearest products, and one for all others."""
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
                f"{len(others)} others",
                sum(orders[name] for name in others),
                sum((amounts[name] for name in others), Decimal(0)),
            )
        )
    most = max((amount for _, _, amount in sums), default=Decimal(0))
    bars = []
    for name, count, amount in sums:
        bars.append(Bar(name, count, amount, length=_share(amount, most, LONGEST)))
    return Chart(bars, width=LONGEST)


def _share(amount: Decimal, most: Decimal, length: int) -> int:
    """What is there is seen: never shorter than one unit."""
    return max(int(amount / most * length), 1) if amount else 0
