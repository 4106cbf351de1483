"""The reports that members receive by email: the statement and the orders of a period."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time

from django.contrib.auth.models import User
from django.utils.translation import gettext, gettext_noop

from accounts.models import Account
from core.backoffice.declarations import Report
from core.files.table_files import write_table
from merchants.models import Membership
from merchants.money.months import find_month
from merchants.money.statement import write_csv
from merchants.money.statement_pdf import write_pdf
from merchants.orders.order_file import COLUMNS, cells_of
from orders.account_orders import list_account_orders, read_orders
from wallets.selectors import entries_of

File = tuple[str, Iterable[bytes]]


def _account_of(user: User) -> Account | None:
    member = Membership.objects.select_related("account").filter(user=user).first()
    return None if member is None or user.is_staff else member.account


def _is_member(user: User) -> bool:
    return _account_of(user) is not None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _statement(user: User, first: date, end: date) -> File | None:
    """PDF for a whole month that is closed, CSV for other periods."""
    account = _account_of(user)
    if account is None:
        return None
    if first.day == 1 and (end - first).days > 7:
        month = find_month(account, f"{first:%Y-%m}")
        if month is None:
            return None
        return f"statement-{month.name}.pdf", [write_pdf(account, month)]
    entries = entries_of(account, since=_midnight(first), until=_midnight(end))
    return f"statement-{first}.csv", write_csv(entries, account=account)


def _orders(user: User, first: date, end: date) -> File | None:
    account = _account_of(user)
    if account is None:
        return None
    orders = list_account_orders(account, since=_midnight(first), until=_midnight(end))
    rows = map(cells_of, read_orders(orders))
    return f"orders-{first}.xlsx", write_table("xlsx", COLUMNS, rows, title=gettext("Orders"))


REPORTS = [
    Report("statement", gettext_noop("Statement"), _is_member, _statement),
    Report("orders", gettext_noop("Orders"), _is_member, _orders),
]
