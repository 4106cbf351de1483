"""The pages of the wallet: balance, statement, balance alert and spend."""

from collections.abc import Callable, Generator
from datetime import UTC, date, timedelta
from decimal import Decimal
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import F, QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
)
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.form_fields import posted
from accounts.models import Account
from core.database.functions import StatementTimeout
from core.files.table_files import CONTENT_TYPES
from core.texts import lazy
from figures.sales import spend_of_account, today
from merchants.frame.exports import File, NoFile, file_view, refuse_invalid
from merchants.frame.forms import LevelField
from merchants.frame.pages import show
from merchants.frame.paging import count_rows, first_page_query, page_of
from merchants.frame.periods import PeriodForm
from merchants.models import BalanceAlert, Role
from merchants.money.balance_alerts import set_balance_alert
from merchants.money.charts import DAYS, charted_days, draw_days, draw_products
from merchants.money.months import month_after
from merchants.money.signed_statement import write_signed_statement
from merchants.money.statement import write_csv, write_json, write_xlsx
from merchants.people.access import Member, member_page
from orders.account_orders import find_by_reference
from wallets.models import AnnouncedTransfer, EntryKind, LedgerEntry, Wallet
from wallets.selectors import entries_of
from wallets.transfers import announced_transfers, bank_details_of, open_transfers

TRANSFERS_SHOWN = 5  # of those that have arrived or were closed
Writer = Callable[..., Generator[bytes]]
FORMATS: dict[str, tuple[str, Writer]] = {
    "csv": (CONTENT_TYPES["csv"], write_csv),
    "xlsx": (CONTENT_TYPES["xlsx"], write_xlsx),
    "json": ("application/json", write_json),
}


class StatementFilter(PeriodForm):
    """Filters ledger entries by day and kind."""

    kind = forms.ChoiceField(
        required=False, choices=[("", lazy("All")), *EntryKind.choices], label=lazy("Kind of entry")
    )

    def entries(self, account: Account) -> QuerySet[LedgerEntry]:
        """The account's entries that match; none if the form is invalid."""
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
    """Shows the balance and the statement."""
    return _show(request, member, StatementFilter(request.GET))


def _explain(request: HttpRequest, member: Member, problem: NoFile) -> HttpResponse:
    """The wallet with the reason why there is no file."""
    filters = StatementFilter(request.GET)
    if filters.is_valid():
        messages.error(request, str(problem))
    if problem.status == HTTPStatus.NOT_FOUND:
        return HttpResponseRedirect(f"{reverse('merchants:wallet')}?{request.GET.urlencode()}")
    return _show(request, member, filters, status=problem.status)


@file_view(_explain)
def export(request: HttpRequest, account: Account, format: str) -> File:
    """The filtered statement as a file."""
    filters = StatementFilter(request.GET)
    refuse_invalid(filters)
    content_type, write = FORMATS[format]
    entries = write(filters.entries(account), account=account)
    return File(entries, content_type, f"statement.{format}", filters)


@file_view(_explain)
def signed_statement(request: HttpRequest, account: Account) -> File:
    """The signed statement of a period."""
    filters = PeriodForm(request.GET)
    refuse_invalid(filters)
    entries = entries_of(account, since=filters.begins, until=filters.ends)
    parts = write_signed_statement(entries, account=account)
    if parts is None:
        raise NoFile(
            HTTPStatus.NOT_FOUND,
            _(
                "No entry of this period is signed yet. The ledger is signed once a day: try again"
                " tomorrow, or choose earlier days."
            ),
        )
    return File(parts, "application/json", "signed-statement.json", filters)


class AlertForm(forms.Form):
    """The level of the balance alert. Empty means no alert."""

    def __init__(self, *arguments: Any, currency: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["level"] = LevelField(
            currency=currency,
            label=_("Level in %(currency)s") % {"currency": currency},
            help_text=_(
                "Owners get an email each time the balance falls below this level. Leave it empty"
                " for no alert."
            ),
        )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER)
