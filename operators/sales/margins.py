"""Sales and margins: what was sold in a period, what it cost and what is left, as page and CSV."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe
from unfold.decorators import action
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.models import Account
from catalogue.models import Batch, Product, Shelf
from core.backoffice.staff import names_of_staff_who_may
from core.database.functions import StatementTimeout, statement_timeout
from core.files.table_files import CONTENT_TYPES, write_table
from core.formats import local_day, local_number
from core.numbers import clear_text
from core.texts import lazy
from figures.margins import MOST_DAYS, By, Line, Period, add_up, days_of_month, read_lines
from figures.models import DailyMargin, DailyStock, ExchangeRate
from figures.sales import Figures, today
from merchants.frame.exports import slug_of
from merchants.frame.periods import PeriodForm
from operators.catalogue.price_list_changes import show_problem
from operators.frame.base import (
    BackOfficeAdmin,
    SearchSelect,
    link_to,
    link_to_list,
    site_page,
    staff_of,
    url_of,
)
from operators.frame.exports import send_to_staff
from operators.frame.reader import may_view, reader_has, reader_may_view
from operators.imports.low_prices import (
    LowPrices,
    PricesBusy,
    two_people_lower_rates,
)
from operators.imports.models import ImportKind
from operators.imports.pages import may_import, upload_url
from operators.imports.rate_file import COLUMNS as RATES
from operators.sales.charts import common_currency, draw_charts, name_of_step, report_amount
from operators.sales.ranges import links
from operators.sales.report_files import MARGINS, SEES_MARGINS
from operators.sales.sales_overview import change_of
from operators.sign_in.asked_changes import show_waiting_changes
from operators.upkeep.monitoring.readiness import missing_processes
from topups.models import TopUpProduct

READ_SECONDS = 10
SHOWN = 100  # lines of the page; the file has all
UNPRICED = 10  # batches whose cost is missing
ENTERS_COSTS = "catalogue.change_batch"
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


class MarginForm(PeriodForm):
    """The period, what a line adds up, and what the lines are about: a merchant, a product, both, a
    top-up product or a supplier."""

    by = forms.ChoiceField(
        required=False,
        label=lazy("Lines by"),
        choices=[(by.value, capfirst(NAMES[by])) for by in CHOICES],
        widget=UnfoldAdminSelectWidget,
    )
    account = forms.ModelChoiceField(
        Account.objects.all(), required=False, label=lazy("Merchant"), widget=forms.HiddenInput
    )
    product = forms.ModelChoiceField(
        Product.objects.all(), required=False, label=lazy("Product"), widget=forms.HiddenInput
    )
    topup = forms.ModelChoiceField(
        TopUpProduct.objects.all(), required=False, widget=forms.HiddenInput
    )
    supplier = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)
    field_order = ("since", "until", "account", "product", "by")

    def __init__(self, request: HttpRequest) -> None:
        last = today()
        given = request.GET.dict()
        given.setdefault("until", last.isoformat())
        given.setdefault("since", last.replace(day=1).isoformat())
        given["by"] = given.get("by") or By.PRODUCT.value
        super().__init__(given)
        for name, label in (("since", _("From (UTC)")), ("until", _("To, inclusive (UTC)"))):
            self.fields[name].required = True
            self.fields[name].label = label
            self.fields[name].widget = UnfoldAdminTextInputWidget({"type": "date"})
        searched: list[tuple[str, Any, str]] = [
            ("account", DailyMargin._meta.get_field("account"), _("All merchants")),
            ("product", Shelf._meta.get_field("product"), _("All products")),
        ]
        for name, field, empty in searched:
            if may_view(request, field.remote_field.model):
                select = SearchSelect(field, admin.site)
                select.empty = empty
                self.fields[name].widget = select
                select.choices = self.fields[name].choices  # type: ignore[attr-defined]

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
            topup=values["topup"] and values["topup"].pk,
            supplier=self.data.get("supplier"),
        )

    def by_what(self) -> By:
        """The dimension by which a valid form groups lines."""
        return By(self.cleaned_data["by"] or By.PRODUCT)

    def query(self) -> dict[str, Any]:
        """The parameters of the address of this page."""
        return {
            name: value
            for name, value in self.data.items()
            if name in self.fields and (value or name == "supplier")
        }


@require_safe
def show_margins(request: HttpRequest) -> HttpResponse:
    """The page: totals, a chart, and a table. 403 for people who may not see margins."""
    _check(request)
    form = MarginForm(request)
    context: dict[str, Any] = {"title": _("Sales and margins"), "form": form}
    valid = form.is_valid()
    days = {name: form.cleaned_data.get(name) for name in ("since", "until")}
    context["ranges"] = links("margins", form.query(), **days, today=today())
    if valid:
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
    merchant = form.cleaned_data["account"]
    of = f"of-{slug_of(merchant)}-" if merchant else ""
    name = f"margins-{of}by-{by}-{period.since}-to-{period.until}.{format}"
    is_stock = any(line.stock for line in lines)  # as on the page
    columns = {key: MARGINS[key] for key in MARGINS if is_stock or not key.startswith("stock")}
    headings, first = list(columns.values()), []
    if merchant and by != By.MERCHANT:
        headings, first = ["merchant", *headings], [merchant.name]
    rows = ([*first, *(getattr(line, name) for name in columns)] for line in lines)
    parts = write_table(format, headings, rows, title=_("Sales and margins"))
    return send_to_staff(request, parts, name=name, content_type=CONTENT_TYPES[format])


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
    show_waiting_changes(request)
    if request.method != "POST":
        return view()
    try:
        with two_people_lower_rates(actor=staff_of(request)):
            return view()
    except (LowPrices, PricesBusy) as problem:
        list(messages.get_messages(request))  # drops the message that the rate was changed
        show_problem(request, problem)
        return HttpResponseRedirect(request.get_full_path())


def _check(request: HttpRequest) -> None:
    if not staff_of(request).has_perm(SEES_MARGINS):
        raise PermissionDenied


def _show(form: MarginForm) -> dict[str, Any]:
    period, by, query = form.period(), form.by_what(), form.query()
    # Each merchant has a row for each batch and month, too many for a long period of all of them.
    costs = by is not By.MERCHANT or period.account is not None or period.is_of_one_thing
    costs = costs or (period.until - period.since).days < MOST_DAYS
    lines = read_lines(period, by=by, costs=costs)
    totals = read_lines(period, by=By.KIND)
    days = (min(period.until, today()) - period.since).days + 1  # those that have begun
    before = replace(
        period,
        since=period.since - timedelta(days=days),
        until=period.since - timedelta(days=1),
    )
    earlier = add_up(read_lines(before, by=By.KIND))
    common = common_currency(lines)
    narrowed = [form.cleaned_data[name] for name in ("account", "product", "topup")]
    return {
        "by": NAMES[by],
        "totals": [
            {
                **_cells(line),
                **_compare(line, earlier.get(currency), days),
                "kinds": [
                    (KINDS[one.key], one.quantity, report_amount(one.net, currency))
                    for one in totals
                    if one.currency == currency
                ],
            }
            for currency, line in add_up(totals).items()
        ],
        "charts": draw_charts(read_lines(period, by=period.step), period, step=NAMES[period.step]),
        "currency": common,
        "lines": [{**_cells(line, not common), **_name(line, by, query)} for line in lines[:SHOWN]],
        "sums": [_cells(line, not common) for line in add_up(lines).values()] if lines[1:] else [],
        "more": max(0, len(lines) - SHOWN),
        "stock": any(line.stock for line in lines),
        "stock_at": _counted(period.until),
        "costs": costs,
        "most_days": MOST_DAYS,
        "unpriced": _unpriced(period, totals),
        "file": reverse("margins_file", query=query),
        "spreadsheet": reverse("margins_file", query={**query, "format": "xlsx"}),
        "narrowed": [str(one) for one in narrowed if one]
        + ([period.supplier or _("no supplier")] if period.supplier is not None else []),
        "all": reverse("margins", query={n: query[n] for n in ("by", "since", "until")}),
        "rates": link_to_list(ExchangeRate, _("rate")),
    }


def _counted(until: date) -> str:
    """When the stock of this day, or of the last day before it, was counted."""
    counted = DailyStock.objects.filter(day__lte=until).order_by("-day").first()
    if counted is None:
        return ""
    if counted.day < today():
        return _("on %(day)s") % {"day": date_format(counted.day)}
    at = timezone.localtime(counted.counted_at)
    return _("counted at %(time)s") % {"time": date_format(at, "TIME_FORMAT")}


def _compare(line: Line, earlier: Line | None, days: int) -> dict[str, str]:
    """The net sales of the same number of days before, and the change in percent."""
    if earlier is None or not earlier.net:
        return {}
    figures = Figures(amount=line.net, amount_before=earlier.net)
    text = ngettext("%(net)s the day before", "%(net)s in the %(days)s days before", days) % {
        "net": report_amount(earlier.net, line.currency),
        "days": days,
    }
    return {"before": text, **change_of(figures, days)}


def _unpriced(period: Period, totals: list[Line]) -> dict[str, Any]:
    """The batches of sold codes whose cost is not known, those with the most codes first."""
    codes = sum(line.unknown_codes for line in totals)
    if not codes:
        return {}
    lines = [line for line in read_lines(period, by=By.BATCH) if line.key and line.unknown]
    lines.sort(key=lambda line: -line.unknown)
    batches = Batch.objects.select_related("shelf__product", "shelf__variation__product")
    found = batches.in_bulk([int(line.key) for line in lines[:UNPRICED]])
    rows = []
    for line in lines[:UNPRICED]:
        batch = found[int(line.key)]
        rows.append(
            {
                "batch": link_to(batch, _("Batch %(batch)s") % {"batch": batch.pk}),
                "product": str(batch.shelf),
                "codes": line.unknown,
                "missing": _missing(batch, line.currency),
            }
        )
    return {
        "codes": codes,
        "rows": rows,
        "more": max(0, len(lines) - UNPRICED),
        "without_batch": codes - sum(line.unknown for line in lines),
    }


def _missing(batch: Batch, currency: str) -> str:
    """A link to the page on which to enter what the cost of a batch needs, or who may enter it."""
    if batch.unit_cost is None and reader_has(ENTERS_COSTS):
        return link_to(batch, _("Enter the cost"))
    if batch.unit_cost is None:
        people = names_of_staff_who_may(ENTERS_COSTS)
        return _("Ask %(people)s to enter the cost.") % {"people": people}
    rate = {
        "from": batch.cost_currency,
        "into": currency,
        "day": local_day(batch.imported_at.astimezone(UTC)),
    }
    text = _("Enter a rate from %(from)s to %(into)s of %(day)s or earlier") % rate
    return link_to_list(ExchangeRate, text, q=batch.cost_currency)


def _cells(line: Line, beside: bool = True) -> dict[str, Any]:
    """The figures of a line as texts. An unknown one is empty.

    beside: whether the currency stands beside each amount.
    """
    currency = line.currency if beside else ""
    is_known = bool(line.known_cost) or not line.unknown
    is_valued = bool(line.known_value) or not line.stock_unknown
    is_topup = line.key.startswith("topup")
    percent = ""
    if is_known and line.known_net > 0:
        percent = f"{local_number(100 * line.known_margin / line.known_net, 1)} %"
    return {
        "currency": line.currency,
        "quantity": line.quantity,
        "codes": line.quantity - line.topups,
        "unknown": line.unknown_codes,
        "is_part": bool(line.unknown),
        "is_topup": is_topup,
        "has_no_cost": is_topup or (not is_known and not line.unknown_codes),
        "stock": line.stock,
        "stock_unknown": line.stock_unknown,
        "percent": percent,
        "cost": report_amount(line.known_cost, currency) if is_known else "",
        "margin": report_amount(line.known_margin, currency) if is_known else "",
        "stock_value": report_amount(line.known_value, currency) if is_valued else "",
        **{
            name: report_amount(getattr(line, name), currency)
            for name in ("sold", "paid_back", "net", "known_net")
        },
    }


def _name(line: Line, by: By, query: dict[str, Any]) -> dict[str, str]:
    """The name of a line, and the page that shows its parts."""
    narrower: dict[str, Any] = {}
    kind, _colon, pk = line.key.partition(":")
    match by:
        case By.PRODUCT:
            narrower = {kind: pk, "by": By.BATCH if kind == "product" else By.MERCHANT}
        case By.MERCHANT:
            narrower = {"account": line.key, "by": By.PRODUCT}
        case By.SUPPLIER:
            narrower = {"supplier": line.key, "by": By.BATCH}
        case By.DAY:
            narrower = {"since": line.key, "until": line.key, "by": By.PRODUCT}
        case By.MONTH:
            first, last = days_of_month(line.key)
            narrower = {"since": first, "until": last, "by": By.DAY}
        case By.BATCH if line.key:
            batch = Batch(pk=line.key)
            name = _("Batch %(batch)s") % {"batch": line.key}
            return {"name": name, "url": url_of(batch) if reader_may_view(Batch) else ""}
    names = {By.SUPPLIER: _("No supplier"), By.BATCH: _("No batch")}
    name = name_of_step(line.key, by) if by in (By.DAY, By.MONTH) else line.name
    return {
        "name": name or names.get(by, line.key),
        "url": reverse("margins", query=query | narrower) if narrower else "",
    }
