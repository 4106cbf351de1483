"""Price lists: their entries, and the accounts that have them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminSelectWidget

from accounts.form_fields import MoneyField, NumberField
from accounts.models import Account
from catalogue.models import PRICE_DIGITS, PriceList, PriceListEntry
from catalogue.price_lists import Target, Terms
from core.database.columns import MONEY_DECIMALS
from core.inputs import InputProblem, is_id
from core.texts import lazy
from operators.catalogue.price_list_changes import (
    MOVED,
    Changes,
    EndChange,
    ListChoice,
    NewEntries,
    ask,
    confirms,
    goes_back,
    show_problem,
)
from operators.catalogue.price_list_comparison import compare_prices
from operators.catalogue.price_list_prices import (
    CHANGE,
    TERMS,
    PeriodForm,
    PricesOfListForm,
    TopUpDataset,
    VoucherDataset,
    make_terms,
    rows_of_request,
)
from operators.frame.base import (
    Colours,
    ConditionFilter,
    KeptAdmin,
    SearchSelect,
    amount,
    done_by,
    link_to,
    link_to_list,
    linked,
    page,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.long_lists import LongRecordAdmin
from operators.history.timeline import TimelinePage
from operators.imports.low_prices import LowPrices, PricesBusy, TooManyPrices
from operators.imports.models import ImportKind
from operators.imports.pages import sees_cost, upload_url
from operators.imports.price_list_file import EXPORTED
from operators.sign_in.asked_changes import data_of_form, show_waiting_changes
from topups.models import Fulfilment, TopUpProduct

SHOWN = 100  # entries and accounts on the page of a list


def _search(field: Any, what: str) -> Any:
    return forms.ModelChoiceField(
        field.related_model.objects.all(),
        required=False,
        label=what,
        widget=SearchSelect(field, admin.site, attrs={"class": "unfold-admin-autocomplete"}),
    )


class SubqueryCount(Subquery):
    """The number of rows of a subquery."""

    template = "(SELECT count(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()


def _count(number: int) -> str:
    return f"{SHOWN}+" if number > SHOWN else str(number)


TARGETS = {
    "shelf": lazy("one shelf"),
    "product": lazy("a product with its variations"),
    "topup_product": lazy("a top-up product"),
    "category": lazy("a category"),
    "everything": lazy("everything that we sell"),
}


class EntryForm(PeriodForm):
    """A new entry of a list. Nothing is chosen at first: a forgotten target is not everything."""

    about = forms.ChoiceField(
        choices=[("", lazy("Choose one")), *TARGETS.items()],
        label=lazy("What is it about?"),
        widget=UnfoldAdminSelectWidget,
    )
    shelf = _search(PriceListEntry._meta.get_field("shelf"), lazy("Shelf"))
    product = _search(
        PriceListEntry._meta.get_field("product"), lazy("Product with its variations")
    )
    topup_product = _search(Fulfilment._meta.get_field("product"), lazy("Top-up product"))
    category = _search(PriceListEntry._meta.get_field("category"), lazy("Category"))
    terms = forms.ChoiceField(
        choices=[("", lazy("Choose one")), *TERMS.items()],
        label=lazy("These merchants get"),
        widget=UnfoldAdminSelectWidget,
    )
    price = MoneyField(
        required=False,
        min_value=Decimal(10) ** -MONEY_DECIMALS,
        max_digits=PRICE_DIGITS,
        decimal_places=MONEY_DECIMALS,
        label=lazy("Fixed price of one unit"),
        widget=UnfoldAdminDecimalFieldWidget,
    )
    percent_off = NumberField(
        required=False,
        min_value=Decimal("0.01"),
        max_value=Decimal("99.99"),
        decimal_places=2,
        label=lazy("Percent off"),
        widget=UnfoldAdminDecimalFieldWidget,
    )
    field_order = ("about", *list(TARGETS)[:-1], "terms", "price", "percent_off")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        about = values.get("about")
        for name in list(TARGETS)[:-1]:
            if about and name not in self.errors and bool(values.get(name)) != (name == about):
                problem = _("Choose it.") if name == about else _("Leave it empty.")
                self.add_error(name, problem)
        terms = values.get("terms")
        for name, needed in (("price", terms == "fixed"), ("percent_off", terms == "percent")):
            if name not in self.errors and (values.get(name) is not None) != needed:
                problem = _("Enter a value.") if needed else _("Leave it empty for these terms.")
                self.add_error(name, problem)
        if terms == "fixed" and about == "everything":
            self.add_error("price", _("Choose a target: everything cannot have the same price."))
        return values

    def with_conditions(self) -> Iterator[tuple[forms.BoundField, str, str]]:
        """Each field, and the choice and its value for which the field is needed."""
        needed = {name: ("about", name) for name in list(TARGETS)[:-1]}
        needed |= {"price": ("terms", "fixed"), "percent_off": ("terms", "percent")}
        for field in self:
            yield field, *needed.get(field.name, ("", ""))

    @property
    def entry(self) -> tuple[Target, Terms]:
        values = self.cleaned_data
        targets = {f"{one}_id": values[one] and values[one].pk for one in list(TARGETS)[:-1]}
        value = values["percent_off"] if values["price"] is None else values["price"]
        return Target(**targets), make_terms(values["terms"], value)


class ListForm(forms.Form):
    """The price list of an account."""

    price_list = forms.ModelChoiceField(
        PriceList.objects.none(),
        required=False,
        empty_label=lazy("No list: regular prices"),
        label=lazy("Price list"),
        widget=UnfoldAdminSelectWidget,
    )

    def __init__(self, *arguments: Any, account: Account, **options: Any) -> None:
        super().__init__(*arguments, **options)
        lists = PriceList.objects.filter(currency=account.currency).order_by("name")
        choice: Any = self.fields["price_list"]
        choice.queryset = lists
        self.initial["price_list"] = account.price_list_id


class StateFilter(ConditionFilter):
    title = lazy("state")
    parameter_name = "state"
    conditions = {
        "not-ended": Q(valid_until=None) | Q(valid_until__gt=Now()),
        "holds-now": Q(valid_from__lte=Now()) & (Q(valid_until=None) | Q(valid_until__gt=Now())),
        "begins-later": Q(valid_from__gt=Now()),
        "ended": Q(valid_until__lte=Now()),
    }
    names = {
        "not-ended": lazy("Holds now or later"),
        "holds-now": lazy("Holds now"),
        "begins-later": lazy("Begins later"),
        "ended": lazy("Ended"),
    }


@admin.register(PriceList)
class PriceListAdmin(TimelinePage, KeptAdmin):
    list_display = ("name", "currency", "prices", "account_count")
    list_filter = ("currency",)
    search_fields = ("name",)
    search_help_text = lazy("Name of the list")
    opens_new_rows = True
    ordering = ("name",)
    help_texts = {
        "currency": lazy(
            "Three capital letters, such as USD. Only accounts in this currency can have the list."
        )
    }
    list_before_template = "admin/about_price_lists.html"
    fields = ("name", "currency")
    actions_list = ("compare", "import_prices")
    actions_detail = ("add_price", "compare_list", "import_prices_of_list")

    def get_fields(self, request: HttpRequest, obj: PriceList | None = None) -> tuple[str, ...]:
        return (*self.fields, "prices", "accounts") if obj else self.fields

    def get_readonly_fields(
        self, request: HttpRequest, obj: PriceList | None = None
    ) -> tuple[str, ...]:
        return ("currency", "prices", "accounts") if obj else ()

    def get_changeform_datasets(self, request: HttpRequest) -> Any:
        """The prices of a list that exists."""
        match = request.resolver_match
        key = unquote(match.kwargs.get("object_id", "")) if match else ""
        if not is_id(key) or not PriceList.objects.filter(pk=key).exists():
            return ()
        return (VoucherDataset, TopUpDataset)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.set_prices)
        name = "catalogue_pricelist_set_prices"
        return [path("<path:object_id>/prices/", view, name=name), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[PriceList]:
        lists: QuerySet[PriceList] = super().get_queryset(request)
        holding = PriceListEntry.objects.filter(
            StateFilter.conditions["holds-now"], price_list=OuterRef("pk")
        )
        accounts = Account.objects.filter(price_list_id=OuterRef("pk"))
        return lists.annotate(
            holding=SubqueryCount(holding[: SHOWN + 1]),
            number_of_accounts=SubqueryCount(accounts[: SHOWN + 1]),
        )

    @admin.display(description=lazy("prices"))
    def prices(self, price_list: PriceList) -> str:
        words = _("%(number)s apply now") % {"number": _count(getattr(price_list, "holding", 0))}
        return link_to_list(PriceListEntry, words, price_list__id__exact=price_list.pk)

    @admin.display(description=lazy("accounts"))
    def account_count(self, price_list: PriceList) -> str:
        return _count(getattr(price_list, "number_of_accounts", 0))

    @admin.display(description=lazy("accounts"))
    def accounts(self, price_list: PriceList) -> str:
        having = Account.objects.filter(price_list_id=price_list.pk).order_by("name")
        found = [link_to(one) for one in having[: SHOWN + 1]]
        if len(found) > SHOWN:
            found[SHOWN:] = [_("and more")]
        return format_html_join(", ", "{}", ((one,) for one in found)) or _("no merchant yet")

    def has_prices_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(CHANGE)

    @action(
        description=lazy("Import or export prices…"),
        icon="upload_file",
        permissions=["prices"],
        url_path="import-prices",
    )
    def import_prices(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(upload_url(ImportKind.PRICE_LISTS))

    @action(
        description=lazy("Import or export…"),
        icon="upload_file",
        permissions=["prices"],
        url_path="import-prices",
    )
    def import_prices_of_list(self, request: HttpRequest, object_id: str) -> HttpResponse:
        price_list = self._find(request, object_id)
        return HttpResponseRedirect(upload_url(ImportKind.PRICE_LISTS, price_list=price_list.pk))

    @action(
        description=lazy("Compare price lists…"),
        icon="compare_arrows",
        permissions=["view"],
        url_path="compare",
    )
    def compare(self, request: HttpRequest) -> HttpResponse:
        return compare_prices(request)

    @action(
        description=lazy("Compare…"),
        icon="compare_arrows",
        permissions=["view"],
        url_path="compare",
    )
    def compare_list(self, request: HttpRequest, object_id: str) -> HttpResponse:
        price_list = self._find(request, object_id)
        page = reverse("admin:catalogue_pricelist_compare", query={"right": price_list.pk})
        return HttpResponseRedirect(page)

    def _find(self, request: HttpRequest, object_id: str) -> PriceList:
        price_list: PriceList | None = self.get_object(request, unquote(object_id))
        if price_list is None:
            raise Http404
        return price_list

    def set_prices(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks for the prices of the chosen rows in the list, shows what changes, and asks."""
        if not self.has_prices_permission(request):
            raise PermissionDenied
        price_list = self._find(request, object_id)
        rows = rows_of_request(request, price_list)
        show_waiting_changes(request)
        form = PricesOfListForm(data_of_form(request), rows=rows)
        if form.is_valid() and not goes_back(request):
            change = NewEntries(price_list, form.entries, form.period, staff_of(request))
            try:
                changes = change.preview()
                if not confirms(request, changes):
                    return ask(self, request, price_list, changes, form=form, title=_("Set prices"))
                number = len(change.make())
            except LowPrices as low:
                return ask(
                    self, request, price_list, changes, form=form, title=_("Set prices"), waits=low
                )
            except InputProblem as problem:
                form.add_error(None, str(problem))
            else:
                done = ngettext("%(number)s price is set.", "%(number)s prices are set.", number)
                messages.success(request, done % {"number": number})
                tab = f"#dataset-{rows[0]._meta.model_name}"
                return HttpResponseRedirect(f"{url_of(price_list)}{tab}")
        return page(
            self,
            request,
            "admin/price_list_prices.html",
            obj=price_list,
            title=_("Set prices in %(price_list)s") % {"price_list": price_list},
            form=form,
            sees_cost=sees_cost(request),
            back=url_of(price_list),
        )

    @action(
        description=lazy("Add a price…"), icon="add", permissions=["prices"], url_path="add-price"
    )
    def add_price(self, request: HttpRequest, object_id: str) -> HttpResponse:
        price_list = self._find(request, object_id)
        show_waiting_changes(request)
        form = EntryForm(data_of_form(request))
        if form.is_valid() and not goes_back(request):
            change = NewEntries(price_list, [form.entry], form.period, staff_of(request))
            try:
                changes = change.preview()
                if confirms(request, changes):
                    (made,) = change.make()
                    messages.success(request, f"{describe(made)}.")
                    return HttpResponseRedirect(url_of(price_list))
                return ask(self, request, price_list, changes, form=form, title=_("Add a price"))
            except LowPrices as low:
                return ask(
                    self, request, price_list, changes, form=form, title=_("Add a price"), waits=low
                )
            except InputProblem as problem:
                form.add_error(None, str(problem))
        return page(
            self,
            request,
            "admin/price_entry.html",
            obj=price_list,
            title=_("Add a price to %(price_list)s") % {"price_list": price_list},
            form=form,
            question=_("Prices of %(price_list)s, in %(currency)s")
            % {"price_list": price_list, "currency": price_list.currency},
            facts=[
                _(
                    "The most specific price counts: shelf, then product or top-up product, then"
                    " category, then everything."
                ),
                _("A price that holds for the same target ends when this one begins."),
            ],
            button=_("Show the changes"),
            back=url_of(price_list),
        )


