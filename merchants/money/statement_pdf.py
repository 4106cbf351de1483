"""The statement of a month as PDF: who issued it for whom, balances, sums, days, and its entries if
they are not too many."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from django.utils.formats import date_format
from django.utils.translation import gettext

from accounts.companies import country_name
from accounts.models import Account, Logo
from core.formats import local_amount, local_day, local_moment, local_number
from core.texts import lazy
from merchants.money.months import Month, heading_of
from merchants.money.paper import (
    GREY,
    HEIGHT,
    MARGIN,
    RIGHT,
    SIZE,
    Column,
    Paper,
    Row,
    fitting,
    wrapped,
)
from merchants.money.statement import with_orders
from orders.models import Order
from wallets.models import EntryKind, MonthlyStatement, bank_reference_of
from wallets.selectors import StatementLine

MOST_ENTRIES = 2_000  # about 80 pages
KEY_SHOWN = 48  # characters of a line
NO_INVOICE = lazy("This is a statement of account and no tax invoice.")
REFERENCE = Column("", 220, 372)
MIDDLE = 330  # where the right half of the letterhead begins
RECIPIENT_WIDTH = MIDDLE - MARGIN - 20
LETTERHEAD_LINES = 20  # below the name of a company
SEE_BELOW = lazy("All lines are further below.")


def write_pdf(account: Account, month: Month) -> bytes:
    """The statement of a closed month."""
    issued = month.statement(account)
    title = gettext("Statement %(number)s, %(account)s") % {
        "number": issued.number,
        "account": _name_of(issued.recipient),
    }
    paper = Paper(title, issued.issuer.get("footer", ""))
    _write_letterhead(paper, issued)
    paper.y = min(paper.y, HEIGHT - 250)
    name = date_format(month.first, "F Y")
    paper.line(gettext("Statement %(month)s") % {"month": name}, 16, is_bold=True)
    paper.line(str(NO_INVOICE))
    currency = account.currency
    paper.line(gettext("Amounts in %(currency)s. Days and times are UTC.") % {"currency": currency})
    _write_sums(paper, month, account)
    if issued.bank_details:
        paper.advance(10)
        paper.line(gettext("Bank details for your transfers"), is_bold=True)
        for line in issued.bank_details.splitlines():
            paper.line(line, 8)
    _write_rest_of_companies(paper, issued)
    _write_days(paper, month)
    entries = month.entries(account)
    if entries.order_by()[: MOST_ENTRIES + 1].count() > MOST_ENTRIES:
        paper.advance(10)
        paper.line(
            gettext("Each entry is in the CSV file of this statement: they are too many for paper.")
        )
        return paper.finish()
    paper.table(
        [
            Column(gettext("Time"), MARGIN, 142),
            Column(gettext("Kind"), 146, 216),
            replace(REFERENCE, heading=gettext("Order or bank reference")),
            Column(gettext("Amount"), 376, 458, is_number=True),
            Column(gettext("Balance after"), 462, RIGHT, is_number=True),
        ],
        (_row_of(entry, order) for entry, order in with_orders(entries)),
    )
    return paper.finish()


def _name_of(company: Mapping[str, str]) -> str:
    return company.get("legal_name") or company.get("name", "")


def _write_letterhead(paper: Paper, issued: MonthlyStatement) -> None:
    """The issuer at the top, then the recipient, and beside it what the statement is about."""
    logo = Logo.objects.filter(pk=issued.issuer.get("logo_id")).first()
    if logo is not None:
        paper.picture(bytes(logo.picture))
    below = _write_company(paper, MIDDLE, HEIGHT - MARGIN + 5, issued.issuer, RIGHT - MIDDLE)
    top = min(HEIGHT - 132, below - 12)
    left = _write_company(paper, MARGIN, top, issued.recipient, RECIPIENT_WIDTH)
    y = top - 13
    for label, value in heading_of(issued):
        paper.write(MIDDLE, y, label, colour=GREY)
        y = paper.block(MIDDLE + 95, y + SIZE + 3, [value], RIGHT - MIDDLE - 95) - 12
    paper.y = min(left, y) - 20


def _write_company(
    paper: Paper, x: float, y: float, company: Mapping[str, str], width: float
) -> float:
    """Returns where the last line ends."""
    name = _name_of(company)
    if not name:
        return y
    y = paper.block(x, y, [name], width, size=10, is_bold=True)
    lines = _wrapped_lines(company, width)
    if len(lines) > LETTERHEAD_LINES:
        lines[LETTERHEAD_LINES - 1 :] = [str(SEE_BELOW)]
    return paper.block(x, y - 2, lines, width)


def _write_rest_of_companies(paper: Paper, issued: MonthlyStatement) -> None:
    """Companies whose data the letterhead has no room for."""
    for company, width in ((issued.issuer, RIGHT - MIDDLE), (issued.recipient, RECIPIENT_WIDTH)):
        if len(_wrapped_lines(company, width)) > LETTERHEAD_LINES:
            paper.advance(10)
            paper.line(_name_of(company), is_bold=True)
            paper.line(", ".join(_lines_of(company)), 8)


def _wrapped_lines(company: Mapping[str, str], width: float) -> list[str]:
    return [part for line in _lines_of(company) for part in wrapped(line, width, SIZE)]


def _lines_of(company: Mapping[str, str]) -> Iterator[str]:
    """The lines below the name of a company."""
    yield from company.get("address", "").splitlines()
    if country := company.get("country"):
        yield country_name(country)
    if number := company.get("tax_number"):
        yield gettext("Tax number: %(number)s") % {"number": number}
    if contact := company.get("contact"):
        yield gettext("Contact: %(name)s") % {"name": contact}
    if email := company.get("billing_email"):
        yield email


def _write_sums(paper: Paper, month: Month, account: Account) -> None:
    opening = gettext("Opening balance, %(first)s") % {"first": local_day(month.first)}
    closing = gettext("Closing balance, %(last)s") % {"last": local_day(month.last)}
    *kinds, total = (
        (kind.name, local_number(kind.number), local_amount(kind.amount))
        for kind in month.kinds(account)
    )
    paper.table(
        [
            Column(gettext("Summary"), MARGIN, 306),
            Column(gettext("Entries"), 310, 400, is_number=True),
            Column(gettext("Amount"), 404, RIGHT, is_number=True),
        ],
        [
            Row((opening, "", local_amount(month.opening)), is_bold=True),
            *map(Row, kinds),
            Row(total, is_bold=True),
            Row((closing, "", local_amount(month.closing)), is_bold=True),
        ],
    )


def _write_days(paper: Paper, month: Month) -> None:
    paper.table(
        [
            Column(gettext("Day"), MARGIN, 150),
            Column(gettext("Opening balance"), 154, 286, is_number=True),
            Column(gettext("Change"), 290, 418, is_number=True),
            Column(gettext("Closing balance"), 422, RIGHT, is_number=True),
        ],
        [
            Row(
                (
                    local_day(day.day),
                    local_amount(day.opening),
                    local_amount(day.closing - day.opening),
                    local_amount(day.closing),
                )
            )
            for day in month.days
        ]
        + [
            Row(
                (gettext("Total"), "", local_amount(month.closing - month.opening), ""),
                is_bold=True,
            )
        ],
    )


def _row_of(entry: StatementLine, order: Order | None) -> Row:
    """The entry; below it the goods and the idempotency key of its order, or the note. A reference
    that is too wide for its column is cut there, and whole in the line below."""
    reference = entry.order_reference or bank_reference_of(entry.kind, entry.booking_reference)
    key = (order and order.idempotency_key) or ""
    key = key if len(key) <= KEY_SHOWN else f"{key[:KEY_SHOWN]}…"
    goods = order and f"{order.goods} {order.quantity_in_words}".rstrip()
    below = (goods, key) if goods else (entry.merchant_note,)
    whole, reference = reference, fitting(reference, REFERENCE.right - REFERENCE.left)
    if reference != whole:
        below = (whole, *below)
    return Row(
        (
            local_moment(entry.created_at),
            str(EntryKind(entry.kind).label),
            reference,
            local_amount(entry.amount),
            local_amount(entry.balance_after),
        ),
        " · ".join(filter(None, below)),
    )
