"""The statement of a closed month as a file, the same for the merchant and for staff."""

from collections.abc import Generator, Iterator
from contextlib import nullcontext
from decimal import Decimal

from django.utils.translation import gettext as _

from accounts.companies import LABELS, named
from accounts.models import Account
from core.files.table_files import CONTENT_TYPES, write_table
from core.texts import in_english
from merchants.money.months import Month, heading_of, month_rows
from merchants.money.statement import COLUMNS
from merchants.money.statement_pdf import NO_INVOICE, write_pdf

MONTH_TYPES = {"pdf": "application/pdf", **CONTENT_TYPES}  # by format


def write_month(account: Account, month: Month, format: str) -> Generator[bytes]:
    """Yields the file in parts. `format` is one of MONTH_TYPES."""
    if format == "pdf":
        yield write_pdf(account, month)
        return
    with in_english() if format == "csv" else nullcontext():
        above = list(_heading(account, month))
    rows = month_rows(month, account)
    yield from write_table(format, COLUMNS, rows, mark=False, above=above)


def _heading(account: Account, month: Month) -> Iterator[tuple[str, str, str | int | Decimal]]:
    """The lines above the entries, as in the PDF: a part, a name, a value."""
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