def alert(request: HttpRequest, member: Member) -> HttpResponse:
    """Sets the level of the balance alert."""
    account = member.account
    present = alert_of(account)
    form = AlertForm(
        posted(request),
        currency=account.currency,
        initial={"level": present and present.level},
    )
    if not form.is_bound or not form.is_valid():
        return show(
            request,
            member,
            "merchants/alert.html",
            status=422 if form.is_bound else 200,
            title=_("Balance alert"),
            form=form,
        )
    changed = set_balance_alert(
        account=account, level=form.cleaned_data["level"], actor=member.user
    )
    messages.success(
        request,
        _("The balance alert is saved.") if changed else _("The balance alert is unchanged."),
    )
    return HttpResponseRedirect(reverse("merchants:wallet"))


class SpendFilter(forms.Form):
    """Chooses the last 30 days, or a calendar month (UTC) since the account exists."""

    month = forms.ChoiceField(required=False, label=lazy("Period"))

    def __init__(self, data: Any, *, account: Account) -> None:
        super().__init__(data)
        last, first = today(), account.created_at.astimezone(UTC).date()
        number = (last.year - first.year) * 12 + last.month - first.month + 1
        months = [_month_before(last, ago) for ago in range(number)]
        self.fields["month"].choices = [  # type: ignore[attr-defined]
            ("", _("The last %(days)s days") % {"days": DAYS}),
            *((f"{one:%Y-%m}", date_format(one, "YEAR_MONTH_FORMAT")) for one in months),
        ]

    def days(self) -> tuple[date, date]:
        """The first and the last day; of the present month, the last is today."""
        month = self.cleaned_data["month"] if self.is_valid() else ""
        if not month:
            return charted_days()
        first = date.fromisoformat(f"{month}-01")
        return first, min(month_after(first) - timedelta(days=1), today())


def _month_before(day: date, ago: int) -> date:
    """The first day of the month that was `ago` months before that of `day`."""
    years, month = divmod(day.year * 12 + day.month - 1 - ago, 12)
    return date(years, month + 1, 1)


@require_safe
@member_page()
def spend(request: HttpRequest, member: Member) -> HttpResponse:
    """Shows what was spent in the last 30 days or in a month, by day and by product."""
    filters = SpendFilter(request.GET, account=member.account)
    first, last = filters.days()
    about: dict[str, Any] = {"title": _("Spend"), "filters": filters, "first": first, "last": last}
    try:
        spent = spend_of_account(member.account, since=first, until=last)
    except StatementTimeout:
        return show(request, member, "merchants/spend.html", uncounted=True, **about)
    return show(
        request,
        member,
        "merchants/spend.html",
        **about,
        days=draw_days(spent, first=first, last=last),
        products=draw_products(spent),
        total=sum((row.amount for row in spent), Decimal(0)),
    )


def alert_of(account: Account) -> BalanceAlert | None:
    """The account's balance alert, if it has one."""
    return BalanceAlert.objects.filter(pk=account.pk).first()


def balance_of(account: Account) -> Decimal | None:
    """The balance of the account's wallet; None if it has no wallet."""
    return Wallet.objects.filter(pk=account.pk).values_list("balance", flat=True).first()


def _transfers_of(account: Account) -> QuerySet[AnnouncedTransfer]:
    """All transfers that are on their way, and the newest others, newest first."""
    mine = announced_transfers().filter(account=account)
    newest = mine.order_by("-pk").values("pk")[:TRANSFERS_SHOWN]
    on_their_way = open_transfers().filter(account=account).values("pk")
    shown = mine.filter(pk__in=newest.union(on_their_way))  # with OR, it would read all
    return shown.select_related("closed_by").order_by("-pk")


def _show(
    request: HttpRequest, member: Member, filters: StatementFilter, status: int = 200
) -> HttpResponse:
    rows = filters.entries(member.account)
    page = page_of(rows, query=request.GET)
    orders = find_by_reference(entry.order_reference for entry in page.rows)
    return show(
        request,
        member,
        "merchants/wallet.html",
        status=status,
        title=_("Wallet"),
        balance=balance_of(member.account),
        alert=alert_of(member.account),
        may_set_alert=member.may(Role.OWNER),
        bank_details=bank_details_of(member.account),
        transfers=_transfers_of(member.account),
        filters=filters,
        page=page,
        count=count_rows(rows, amount=F("amount")) if page.rows else None,
        entries=[(entry, orders.get(entry.order_reference or "")) for entry in page.rows],
        query=first_page_query(request.GET),
    )