@admin.register(PriceListEntry)
class PriceListEntryAdmin(TimelinePage, LongRecordAdmin):
    """The entries of all lists. An entry that has begun can only be ended."""

    list_display = ("about", "says", "price_list", "valid_from", "until", "state")
    list_filter = (StateFilter, ("price_list", AutocompleteSelectFilter))
    filters_of_links = ("shelf__id__exact", "topup_product_id__exact")
    served = (*filters_of_links, "price_list__id__exact")
    search_fields = ("product__name", "shelf__product__name", "category__name")
    search_help_text = lazy("Product or category")
    fields = ("list_link", "about", "says", "valid_from", "until", "state", "adder", "ender")
    actions_detail = ("end",)
    list_link = linked("price_list", lazy("price list"))
    adder = done_by("added_by", lazy("added by"))
    ender = done_by("ended_by", lazy("ended by"))
    export_columns = EXPORTED
    is_imported = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[PriceListEntry]:
        entries: QuerySet[PriceListEntry] = super().get_queryset(request)
        names = TopUpProduct.objects.filter(pk=OuterRef("topup_product_id")).values("name")
        return entries.select_related(
            *("price_list", "category", "product", "shelf__product", "shelf__variation__product")
        ).annotate(now=Now(), topup_name=Subquery(names))

    def reads_too_much(self, request: HttpRequest, filters: set[str], term: str) -> bool:
        return bool(term) or super().reads_too_much(request, filters, term)

    def name_of(self, row: PriceListEntry) -> str:
        return f"{target_of(row)} · {row.price_list}"

    @admin.display(description=lazy("about"))
    def about(self, entry: PriceListEntry) -> str:
        return target_of(entry)

    @admin.display(description=lazy("terms"))
    def says(self, entry: PriceListEntry) -> str:
        return terms_of(entry)

    @admin.display(description=lazy("until"), ordering="valid_until")
    def until(self, entry: PriceListEntry) -> str:
        return time_cell(entry.valid_until, never=_("open"))

    @display(
        description=lazy("state"),
        label=Colours(
            {
                lazy("holds now"): "success",
                lazy("begins later"): "info",
                lazy("ended"): "warning",
            }
        ),
    )
    def state(self, entry: PriceListEntry) -> str:
        now: datetime = entry.now  # type: ignore[attr-defined]  # get_queryset
        if entry.valid_from > now:
            return _("begins later")
        return _("ended") if entry.valid_until and entry.valid_until <= now else _("holds now")

    def has_end_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(CHANGE)

    @action(
        description=lazy("End…"),
        icon="undo",
        permissions=["end"],
        url_path="end",
        variant=ActionVariant.DANGER,
    )
    def end(self, request: HttpRequest, object_id: str) -> HttpResponse:
        entry = self.get_object(request, unquote(object_id))
        if entry is None:
            raise Http404
        show_waiting_changes(request)
        change = EndChange(entry, staff_of(request))
        try:
            changes = change.preview()
        except (PricesBusy, TooManyPrices) as problem:
            messages.error(request, str(problem))
            return HttpResponseRedirect(url_of(entry))
        except InputProblem:  # it has ended, and `make` says so
            changes = Changes([])
        moved = False
        if changes.must_agree and "confirmed" not in request.POST:
            messages.warning(request, changes.must_agree)
        if request.method == "POST":
            if confirms(request, changes):
                try:
                    change.make()
                    messages.success(request, _("The price has ended."))
                except InputProblem as problem:
                    show_problem(request, problem)
                return HttpResponseRedirect(url_of(entry.price_list))
            moved = True
        return page(
            self,
            request,
            "admin/price_list_changes.html",
            obj=entry,
            changes=changes,
            hidden=[("confirmed", "1"), ("seen", changes.digest)],
            title=_("End a price"),
            question=_("End this price of %(price_list)s? %(entry)s.")
            % {"price_list": entry.price_list, "entry": describe(entry)},
            facts=[
                *([MOVED] if moved else []),
                _(
                    "From now on, a less specific price of the list applies, or else the regular"
                    " price."
                ),
            ],
            button=changes.button if changes.must_agree else _("End the price"),
            danger=True,
            back=url_of(entry),
        )


