"""The wallet: its balance and its statement."""

from collections.abc import Callable, Iterator
from decimal import Decimal

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_safe

from accounts.models import Account
from merchants.access import Member, member_page
from merchants.pages import show
from merchants.paging import page_of, without_place
from merchants.periods import PeriodForm
from merchants.statement import write_csv, write_json
from wallets.models import EntryKind, LedgerEntry, Wallet
from wallets.selectors import entries_of

Writer = Callable[..., Iterator[bytes]]
FORMATS: dict[str, tuple[str, Writer]] = {
    "csv": ("text/csv; charset=utf-8", write_csv),
    "json": ("application/json", write_json),
}


class StatementFilter(PeriodForm):
    """Which entries."""

    kind = forms.ChoiceField(
        required=False, choices=[("", "All"), *EntryKind.choices], label="Kind of entry"
    )

    def entries(self, account: Account) -> QuerySet[LedgerEntry]:
        """The account's entries that pass; none where the filter cannot be read."""
        if not self.is_valid():
            return LedgerEntry.objects.none()
        kind = self.cleaned_data["kind"]
        return entries_of(
            account,
            kind=EntryKind(kind) if kind else None,
            since=self.begins,
            until=self.ends,
        )


@require_safe
@member_page()
def wallet(request: HttpRequest, member: Member) -> HttpResponse:
    """Balance and statement."""
    return _show(request, member, StatementFilter(request.GET))


@require_safe
@member_page()
def export(request: HttpRequest, member: Member, format: str) -> HttpResponseBase:
    """The statement, as filtered, as a file."""
    filters = StatementFilter(request.GET)
    if not filters.is_valid():
        return _show(request, member, filters, status=400)
    content_type, write = FORMATS[format]
    return StreamingHttpResponse(
        write(filters.entries(member.account), account=member.account),
        content_type=content_type,
        headers={"Content-Disposition": f'attachment; filename="statement.{format}"'},
    )


def balance_of(account: Account) -> Decimal | None:
    """What is in the account's wallet; None where it has none."""
    return Wallet.objects.filter(pk=account.pk).values_list("balance", flat=True).first()


def _show(
    request: HttpRequest, member: Member, filters: StatementFilter, status: int = 200
) -> HttpResponse:
    return show(
        request,
        member,
        "merchants/wallet.html",
        status=status,
        title="Wallet",
        balance=balance_of(member.account),
        filters=filters,
        page=page_of(filters.entries(member.account), query=request.GET),
        query=without_place(request.GET),
    )
