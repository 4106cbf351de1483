"""The prices of a list beside the regular ones, and the form that sets many of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from unfold.admin import ModelAdmin
from unfold.datasets import BaseDataset
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.form_fields import NumberField
from catalogue.models import PRICE_LIMIT, PriceList, Shelf
from catalogue.price_lists import Target, Terms
from catalogue.selectors import shelf_price_times, since
from core.database.columns import MONEY_DECIMALS
from core.database.functions import database_now
from core.formats import local_number
from core.inputs import is_id
from core.texts import lazy
from figures.price_lines import Key, read_lines, read_terms, stock_costs
from operators.frame.base import (
    EMPTY,
    CappedPaginator,
    amount,
    label,
    link_to,
    staff_of,
    time_cell,
)
from operators.frame.form_fields import in_zone
from operators.imports.pages import sees_cost
from topups.models import TopUpProduct
from topups.selectors import topup_price_times

CHANGE = "catalogue.change_pricelistentry"
PER_PAGE = 25
MOST = 100  # rows in one form
NAMES = ("product__name", "product_id", "variation__name", "pk")
TERMS = {
    "fixed": lazy("a fixed price"),
    "percent": lazy("percent off the regular price"),
    "regular": lazy("the regular price"),
    "none": lazy("not for sale"),
}
KINDS: dict[str, type[Shelf | TopUpProduct]] = {"shelf": Shelf, "topupproduct": TopUpProduct}


def rows_of(kind: str, currency: str) -> QuerySet[Any]:
    """The shelves or top-up products in a currency, in the order of their names."""
    if kind == "shelf":
        shelves = Shelf.objects.filter(product__currency=currency)
        return shelves.select_related("product", "variation__product").order_by(*NAMES)
    return TopUpProduct.objects.filter(currency=currency).order_by("name", "pk")


def key_of(row: Model) -> Key:
    return row._meta.model_name or "", row.pk


def read_prices(rows: Sequence[Any], price_list: PriceList, *, costs: bool) -> None:
    """Sets `regular` and `listed` (the prices now), `then` (the next one in the list, with its
    time) and `cost` on each row, of one unit."""
    keys = [key_of(row) for row in rows]
    terms = read_terms(
        *(model.objects.filter(pk__in=_ids(keys, kind)) for kind, model in KINDS.items())
    )
    lines = read_lines(terms, {price_list.pk}, database_now())
    known = stock_costs(keys) if costs else {}
    for key, row in zip(keys, rows, strict=True):
        regular = lines[key, None]
        line = lines.get((key, price_list.pk), regular)
        row.regular, row.listed, row.currency_code = regular[0][1], line[0][1], price_list.currency
        row.then = next(((at, one) for at, one in line[1:] if one != row.listed), None)
        cost = known.get(key)
        row.cost = None if cost is None else cost * terms[key].step


def _ids(keys: Sequence[Key], kind: str) -> list[int]:
    return [pk for one, pk in keys if one == kind]


class _Prices(ModelAdmin):
    """The rows of a dataset: what each costs in the list of the page."""

    list_per_page = PER_PAGE
    paginator = CappedPaginator
    show_full_result_count = False
    list_disable_select_all = True
    list_display_links = None
    sortable_by = ()
    actions = ("set_prices",)
    extra_context: dict[str, Any]

    @property
    def price_list(self) -> PriceList:
        found: PriceList = PriceList.objects.get(pk=self.extra_context["object"])
        return found

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        costs = ("cost", "margin") if self.model is Shelf and sees_cost(request) else ()
        return ("name", "regular", "listed", "difference", *costs, "starts", "ends")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        price_list, is_shelf = self.price_list, self.model is Shelf
        times = shelf_price_times if is_shelf else topup_price_times
        rows = rows_of(self.opts.model_name or "", price_list.currency)
        annotated: QuerySet[Any] = rows.annotate(**times(price_list.pk))
        return annotated

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        return NAMES if self.model is Shelf else ("name", "pk")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False  # the rows are what is sold, not its prices

    def has_prices_permission(self, request: HttpRequest) -> bool:
        return staff_of(request).has_perm(CHANGE)

    @admin.action(description=lazy("Set prices in this list…"), permissions=["prices"])
    def set_prices(self, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse:
        kind = self.opts.model_name
        query = [("row", f"{kind}-{pk}") for pk in rows.values_list("pk", flat=True)[:MOST]]
        page = reverse("admin:catalogue_pricelist_set_prices", args=[self.extra_context["object"]])
        return HttpResponseRedirect(f"{page}?{urlencode(query)}")

    @admin.display(description=lazy("name"))
    def name(self, row: Any) -> str:
        return link_to(row)

    @admin.display(description=lazy("regular"))
    def regular(self, row: Any) -> str:
        return amount(row.regular)

    @admin.display(description=lazy("in this list"))
    def listed(self, row: Any) -> str:
        return price_text(row.listed)

    @admin.display(description=lazy("difference"))
    def difference(self, row: Any) -> str:
        words = difference(row.regular, row.listed)
        is_fixed = row.entry_price is not None
        return format_html("{} {}", words, label(_("fixed"), "info")) if is_fixed else words

    @admin.display(description=lazy("cost"))
    def cost(self, row: Any) -> str:
        return cost_text(row.cost)

    @admin.display(description=lazy("margin"))
    def margin(self, row: Any) -> str:
        return margin_text(row.listed, row.cost)

    @admin.display(description=lazy("since"))
    def starts(self, row: Any) -> str:
        return EMPTY if row.listed is None else time_cell(since(row))

    @admin.display(description=lazy("until"))
    def ends(self, row: Any) -> str:
        return ends(row)


def cost_text(cost: Decimal | None, currency: str = "") -> str:
    """The mean cost of one unit. Beside prices, its further decimals say nothing."""
    return amount(cost if cost is None or cost < 1 else round(cost, 2), currency)


def margin_text(price: Decimal | None, cost: Decimal | None) -> str:
    """The margin in percent of the price; red if it is a loss."""
    if cost is None or not price:
        return EMPTY
    margin = f"{local_number(100 * (price - cost) / price, 1)} %"
    return label(margin, "danger") if price < cost else margin


def margin_change(old: Decimal | None, new: Decimal | None, cost: Decimal | None) -> str:
    """The margins at two prices; a dash without a cost."""
    if cost is None:
        return EMPTY
    return format_html("{} → {}", margin_text(old, cost), margin_text(new, cost))


class _Dataset(BaseDataset):
    """Reads the prices of the rows of a page at once."""

    model_admin: type[_Prices]
    model: type[Model]

    @property
    def cl(self) -> Any:
        try:
            found = super().cl
        except IncorrectLookupParameters:
            raise Http404 from None  # there is no such page
        page: Any = self.model_admin_instance
        found.result_list = list(found.result_list)
        costs = "cost" in page.get_list_display(self.request)
        read_prices(found.result_list, page.price_list, costs=costs)
        return found


class _ShelfPrices(_Prices):
    search_fields = ("product__name", "variation__name")


class _TopUpPrices(_Prices):
    search_fields = ("name",)


class VoucherDataset(_Dataset):
    tab = True
    model, model_admin, title = Shelf, _ShelfPrices, lazy("Voucher prices")


class TopUpDataset(_Dataset):
    tab = True
    model, model_admin, title = TopUpProduct, _TopUpPrices, lazy("Top-up prices")


def listed_price(row: Any) -> str:
    """The price of a row in the list, in words."""
    return price_text(row.listed, row.currency_code)


def price_text(price: Decimal | None, currency: str = "") -> str:
    """A price of a list. Without one, the row is not for sale."""
    return _("not for sale") if price is None else amount(price, currency)


def ends(row: Any) -> str:
    """The end of a price of the list, and the price after it."""
    if row.then is None:
        return EMPTY
    at, price = row.then
    after = _("then %(price)s") % {"price": price_text(price, row.currency_code)}
    return format_html("{}<br>{}", time_cell(at), after)


def difference(old: Decimal | None, new: Decimal | None) -> str:
    """The difference of two prices in percent."""
    if old is None or new is None or old == new:
        return EMPTY
    return f"{local_number(100 * (new / old - 1), 1, sign='+')} %"


class PeriodForm(forms.Form):
    """The times between which prices of a list hold."""

    valid_from = forms.DateTimeField(
        required=False,
        label=lazy("Applies from"),
        help_text=in_zone(lazy("In {zone}. Empty: now.")),
        widget=UnfoldAdminTextInputWidget(attrs={"type": "datetime-local"}),
    )
    valid_until = forms.DateTimeField(
        required=False,
        label=lazy("Until"),
        help_text=in_zone(lazy("In {zone}. Empty: until you end it.")),
        widget=UnfoldAdminTextInputWidget(attrs={"type": "datetime-local"}),
    )

    @property
    def period(self) -> tuple[datetime | None, datetime | None]:
        return self.cleaned_data["valid_from"], self.cleaned_data["valid_until"]


class PricesOfListForm(PeriodForm):
    """New prices of many rows in a list: the same terms for all, or others in some rows."""

    terms = forms.ChoiceField(
        required=False,
        choices=[("", lazy("No new price")), *TERMS.items()],
        label=lazy("All rows get"),
        widget=UnfoldAdminSelectWidget,
    )
    value = NumberField(
        required=False,
        label=lazy("Price or percent of all rows"),
        widget=UnfoldAdminDecimalFieldWidget,
    )
    first = ("terms", "value", "valid_from", "valid_until")
    field_order = first

    def __init__(self, *arguments: Any, rows: Sequence[Any], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rows = rows
        self.entries: list[tuple[Target, Terms]] = []
        for row in rows:
            words = {"row": row}
            terms = forms.ChoiceField(
                required=False,
                choices=[("", _("as all rows")), *TERMS.items()],
                label=_("Terms of %(row)s") % words,
                widget=UnfoldAdminSelectWidget,
            )
            value = NumberField(
                required=False,
                label=_("Price or percent of %(row)s") % words,
                widget=UnfoldAdminDecimalFieldWidget,
            )
            for name, field in (("terms", terms), ("value", value)):
                field.widget.attrs["aria-label"] = field.label
                self.fields[_name(name, row)] = field

    def first_fields(self) -> list[Any]:
        """The fields about all rows."""
        return [self[name] for name in self.first]

    def table(self) -> Iterator[dict[str, Any]]:
        """The rows with their two fields."""
        for row in self.rows:
            yield {
                "row": row,
                "link": link_to(row),
                "regular": amount(row.regular, row.currency_code),
                "listed": listed_price(row),
                "cost": cost_text(row.cost, row.currency_code),
                "until": ends(row) if row.then else "",
                "terms": self[_name("terms", row)],
                "value": self[_name("value", row)],
            }

    def clean(self) -> None:
        values = self.cleaned_data
        for row in self.rows:
            own, value = values.get(_name("terms", row)), values.get(_name("value", row))
            field = _name("value", row)
            terms = own or values.get("terms")
            if not terms:
                if value is not None:
                    self.add_error(field, _("Choose whether it is a price or percent."))
                continue
            if value is None and not own:
                value, field = values.get("value"), "value"
            problem = problem_of(terms, value)
            if problem is None:
                self.entries.append((target_of_row(row), make_terms(terms, value)))
            elif field not in self.errors:
                self.add_error(field, problem)
        if not self.entries and not self.errors:
            self.add_error(None, _("Choose a price for at least one row."))


def _name(field: str, row: Any) -> str:
    return "-".join(map(str, (field, *key_of(row))))


def target_of_row(row: Any) -> Target:
    return Target(shelf_id=row.pk) if isinstance(row, Shelf) else Target(topup_product_id=row.pk)


def make_terms(terms: str, value: Decimal | None) -> Terms:
    """The terms that a form names, with their price or percent."""
    return Terms(
        for_sale=terms != "none",
        price=value if terms == "fixed" else None,
        percent_off=value if terms == "percent" else None,
    )


def problem_of(terms: str, value: Decimal | None) -> str | None:
    """Says what is wrong with a price or a percentage; None if nothing is."""
    if terms not in ("fixed", "percent"):
        return None if value is None else _("Leave it empty for these terms.")
    if value is None:
        return _("Enter a value.")
    limit, decimals = (PRICE_LIMIT, MONEY_DECIMALS) if terms == "fixed" else (100, 2)
    if 0 < value < limit and value == round(value, decimals):
        return None
    words = _("Enter a number above 0 and below %(limit)s, with up to %(decimals)s decimals.")
    return words % {"limit": local_number(limit), "decimals": decimals}


def rows_of_request(request: HttpRequest, price_list: PriceList) -> list[Any]:
    """The rows that the address names, with their prices. Raises Http404 if it names none."""
    chosen: list[Key] = []
    for text in request.GET.getlist("row")[:MOST]:
        kind, _dash, pk = text.partition("-")
        if kind in KINDS and is_id(pk):
            chosen.append((kind, int(pk)))
    rows = [
        row
        for kind in KINDS
        for row in rows_of(kind, price_list.currency).filter(pk__in=_ids(chosen, kind))
    ]
    if not rows:
        raise Http404
    read_prices(rows, price_list, costs=sees_cost(request))
    return rows
