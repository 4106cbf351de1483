"""The statement of a closed month as a file, the same for the merchant and for staff."""

from collections.abc import Generator

from accounts.models import Account
from core.files.table_files import CONTENT_TYPES, write_table
from merchants.money.months import Month, month_rows
from merchants.money.statement import COLUMNS
from merchants.money.statement_pdf import write_pdf

MONTH_TYPES = {"pdf": "application/pdf", **CONTENT_TYPES}  # by format


def write_month(account: Account, month: Month, format: str) -> Generator[bytes]:
    """Yields the file in parts. `format` is one of MONTH_TYPES."""
    if format == "pdf":
        yield write_pdf(account, month)
        return
    yield from write_table(format, COLUMNS, month_rows(month, account), mark=False)
