"""The end of a month for finance: what is closed and sent, and what is still open."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from accounts.models import Account
from core.backoffice.staff import names_of_staff_who_may
from core.formats import local_number
from core.texts import inside_sentence, lazy
from figures.sales import today
from merchants.models import Frequency, SentReport
from merchants.money.months import DAY, NAMES, month_after
from operators.frame.base import (
    amount,
    label,
    link_to,
    link_to_list,
    list_url,
    site_page,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.reader import may_view
from operators.money.closes import statement_links
from operators.upkeep.models import ReconcileRun, RunState
from orders.models import LostPurchase
from orders.recovery.settlements import open_purchases
from wallets.approvals import waiting_approvals
from wallets.evidence.closes import COLUMNS
from wallets.models import (
    AnnouncedTransfer,
    BookingApproval,
    DailyClose,
    MonthlyStatement,
    WalletClose,
)
from wallets.transfers import open_transfers

MOST = 1_000  # rows that are counted
SHOWN = 100  # statements of the page
FIRST_YEAR = 2000
ENTERS_COMPANIES = "accounts.change_account"
NAMELESS, SENT = "without-company-data", "sent"  # choices of statements, in the address
DONE, OPEN, OPTIONAL = lazy("done"), lazy("open"), lazy("optional")


@require_safe
def show_month_end(request: HttpRequest) -> HttpResponse:
    """The page for one month; without one, for the last month that has ended."""
    if not may_view(request, DailyClose):
        raise PermissionDenied
    first = _month_of(request)
    month = date_format(first, "F Y")
    closes = list(
        DailyClose.objects.filter(day__gte=first, day__lt=month_after(first)).order_by(
            "currency", "day"
        )
    )
    lines = list(_lines(request, first, closes))
    still_open = sum(line["is_done"] is False for line in lines)
    return site_page(
        request,
        "admin/month_end.html",
        title=_("End of month: %(month)s") % {"month": month},
        verdict=_running(first, closes) if _runs(first) else _verdict(still_open, month),
        still_open=still_open,
        runs=_runs(first),
        lines=lines,
        **_sums(closes, runs=_runs(first)),
        **(_statements_of(request, first) if may_view(request, WalletClose) else {}),
        earlier=_address(first - DAY),
        later=_address(month_after(first)) if month_after(first) <= today() else "",
    )


def _month_of(request: HttpRequest) -> date:
    now = today()
    try:
        month = date.fromisoformat(f"{request.GET.get('month', '')}-01")
    except ValueError:
        month = date.min
    if FIRST_YEAR <= month.year <= now.year + 1:  # there is a month before it and after it
        return month
    return (now.replace(day=1) - DAY).replace(day=1)


def _runs(first: date) -> bool:
    """Whether the month that begins on this day has not ended."""
    return month_after(first) > today()


def _running(first: date, closes: list[DailyClose]) -> str:
    """A sentence about a month that has not ended: there is nothing to complete yet."""
    words = {"month": date_format(first, "F Y"), "last": date_format(month_after(first) - DAY)}
    if not closes:
        return _("%(month)s runs until %(last)s. No day of it is closed yet.") % words
    words["day"] = date_format(max(one.day for one in closes))
    return _("%(month)s runs until %(last)s. The figures include %(day)s.") % words


def _verdict(still_open: int, month: str) -> str:
    if not still_open:
        return _("%(month)s is complete.") % {"month": month}
    return ngettext(
        "%(number)s thing is open before %(month)s can be closed.",
        "%(number)s things are open before %(month)s can be closed.",
        still_open,
    ) % {"number": still_open, "month": month}


def _address(day: date, **query: str) -> str:
    return reverse("month_end", query={"month": f"{day:%Y-%m}", **query})


def _sums(closes: list[DailyClose], *, runs: bool) -> dict[str, Any]:
    """A column for each currency, and lines from the opening balance to the closing one."""
    last = _("Balance of the last closed day") if runs else _("Closing balance")
    months = {one: list(days) for one, days in groupby(closes, attrgetter("currency"))}
    opening = [days[0].opening for days in months.values()]
    closing = [days[-1].closing for days in months.values()]
    moved = [
        (NAMES[kind], [sum(getattr(day, name) for day in days) for days in months.values()])
        for kind, name in COLUMNS.items()
    ]
    lines = [(_("Opening balance"), opening), *moved, (last, closing)]
    return {
        "currencies": [(one, _closes_of(one, days)) for one, days in months.items()],
        "sums": [
            (name, [(one, amount(value)) for one, value in zip(months, values, strict=True)])
            for name, values in lines
        ],
    }


def _closes_of(currency: str, days: list[DailyClose]) -> str:
    """The address of the closes of a month."""
    first, last = days[0].day.isoformat(), days[-1].day.isoformat()
    return list_url(DailyClose, currency=currency, day_from=first, day_to=last)


def _statements_of(request: HttpRequest, first: date) -> dict[str, Any]:
    """The statements of the month, the oldest account first, each with its files; with a choice in
    the address, only those."""
    closes = WalletClose.objects.filter(wallet=OuterRef("wallet"), day__lt=month_after(first))
    issued = _issued(first).select_related("wallet__account").order_by("wallet")
    chosen = {NAMELESS: _nameless(issued), SENT: issued.filter(sent=True)}.get(
        request.GET.get("statements", "")
    )
    sees = may_view(request, Account)
    balance = Subquery(closes.order_by("-day").values("closing")[:1])
    rows = list((issued if chosen is None else chosen).annotate(balance=balance)[: SHOWN + 1])
    is_to_ask = any(not one.recipient.get("legal_name") for one in rows) and not staff_of(
        request
    ).has_perm(ENTERS_COMPANIES)
    return {
        "ask": names_of_staff_who_may(ENTERS_COMPANIES) if is_to_ask else "",
        "all_statements": "" if chosen is None else f"{_address(first)}#statements",
        "statements": [
            {
                "number": one.number,
                "account": link_to(one.wallet.account),
                "company": one.recipient.get("legal_name", ""),
                "company_url": url_of(one.wallet.account) if sees else "",
                "balance": amount(one.balance, one.wallet.account.currency),
                "sent": one.sent,
                "files": statement_links(one.wallet_id, f"{first:%Y-%m}"),
            }
            for one in rows[:SHOWN]
        ],
        "more_statements": len(rows) > SHOWN,
        "wallet_closes": link_to_list(WalletClose, _("closes of wallets")),
        "most_statements": SHOWN,
    }


def _issued(first: date) -> QuerySet[Any]:
    """The statements of the month, each with whether a member received it by email."""
    sent = SentReport.objects.filter(
        report__kind="statement",
        report__every=Frequency.MONTH,
        report__user__membership__account=OuterRef("wallet"),
        first_day=first,
    )
    return MonthlyStatement.objects.filter(month=first).annotate(sent=Exists(sent))


def _nameless(issued: QuerySet[Any]) -> QuerySet[Any]:
    return issued.exclude(recipient__has_key="legal_name")


def _lines(request: HttpRequest, first: date, closes: list[DailyClose]) -> Iterator[dict[str, Any]]:
    """The lines to check, each with its state; only those that this person may see."""
    closed, length = len({close.day for close in closes}), (month_after(first) - first).days
    yield _line(
        _("Days closed"),
        _("%(closed)s of %(days)s") % {"closed": closed, "days": length},
        is_done=None if _runs(first) else closed == length,
        url=list_url(
            DailyClose, day_from=first.isoformat(), day_to=(month_after(first) - DAY).isoformat()
        ),
    )
    yield from _statements(request, first)
    ended = datetime.combine(month_after(first), time(), UTC)
    day, moment = f"{timezone.localtime(ended):%Y-%m-%d %H:%M:%S}".split()
    waiting: list[tuple[str, Any, QuerySet[Any], dict[str, str]]] = [
        (
            _("Bookings that wait for approval"),
            BookingApproval,
            waiting_approvals().filter(asked_at__lt=ended),
            {"state": "waiting", "asked_at_to_0": day, "asked_at_to_1": moment},
        ),
        (
            _("Announced transfers on their way"),
            AnnouncedTransfer,
            open_transfers().filter(announced_at__lt=ended),
            {"state": "on-its-way", "announced_at_to_0": day, "announced_at_to_1": moment},
        ),
        (_("Lost purchases to settle"), LostPurchase, open_purchases(), {"state": "open"}),
    ]
    for name, model, rows, query in waiting:
        if may_view(request, model):
            number = rows.order_by()[:MOST].count()
            yield _line(
                name, local_number(number), is_done=not number, url=list_url(model, **query)
            )
    if may_view(request, ReconcileRun):
        yield from _last_reconcile()


def _statements(request: HttpRequest, first: date) -> Iterator[dict[str, Any]]:
    issued = _issued(first)
    number = issued.count()
    is_shown = bool(number) and may_view(request, WalletClose)

    def url(**query: str) -> str:
        return f"{_address(first, **query)}#statements" if is_shown else ""

    is_done = None if _runs(first) else bool(number)
    yield _line(_("Statements issued"), local_number(number), is_done=is_done, url=url())
    nameless = _nameless(issued).count()
    # Nobody can change an issued statement, so there is nothing to do about it.
    yield _line(
        _("Statements without company data"),
        local_number(nameless),
        is_done=True if number and not nameless else None,
        url=url(statements=NAMELESS),
        is_optional=bool(nameless),
    )
    sent = issued.filter(sent=True).count()
    yield _line(
        _("Statements sent by email"),
        local_number(sent),
        url=url(statements=SENT),
        is_optional=True,
    )


def _last_reconcile() -> Iterator[dict[str, Any]]:
    run = ReconcileRun.objects.order_by("-pk").first()
    if run is None:
        yield _line(
            _("Last reconcile"),
            _("It has not run yet."),
            is_done=False,
            url=list_url(ReconcileRun),
        )
        return
    state = inside_sentence(RunState(run.state).label)
    yield _line(
        _("Last reconcile"),
        capfirst(f"{state}, {time_cell(run.started_at)}"),
        is_done=run.state == RunState.CLEAN,
        url=url_of(run),
    )


def _line(
    name: str,
    value: str,
    *,
    is_done: bool | None = None,
    url: str = "",
    is_optional: bool = False,
) -> dict[str, Any]:
    """A line of the first table. Without a state, nothing has to be done about it."""
    badge = label(str(OPTIONAL), "info") if is_optional else ""
    if is_done is not None:
        badge = label(str(DONE), "success") if is_done else label(str(OPEN), "warning")
    return {"name": name, "value": value, "is_done": is_done, "badge": badge, "url": url}
