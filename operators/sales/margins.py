"""Sales and margins: what was sold in a period, what it cost and what is left, as page and CSV."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from unfold.decorators import action
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.models import Account
from catalogue.models import Batch, Product
from core.database.functions import StatementTimeout, statement_timeout
from core.files.table_files import CONTENT_TYPES, write_table
from core.numbers import clear_text
from core.texts import lazy
from figures.margins import MOST_DAYS, By, Line, Period, add_up, read_lines, without_gaps
from figures.models import ExchangeRate
from figures.sales import today
from merchants.frame.periods import PeriodForm
from operators.frame.base import BackOfficeAdmin, amount, link_to_list, site_page, staff_of, url_of
from operators.frame.exports import send_to_staff
from operators.frame.reader import reader_may_view
from operators.imports.low_prices import LowPrices, PricesBusy, two_people_lower_rates
from operators.imports.models import ImportKind
from operators.imports.pages import may_import, upload_url
from operators.imports.rate_file import COLUMNS as RATES
from operators.sales.report_files import MARGINS, SEES_MARGINS
from operators.upkeep.monitoring.readiness import missing_processes

READ_SECONDS = 10
SHOWN = 100  # lines of the page; the file has all
DAYS = 30  # of the period that is shown first
CHOICES = (By.PRODUCT, By.MERCHANT, By.SUPPLIER, By.BATCH, By.DAY, By.MONTH)
NAMES = {
    By.PRODUCT: lazy("product"),
    By.MERCHANT: lazy("merchant"),
    By.SUPPLIER: lazy("supplier"),
    By.BATCH: lazy("batch"),
    By.DAY: lazy("day"),
    By.MONTH: lazy("month"),
}
KINDS = {"codes": lazy("Voucher codes"), "topups": lazy("Top-ups")}
HEIGHT, STEP, WIDTH = 120, 14, 10  # of the chart, from bar to bar, of a bar


class MarginForm(PeriodForm):
    """The period, and what a line adds up; also one account, product or supplier."""

    by = forms.ChoiceField(
        required=False,
        label=lazy("Lines by"),
        choices=[(by.value, capfirst(NAMES[by])) for by in CHOICES],
        widget=UnfoldAdminSelectWidget,
    )
    account = forms.ModelChoiceField(
        Account.objects.all(), required=False, widget=forms.HiddenInput
    )
    product = forms.ModelChoiceField(
        Product.objects.all(), required=False, widget=forms.HiddenInput
    )
    supplier = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)
    field_order = ("by", "since", "until")

    def __init__(self, request: HttpRequest) -> None:
        last = today()
        given = request.GET.dict()
        given.setdefault("until", last.isoformat())
        given.setdefault("since", (last - timedelta(days=DAYS - 1)).isoformat())
        given.setdefault("by", By.PRODUCT.value)
        super().__init__(given)
        for name in ("since", "until"):
            self.fields[name].required = True
            self.fields[name].widget = UnfoldAdminTextInputWidget({"type": "date"})

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        since, until = cleaned.get("since"), cleaned.get("until")
        days = (until - since).days + 1 if since and until else 0
        if cleaned.get("by") == By.DAY and days > MOST_DAYS:
            text = _(
                "Lines by day show at most %(days)s days."
                " Choose a shorter period, or lines by month."
            )
            self.add_error("by", text % {"days": MOST_DAYS})
        return cleaned

    def period(self) -> Period:
        """The period of a valid form."""
        values = self.cleaned_data
        return Period(
            since=values["since"],
            until=values["until"],
            account=values["account"] and values["account"].pk,
            product=values["product"] and values["product"].pk,
            supplier=self.data.get("supplier"),
        )

    def by_what(self) -> By:
        """The dimension by which a valid form groups lines."""
        return By(self.cleaned_data["by"] or By.PRODUCT)


@require_safe
def show_margins(request: HttpRequest) -> HttpResponse:
    """The page: totals, a chart, and a table. 403 for people who may not see margins."""
    _check(request)
    form = MarginForm(request)
    context: dict[str, Any] = {"title": _("Sales and margins"), "form": form}
    if form.is_valid():
        try:
            with statement_timeout(READ_SECONDS):
                context |= _show(form)
        except StatementTimeout:
            context["late"] = True
    context["stopped"] = missing_processes()
    return site_page(request, "admin/margins.html", **context)


@require_safe
def export_margins(request: HttpRequest) -> HttpResponseBase:
    """All lines as CSV, or as XLSX with `format=xlsx`."""
    _check(request)
    form = MarginForm(request)
    back = reverse("margins", query=request.GET)
    if not form.is_valid():
        return HttpResponseRedirect(back)
    period, by = form.period(), form.by_what()
    try:
        with statement_timeout(READ_SECONDS):
            lines = read_lines(period, by=by)
    except StatementTimeout:
        messages.error(request, _("The figures took too long to read. Choose a shorter period."))
        return HttpResponseRedirect(back)
    format = "xlsx" if request.GET.get("format") == "xlsx" else "csv"
    name = f"margins-by-{by}-{period.since}-to-{period.until}.{format}"
    rows = ([getattr(line, name) for name in MARGINS] for line in lines)
    parts = write_table(format, list(MARGINS.values()), rows)
    return send_to_staff(request, parts, name=name, content_type=CONTENT_TYPES[format], back=back)


@admin.register(ExchangeRate)
class ExchangeRateAdmin(BackOfficeAdmin):
    """Rates that convert the cost of batches into the currency in which their codes are sold."""

    list_display = ("currency", "into", "day", "rate_text")
    list_display_links = ("currency", "day")
    search_fields = ("currency", "into")
    search_help_text = lazy("Currency")
    ordering = ("currency", "into", "-day")
    actions = None
    actions_list = ("import_rates",)
    export_columns = {name: attrgetter(name) for name in RATES}
    is_imported = True

    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        return _with_two_people(
            request, partial(super().changeform_view, request, *args, **options)
        )

    def delete_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        return _with_two_people(request, partial(super().delete_view, request, *args, **options))

    @admin.display(description=lazy("rate"), ordering="rate")
    def rate_text(self, rate: ExchangeRate) -> str:
        return clear_text(rate.rate)

    def has_import_permission(self, request: HttpRequest) -> bool:
        return may_import(staff_of(request), ImportKind.EXCHANGE_RATES)

    @action(
        description=lazy("Import or export rates…"),
        icon="upload_file",
        permissions=["import"],
        url_path="import",
    )
    def import_rates(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(upload_url(ImportKind.EXCHANGE_RATES))


def _with_two_people(request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
    """The answer of a view that may lower a rate. The cost of codes would be lower, too."""
    if request.method != "POST":
        return view()
    try:
        with two_people_lower_rates(actor=staff_of(request)):
            return view()
    except (LowPrices, PricesBusy) as problem:
        list(messages.get_messages(request))  # drops the message that the rate was changed
        messages.error(request, str(problem))
        return HttpResponseRedirect(request.get_full_path())


def _check(request: HttpRequest) -> None:
    if not staff_of(request).has_perm(SEES_MARGINS):
        raise PermissionDenied


def _show(form: MarginForm) -> dict[str, Any]:
    period, by = form.period(), form.by_what()
    lines = read_lines(period, by=by)
    query = {name: value for name, value in form.data.items() if value or name == "supplier"}
    stock = any(line.stock for line in lines)
    return {
        "by": NAMES[by],
        "totals": [
            {**_cells(line), "kind": KINDS[line.key]} for line in read_lines(period, by=By.KIND)
        ],
        "charts": _charts(read_lines(period, by=period.step), period),
        "lines": [{**_cells(line), **_name(line, by, query)} for line in lines[:SHOWN]],
        "sums": [_cells(line) for line in add_up(lines).values()] if len(lines) > 1 else [],
        "more": max(0, len(lines) - SHOWN),
        "stock": stock,
        "file": reverse("margins_file", query=query),
        "spreadsheet": reverse("margins_file", query={**query, "format": "xlsx"}),
        "narrowed": [
            str(form.cleaned_data[name])
            for name in ("account", "product")
            if form.cleaned_data[name]
        ]
        + ([period.supplier or _("no supplier")] if period.supplier is not None else []),
        "all": reverse("margins", query={n: query[n] for n in ("by", "since", "until")}),
        "rates": link_to_list(ExchangeRate, _("rate")),
    }


def _cells(line: Line) -> dict[str, Any]:
    percent = None
    if line.margin is not None and line.net > 0:
        percent = f"{100 * line.margin / line.net:.1f} %"
    return {
        "currency": line.currency,
        "quantity": line.quantity,
        "unknown": line.unknown,
        "stock": line.stock,
        "stock_unknown": line.stock_unknown,
        "percent": percent,
        **{
            name: amount(
                getattr(line, name), line.currency if getattr(line, name) is not None else ""
            )
            for name in ("sold", "paid_back", "net", "cost", "margin", "stock_value")
        },
    }


def _name(line: Line, by: By, query: dict[str, Any]) -> dict[str, str]:
    """The name of a line, and the page that shows its parts."""
    narrower: dict[str, Any] = {}
    kind, _colon, pk = line.key.partition(":")
    match by:
        case By.PRODUCT if kind == "product":
            narrower = {"product": pk, "by": By.BATCH}
        case By.MERCHANT:
            narrower = {"account": line.key, "by": By.PRODUCT}
        case By.SUPPLIER:
            narrower = {"supplier": line.key, "by": By.BATCH}
        case By.DAY:
            narrower = {"since": line.key, "until": line.key, "by": By.PRODUCT}
        case By.BATCH if line.key:
            batch = Batch(pk=line.key)
            return {"name": line.name, "url": url_of(batch) if reader_may_view(Batch) else ""}
    names = {By.SUPPLIER: _("No supplier"), By.BATCH: _("No batch")}
    return {
        "name": line.name or names.get(by, line.key),
        "url": reverse("margins", query=query | narrower) if narrower else "",
    }


def _charts(lines: list[Line], period: Period) -> list[dict[str, Any]]:
    """For each currency, a bar for the net sales of each day or month, and the margin within it."""
    charts = []
    for currency, total in add_up(lines).items():
        bars = without_gaps((line for line in lines if line.currency == currency), period)
        most = max((line.net for line in bars), default=Decimal(0))
        charts.append(
            {
                "currency": currency,
                "step": NAMES[period.step],
                "net": amount(total.net, currency),
                "width": max(len(bars) * STEP, 20 * STEP),
                "height": HEIGHT,
                "bars": [
                    {
                        "name": line.key,
                        "place": number * STEP,
                        "net": amount(line.net, currency),
                        "margin": amount(line.margin, currency) if line.margin is not None else "",
                        **_bar("net", line.net, most),
                        **_bar("margin", line.margin or Decimal(0), most),
                    }
                    for number, line in enumerate(bars)
                ],
                "first": bars[0].key,
                "last": bars[-1].key,
            }
        )
    return charts


def _bar(name: str, value: Decimal, most: Decimal) -> dict[str, int]:
    """The length of a bar and the y of its upper end. What is below zero has none."""
    length = int(value * HEIGHT / most) if value > 0 and most > 0 else 0
    return {f"{name}_length": length, f"{name}_end": HEIGHT - length}