def describe(entry: PriceListEntry) -> str:
    """An entry in words, such as "Gift card: 9.50 USD"."""
    return f"{target_of(entry)}: {terms_of(entry)}"


def target_of(entry: PriceListEntry) -> str:
    """The target of an entry in words."""
    if entry.topup_product_id is not None:
        name = getattr(entry, "topup_name", None)
        return _("Top-up %(product)s") % {
            "product": name or TopUpProduct.objects.get(pk=entry.topup_product_id)
        }
    if entry.shelf is not None:
        return str(entry.shelf)
    if entry.product is not None:
        return _("%(product)s with its variations") % {"product": entry.product}
    if entry.category is not None:
        return _("Category %(category)s") % {"category": entry.category}
    return _("Everything")


def terms_of(entry: PriceListEntry) -> str:
    """The terms of an entry in words."""
    if not entry.for_sale:
        return _("not for sale")
    if entry.price is not None:
        return amount(entry.price, entry.price_list.currency)
    if entry.percent_off is not None:
        return _("%(percent)s %% off") % {"percent": amount(entry.percent_off)}
    return _("the regular price")


def choose_list(model_admin: Any, request: HttpRequest, account: Account) -> HttpResponse:
    """Asks which price list the account has, and assigns it."""
    show_waiting_changes(request)
    form = ListForm(data_of_form(request), account=account)
    if form.is_valid() and not goes_back(request):
        chosen = form.cleaned_data["price_list"]
        change = ListChoice(account, chosen, staff_of(request))
        try:
            changes = change.preview()
            if not confirms(request, changes):
                return ask(
                    model_admin,
                    request,
                    account,
                    changes,
                    form=form,
                    title=_("Choose a price list"),
                )
            change.make()
        except LowPrices as low:
            title = _("Choose a price list")
            return ask(model_admin, request, account, changes, form=form, title=title, waits=low)
        except InputProblem as problem:
            messages.error(request, str(problem))
        else:
            messages.success(
                request,
                _("Price list of %(account)s: %(chosen)s.")
                % {"account": account, "chosen": chosen or _("none")},
            )
        return HttpResponseRedirect(url_of(account))
    return page(
        model_admin,
        request,
        "admin/confirm.html",
        obj=account,
        title=_("Choose a price list"),
        form=form,
        question=_("Which prices does %(account)s pay?") % {"account": account},
        facts=[_("The API shows and sells at these prices from now on. Open orders keep theirs.")],
        button=_("Show the changes"),
        back=url_of(account),
    )
