"""The files of the reports that staff receive by email: daily closes, margins and orders."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta

from django.contrib.auth.models import User
from django.utils.translation import gettext, gettext_noop

from core.backoffice.declarations import Report
from core.database.ids import MARGIN, find_first_id
from core.files.table_files import write_table
from figures.margins import By, Period, read_lines
from merchants.orders.order_file import COLUMNS as ORDER_COLUMNS
from merchants.orders.order_file import cells_of
from operators.frame.exports import EXPORT, read_all
from orders.models import Order
from wallets.evidence.closes import COLUMNS, last_closed_day
from wallets.models import DailyClose

# The columns of lines of margins, with their headings.
SEES_MARGINS = "figures.view_dailymargin"
MARGINS = {
    "name": "name",
    "currency": "currency",
    "quantity": "sold",
    "sold": "sales",
    "paid_back": "refunds_and_credits",
    "net": "net_sales",
    "cost": "cost",
    "margin": "margin",
    "unknown_codes": "sold_without_known_cost",  # top-ups have no cost
    "stock": "codes_in_stock",
    "stock_value": "stock_value",
}
File = tuple[str, Iterable[bytes]]
DAY = timedelta(days=1)


def _closes(user: User, first: date, end: date) -> File | None:
    if (last_closed_day() or date.min) < end - DAY:
        return None
    names = ("day", "currency", "wallets", "opening", *COLUMNS.values(), "closing")
    rows = DailyClose.objects.filter(day__gte=first, day__lt=end).order_by("day", "currency")
    values = rows.values_list(*names)
    return f"closes-{first}.xlsx", write_table("xlsx", names, values, title=gettext("Daily closes"))


def _margins(user: User, first: date, end: date) -> File:
    lines = read_lines(Period(since=first, until=end - DAY), by=By.PRODUCT)
    rows = ([getattr(line, name) for name in MARGINS] for line in lines)
    title = gettext("Sales and margins")
    return f"margins-{first}.xlsx", write_table("xlsx", list(MARGINS.values()), rows, title=title)


def _orders(user: User, first: date, end: date) -> File:
    since, until = (datetime.combine(day, time(), UTC) for day in (first, end))
    orders = Order.objects.filter(
        pk__gte=find_first_id(Order, since - MARGIN),
        pk__lt=find_first_id(Order, until + MARGIN),
        created_at__gte=since,
        created_at__lt=until,
    ).select_related(
        "client__account", "shelf__product", "shelf__variation__product", "fulfilment__product"
    )
    rows = ([order.client.account, *cells_of(order)] for order in read_all(orders, False))
    columns = ["account", *ORDER_COLUMNS]
    return f"orders-{first}.xlsx", write_table("xlsx", columns, rows, title=gettext("Orders"))


def _requires(permission: str) -> Callable[[User], bool]:
    return lambda user: user.is_staff and user.has_perms([permission, EXPORT])


REPORTS = [
    Report("closes", gettext_noop("Daily closes"), _requires("wallets.view_dailyclose"), _closes),
    Report("margins", gettext_noop("Sales and margins"), _requires(SEES_MARGINS), _margins),
    Report(
        "all_orders",
        gettext_noop("Orders of all merchants"),
        _requires("orders.view_order"),
        _orders,
    ),
]
