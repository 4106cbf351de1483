"""The closes of days and of wallets. Nobody changes them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import (
    AllValuesCheckboxFilter,
    AutocompleteSelectFilter,
    RangeDateFilter,
)

from core.texts import lazy
from merchants.money.month_file import MONTH_TYPES
from merchants.money.months import find_month
from operators.frame.base import EMPTY, RecordAdmin, amount, link_to_list
from operators.frame.exports import EXPORT
from operators.frame.reader import reader_has, reader_may_view
from wallets.evidence.closes import COLUMNS
from wallets.models import CloseSums, DailyClose, LedgerEntry, WalletClose

STATEMENT = "admin:wallets_wallet_statement"


def money_column(name: str, heading: str) -> Any:
    """A column with one of the sums."""

    @admin.display(description=heading)
    def column(_page: Any, close: CloseSums) -> str:
        return amount(getattr(close, name))

    return column


def sums_in_file() -> dict[str, Any]:
    """The sums as numbers, for the file."""
    names = ("opening", *COLUMNS.values(), "closing")
    return {name: lambda close, name=name: getattr(close, name) for name in names}


def statement_links(wallet_id: int, month: str) -> str:
    """Links to the statement of a closed month, for a reader who may download it."""
    if not reader_has(EXPORT) or not reader_may_view(LedgerEntry):
        return EMPTY
    files = [(one.upper(), reverse(STATEMENT, args=[wallet_id, month, one])) for one in MONTH_TYPES]
    return format_html_join(
        " · ",
        '<a href="{}" class="text-link" aria-label="{} {}">{}</a>',
        ((address, name, month, name) for name, address in files),
    )


class CloseAdmin(RecordAdmin):
    """Balances and sums."""

    opening_balance = money_column("opening", lazy("opening"))
    closing_balance = money_column("closing", lazy("closing"))
    deposits_sum = money_column("deposits", lazy("deposits"))
    payouts_sum = money_column("payouts", lazy("payouts"))
    purchases_sum = money_column("purchases", lazy("purchases"))
    refunds_sum = money_column("refunds", lazy("refunds"))
    credits_sum = money_column("credits", lazy("credits"))
    adjustments_sum = money_column("adjustments", lazy("adjustments"))
    sums = (
        "opening_balance",
        *("deposits_sum", "payouts_sum", "purchases_sum", "refunds_sum", "credits_sum"),
        *("adjustments_sum", "closing_balance"),
    )


@admin.register(DailyClose)
class DailyCloseAdmin(CloseAdmin):
    list_display = ("day", "currency", *CloseAdmin.sums)
    export_columns = {
        "day": lambda close: close.day,
        "currency": lambda close: close.currency,
        **sums_in_file(),
    }
    list_filter = (("currency", AllValuesCheckboxFilter), ("day", RangeDateFilter))
    fields = ("day", "currency", *CloseAdmin.sums, "moved", "closed_at")
    when_empty = lazy("No day is closed yet. A day is closed an hour after its end (UTC).")

    @admin.display(description=lazy("wallets that moved"))
    def moved(self, close: DailyClose) -> str:
        return link_to_list(
            WalletClose,
            str(close.wallets),
            day_from=close.day.isoformat(),
            day_to=close.day.isoformat(),
            wallet__account__currency=close.currency,
        )


@admin.register(WalletClose)
class WalletCloseAdmin(CloseAdmin):
    list_display = ("day", "account", *CloseAdmin.sums)
    export_columns = {
        "day": lambda close: close.day,
        "account": lambda close: close.wallet.account,
        "currency": lambda close: close.wallet.account.currency,
        **sums_in_file(),
    }
    list_filter = (("wallet", AutocompleteSelectFilter), ("day", RangeDateFilter))
    ordering = ("-day", "-id")  # type: ignore[assignment]  # as the indexes of all and of a wallet
    filters_of_links = ("wallet__account__currency",)
    list_select_related = ("wallet__account",)
    fields = ("day", "account", *CloseAdmin.sums, "month")
    when_empty = lazy("No day is closed yet. A day is closed an hour after its end (UTC).")

    def name_of(self, row: WalletClose) -> str:
        return f"{row.wallet.account} · {date_format(row.day)}"

    @admin.display(description=lazy("account"))
    def account(self, close: WalletClose) -> str:
        return f"{close.wallet.account} ({close.wallet.account.currency})"

    @admin.display(description=lazy("statement of the month"))
    def month(self, close: WalletClose) -> str:
        month = find_month(close.wallet.account, f"{close.day:%Y-%m}")
        if month is None:
            return _("The month is not closed yet.")
        return statement_links(close.wallet_id, month.name)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        # A wallet's primary key is its account, as in LedgerEntryAdmin.
        allowed = ("wallet__account__exact", *self.filters_of_links)
        return lookup in allowed or super().lookup_allowed(lookup, value, request)
