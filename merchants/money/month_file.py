"""The statement of a closed month as a file, the same for the merchant and for staff."""

from collections.abc import Generator, Iterator
from datetime import UTC, date
from decimal import Decimal

from django.utils.translation import gettext as _

from accounts.companies import LABELS, named
from accounts.models import Account
from core.files.table_files import CONTENT_TYPES, write_table
from core.texts import in_english
from merchants.money.months import DAY, Month, heading_of, month_after, month_rows
from merchants.money.statement import COLUMNS
from merchants.money.statement_pdf import NO_INVOICE, write_pdf
from wallets.models import MonthlyStatement

MONTH_TYPES = {"pdf": "application/pdf", **CONTENT_TYPES}  # by format


def write_month(account: Account, month: Month, format: str) -> Generator[bytes]:
    """Yields the file in parts. `format` is one of MONTH_TYPES."""
    rows = month_rows(month, account)
    if format == "pdf":
        yield write_pdf(account, month)
    elif format == "csv":
        heading = _heading_columns(month.statement(account))
        columns = [*COLUMNS, *heading]
        yield from write_table(
            "csv", columns, ([*row, *heading.values()] for row in rows), mark=False
        )
    else:
        yield from write_table(format, COLUMNS, rows, above=[*_heading(account, month)])


def _heading_columns(issued: MonthlyStatement) -> dict[str, str | date]:
    """The heading data by the names of their columns, which each row of the CSV repeats: it is one
    table, so programs import it. The sums are not among them: they can be computed."""
    with in_english():
        companies = {"issuer": named(issued.issuer), "recipient": named(issued.recipient)}
    return {
        "statement_number": issued.number,
        "period_from": issued.month,
        "period_until": month_after(issued.month) - DAY,
        "date_of_issue": issued.issued_at.astimezone(UTC).date(),
        "account": issued.recipient["name"],
    } | {
        f"{part}_{column}": ", ".join(data.get(column, "").splitlines())
        for part, data in companies.items()
        for column in LABELS
    }


def _heading(account: Account, month: Month) -> Iterator[tuple[str, str, str | int | Decimal]]:
    """The lines of the summary, as in the PDF: a part, a name, a value."""
    issued = month.statement(account)
    yield _("Statement"), _("Kind"), str(NO_INVOICE)
    for name, value in heading_of(issued):
        yield _("Statement"), name, value
    for part, company in ((_("Issuer"), issued.issuer), (_("Recipient"), issued.recipient)):
        for column, label in LABELS.items():
            if text := named(company).get(column):
                yield part, str(label), ", ".join(text.splitlines())
    yield _("Summary"), _("Opening balance"), month.opening
    kinds = month.kinds(account)
    for kind in kinds:
        yield _("Summary"), kind.name, kind.amount
    yield _("Summary"), _("Closing balance"), month.closing
    for kind in kinds:
        yield _("Number of entries"), kind.name, kind.number
