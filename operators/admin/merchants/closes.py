"""The closes of days and of wallets. Nobody changes them. The page of a wallet's close sends the
statement of its month."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import (
    AllValuesCheckboxFilter,
    AutocompleteSelectFilter,
    RangeDateFilter,
)

from core.texts import lazy
from merchants.money.month_file import MONTH_TYPES, write_month
from merchants.money.months import Month, find_month
from operators.frame.base import EMPTY, RecordAdmin, amount, link_to_list, url_of
from operators.frame.exports import EXPORT, send_to_staff
from operators.frame.reader import reader_has
from wallets.closes import COLUMNS
from wallets.models import CloseSums, DailyClose, WalletClose

STATEMENT = "admin:wallets_walletclose_statement"


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


def _month_of(close: WalletClose) -> Month | None:
    """The month of the close; None before its last day is closed."""
    return find_month(close.wallet.account, f"{close.day:%Y-%m}")


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
    list_select_related = ("wallet__account",)
    fields = ("day", "account", *CloseAdmin.sums, "month")
    when_empty = lazy("No day is closed yet. A day is closed an hour after its end (UTC).")

    @admin.display(description=lazy("account"))
    def account(self, close: WalletClose) -> str:
        return f"{close.wallet.account} ({close.wallet.account.currency})"

    @admin.display(description=lazy("statement of the month"))
    def month(self, close: WalletClose) -> str:
        if _month_of(close) is None:
            return _("The month is not closed yet.")
        if not reader_has(EXPORT):
            return EMPTY
        addresses = {one: reverse(STATEMENT, args=[close.pk, one]) for one in MONTH_TYPES}
        links = ((address, one.upper()) for one, address in addresses.items())
        return format_html_join(" · ", '<a href="{}" class="text-link">{}</a>', links)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.statement_view)
        address = "<int:pk>/statement.<slug:format>"
        return [path(address, view, name=STATEMENT.removeprefix("admin:")), *super().get_urls()]

    def statement_view(self, request: HttpRequest, pk: int, format: str) -> HttpResponseBase:
        """The statement of a month of one account, as the merchant downloads it."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        close = get_object_or_404(WalletClose.objects.select_related("wallet__account"), pk=pk)
        month, account = _month_of(close), close.wallet.account
        if format not in MONTH_TYPES:
            raise Http404
        if month is None:
            return HttpResponseRedirect(url_of(close))
        return send_to_staff(
            request,
            write_month(account, month, format),
            name=f"statement-{account.pk}-{month.name}.{format}",
            content_type=MONTH_TYPES[format],
            back=url_of(close),
        )

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        # A wallet's primary key is its account, as in LedgerEntryAdmin.
        allowed = ("wallet__account__exact", "wallet__account__currency")
        return lookup in allowed or super().lookup_allowed(lookup, value, request)
