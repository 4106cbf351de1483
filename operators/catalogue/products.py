"""The catalogue: categories, products with variations and shelves, stock, merchant references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.db.models import (
    Case,
    Exists,
    F,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    When,
)
from django.db.models.functions import Coalesce, Now
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.translation import gettext as _
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import AutocompleteSelectFilter, DropdownFilter
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from audit.models import AuditAction
from audit.services import record_changes
from catalogue.models import (
    Batch,
    Category,
    PriceListEntry,
    Product,
    ReferenceLink,
    Shelf,
    ShelfPriceChange,
    Variation,
    VoucherCode,
)
from catalogue.prices import set_prices
from catalogue.selectors import RegularPrice
from catalogue.stock.batches import STATES
from core.database.columns import NAME_LENGTH
from core.formats import local_day, local_number
from core.texts import lazy
from figures.models import DailySales
from figures.price_lines import stock_costs
from operators.catalogue.batches import HAS_STOCK, LEFT
from operators.catalogue.price_changes import (
    LowPricePage,
    PricesPage,
    next_price,
    price_and_next,
)
from operators.catalogue.price_list_prices import cost_text, margin_text
from operators.catalogue.stock_levels import LOW_STOCK, level_of, shelves_to_fill
from operators.frame.base import (
    CURRENCY_HELP,
    EMPTY,
    BackOfficeAdmin,
    KeptAdmin,
    amount,
    cut_zeros,
    link_to,
    link_to_list,
    linked,
    save_changed,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.form_fields import PriceField, PriceForm, QuantityStepField
from operators.frame.long_lists import LOOKED_AT
from operators.history.timeline import TimelinePage
from operators.imports.models import ImportKind
from operators.imports.pages import may_import, sees_cost, upload_url
from orders.models import Order


@admin.register(Category)
class CategoryAdmin(BackOfficeAdmin):
    list_display = ("name", "id", "active")
    help_texts = {"active": lazy("If off, none of its products is for sale.")}
    search_help_text = lazy("Name of the category")
    list_filter = ("active",)
    search_fields = ("name",)
    ordering = ("name",)
    actions = None

    def can_be_deleted(self, obj: Category) -> bool:
        return not any(
            rows.exists() for rows in (obj.products, obj.topup_products, obj.price_entries)
        )


class VariationForm(forms.ModelForm):  # type: ignore[type-arg]
    """A variation. A new one gets its price and step with it."""

    price = PriceField()
    quantity_step = QuantityStepField(initial=1, required=False)

    class Meta:
        model = Variation
        fields = ["name", "active"]


class VariationInline(TabularInline):
    """Variations are switched off, never removed: orders and merchants refer to their ids."""

    model = Variation
    form = VariationForm
    ordering = ("id",)
    extra = 0
    can_delete = False
    hide_title = True

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """With prices for new variations. Others have them in the table of shelves."""
        is_new = obj is None or isinstance(self, NewVariationInline)
        may_price = is_new and request.user.has_perm("catalogue.change_shelf")
        return ("name", *(("price", "quantity_step") if may_price else ()), "active")


class NewVariationInline(VariationInline):
    """New variations of a product. Those that it has are in its table of shelves."""

    verbose_name_plural = lazy("new variations")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Variation]:
        return Variation.objects.none()


class ShelfForm(PriceForm):
    quantity_step = QuantityStepField()

    class Meta:
        model = Shelf
        fields = ["price", "quantity_step"]


class ShelfRowForm(ShelfForm):
    """A shelf with its variation, in the table of a product."""

    variation_name = forms.CharField(
        label=lazy("Sold as"), max_length=NAME_LENGTH, widget=UnfoldAdminTextInputWidget
    )
    variation_active = forms.BooleanField(
        label=lazy("Active"), required=False, widget=UnfoldBooleanSwitchWidget
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is None:  # a formset has an empty form
            return
        variation = self.instance.variation
        for name, value in (
            ("variation_name", variation.name if variation else _("the product itself")),
            ("variation_active", (variation or self.instance.product).active),
        ):
            self.initial[name], self.fields[name].disabled = value, variation is None

    def save_variation(self) -> None:
        """Saves the changed columns of the variation."""
        names = [name for name in ("name", "active") if f"variation_{name}" in self.changed_data]
        for name in names:
            setattr(self.instance.variation, name, self.cleaned_data[f"variation_{name}"])
        if names:
            self.instance.variation.save(update_fields=names)


@admin.display(description=lazy("codes in stock"))
def codes_in_stock(shelf: Shelf) -> str:
    """The stock as pages about one shelf show it."""
    return local_number(shelf.available_stock)


class ShelfInline(TabularInline):
    """Prices and steps of the shelves. A trigger makes a shelf for each product and variation."""

    model = Shelf
    form = ShelfForm
    verbose_name_plural = lazy("prices and stock")
    readonly_fields = ("sold_as", "cost", "margin", "since", "planned", codes_in_stock)
    extra = max_num = 0
    can_delete = False
    hide_title = True
    costs: Mapping[tuple[str, int], Decimal] = {}
    readonly_preprocess_fields = {"price": cut_zeros}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Shelf]:
        shelves: QuerySet[Shelf] = super().get_queryset(request)
        at = Coalesce("starts_at", "changed_at")
        changes = ShelfPriceChange.objects.annotate(at=at).filter(shelf=OuterRef("pk"))
        rows = shelves.select_related("variation", "product").annotate(
            price_since=Subquery(changes.filter(at__lte=Now()).order_by("-pk").values("at")[:1])
        )
        return rows.order_by(F("variation_id").asc(nulls_first=True))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str | Any, ...]:
        shelves = list(obj.shelves.all())
        if sees_cost(request):
            self.costs = stock_costs([("shelf", shelf.pk) for shelf in shelves])
        money = ("cost", "margin") if self.costs else ()
        planned = ("planned",) if any(shelf.next_price is not None for shelf in shelves) else ()
        is_row = _may_change_variations(request)
        return (
            "variation_name" if is_row else "sold_as",
            "price",
            *money,
            "since",
            *planned,
            "quantity_step",
            codes_in_stock,
            *(["variation_active"] if is_row else []),
        )

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = ShelfRowForm if _may_change_variations(request) else ShelfForm
        return super().get_formset(request, obj, **{"form": form, **kwargs})

    @admin.display(description=lazy("cost"))
    def cost(self, shelf: Shelf) -> str:
        return cost_text(self._cost(shelf))

    @admin.display(description=lazy("margin"))
    def margin(self, shelf: Shelf) -> str:
        return margin_text(shelf.price, self._cost(shelf))

    def _cost(self, shelf: Shelf) -> Decimal | None:
        """The cost of one unit."""
        cost = self.costs.get(("shelf", shelf.pk))
        return None if cost is None else cost * shelf.quantity_step

    @admin.display(description=lazy("since"))
    def since(self, shelf: Any) -> str:
        return time_cell(shelf.price_since)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=lazy("sold as"))
    def sold_as(self, shelf: Shelf) -> str:
        return shelf.variation.name if shelf.variation else _("the product itself")

    @admin.display(description=lazy("next price"))
    def planned(self, shelf: Shelf) -> str:
        return next_price(shelf, shelf.product.currency) or EMPTY


def _may_change_variations(request: HttpRequest) -> bool:
    """Whether the table of shelves changes variations, too."""
    return request.user.has_perms(["catalogue.change_shelf", "catalogue.change_variation"])


class NewProductForm(forms.ModelForm):  # type: ignore[type-arg]
    """A product, with the price of the shelf that the database makes for it."""

    price = PriceField()

    class Meta:
        model = Product
        fields = ["name", "category", "type", "currency", "active"]


def _set_step(shelf: Shelf, step: int) -> None:
    """Sets the step of a new shelf."""
    if step != shelf.quantity_step:
        changes = {"quantity_step": (shelf.quantity_step, step)}
        shelf.quantity_step = step
        shelf.save(update_fields=["quantity_step"])
        record_changes([(shelf, changes)])


@admin.register(Product)
class ProductAdmin(LowPricePage, TimelinePage, BackOfficeAdmin):
    inlines = (ShelfInline, VariationInline)
    list_display = ("name", "id", "category", "type", "price", "stock", "active")
    list_filter = ("active", "type", ("category", AutocompleteSelectFilter), "currency")
    list_select_related = ("category",)
    search_fields = ("name", "id__exact", "variations__name")
    search_help_text = lazy("Product, variation or product ID")
    ordering = ("name",)
    autocomplete_fields = ("category",)
    fields = ("name", "category", "type", "currency", "active")
    help_texts = {
        "type": lazy("Merchants read it in the API."),
        "currency": CURRENCY_HELP,
        "active": lazy("If off, neither it nor its variations are for sale."),
    }
    actions = None
    actions_list = ("import_catalogue",)
    its_category = linked("category")

    def has_import_permission(self, request: HttpRequest) -> bool:
        return may_import(staff_of(request), ImportKind.CATALOGUE)

    @action(
        description=lazy("Import or export the catalogue…"),
        icon="upload_file",
        permissions=["import"],
        url_path="import",
    )
    def import_catalogue(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(upload_url(ImportKind.CATALOGUE))

    def rows_with_prices(self, object_id: str) -> list[QuerySet[Any]]:
        return [Shelf.objects.filter(product=int(object_id))]

    def get_inlines(self, request: HttpRequest, obj: Product | None) -> Any:
        if obj is None:
            return (VariationInline,)  # saving the product makes its shelves
        return (
            (ShelfInline, NewVariationInline) if _may_change_variations(request) else self.inlines
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Product]:
        price = RegularPrice(
            "shelves__price", "shelves__next_price", "shelves__next_price_from", Now()
        )
        products: QuerySet[Product] = super().get_queryset(request)
        return products.annotate(
            own_price=Max(price, filter=Q(shelves__variation=None)),
            lowest=Min(price),
            highest=Max(price),
            stock_in_all=Sum("shelves__available_stock"),
        )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        newest = Product.objects.order_by("-pk").values("currency")[:1]
        return {**dict(*newest), **super().get_changeform_initial_data(request)}

    def get_form(
        self, request: HttpRequest, obj: Product | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = {} if obj else {"form": NewProductForm}
        return super().get_form(request, obj, change, **(form | kwargs))

    def get_fields(self, request: HttpRequest, obj: Product | None = None) -> tuple[str, ...]:
        if not self.has_change_permission(request, obj):
            return ("name", "its_category", *self.fields[2:])
        may_price = obj is None and request.user.has_perm("catalogue.change_shelf")
        return (*self.fields, "price") if may_price else self.fields

    def get_readonly_fields(
        self, request: HttpRequest, obj: Product | None = None
    ) -> tuple[str, ...]:
        # The prices of past orders are in this currency.
        sold = ("currency",) if obj is not None and _is_sold(obj) else ()
        return ("its_category", *sold)

    @admin.display(description=lazy("price"), ordering="own_price")
    def price(self, product: Product) -> str:
        """The price of the product itself, or those of its variations if it has none."""
        own, lowest, highest = product.own_price, product.lowest, product.highest  # type: ignore[attr-defined]
        if own is not None or lowest == highest:
            return amount(lowest if own is None else own, product.currency)
        return _("%(first)s to %(last)s") % {
            "first": amount(lowest),
            "last": amount(highest, product.currency),
        }

    @admin.display(description=lazy("in stock"), ordering="stock_in_all")
    def stock(self, product: Product) -> str:
        return local_number(getattr(product, "stock_in_all", None) or 0)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: Any) -> None:
        """Saves only the changed columns: a purchase may have changed the stock meanwhile."""
        formset.save(commit=False)
        for obj in formset.new_objects:
            obj.save()
        for obj, _names in formset.changed_objects:
            row = next(row for row in formset.initial_forms if row.instance is obj)
            save_changed(obj, row)
            if isinstance(row, ShelfRowForm):
                row.save_variation()
        if formset.model is not Variation:
            return
        request.new_variations = formset.new_objects  # type: ignore[attr-defined]
        if request.user.has_perm("catalogue.change_shelf"):
            new = [row for row in formset.extra_forms if row.instance in formset.new_objects]
            for row in new:
                _set_step(row.instance.shelf, row.cleaned_data["quantity_step"] or 1)
            prices = {
                row.instance.shelf.pk: (None, price)
                for row in new
                if (price := row.cleaned_data["price"]) is not None
            }
            set_prices(rows=Shelf.objects.all(), prices=prices, actor=staff_of(request))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: Any) -> None:
        super().save_related(request, form, formsets, change)
        may_price = "price" in self.get_fields(request)
        if not change and may_price and form.cleaned_data.get("price") is not None:
            shelf = form.instance.shelves.get(variation=None)
            shelf.price = form.cleaned_data["price"]
            shelf.save(update_fields=["price"])

    def response_post_save_change(self, request: HttpRequest, obj: Product) -> HttpResponse:
        """Stays on the page for the prices of new variations."""
        if getattr(request, "new_variations", None):
            return self.response_post_save_add(request, obj)
        answer: HttpResponse = super().response_post_save_change(request, obj)
        return answer

    def response_post_save_add(self, request: HttpRequest, obj: Product) -> HttpResponse:
        """Leads on to the product's page, where its new shelves get the prices they lack. The own
        shelf of a product with variations needs none."""
        shelves = obj.shelves.all()
        if obj.variations.exists():  # usually, only these are sold
            shelves = shelves.filter(variation__isnull=False)
        if shelves.filter(price=None).exists():
            messages.info(
                request,
                _("Set the prices that are missing below. What has no price is not for sale."),
            )
        elif may_import(staff_of(request), ImportKind.CODES) and not obj.shelves.filter(
            available_stock__gt=0
        ):
            text = _('Next: <a href="{}" class="text-link">import the codes</a>.')
            messages.info(request, format_html(text, upload_url(ImportKind.CODES)))
        return HttpResponseRedirect(url_of(obj))

    def can_be_deleted(self, obj: Product) -> bool:
        return next(_holds(obj), None) is None

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """A product can be deleted only if nothing refers to its shelves."""
        products, variations = _("products"), _("variations")
        deleted, counts = [], {products: 0, variations: 0}
        protected = []
        for product in objs:
            protected += [
                _("%(count)s %(what)s of %(product)s")
                % {"count": count, "what": what, "product": product}
                for what, count in _holds(product)
            ]
            rows = list(product.variations.all())
            deleted += [
                _("Product: %(product)s") % {"product": product},
                [_("Variation: %(name)s") % {"name": each.name} for each in rows],
            ]
            counts[products] += 1
            counts[variations] += len(rows)
        return deleted, counts, set(), protected

    def delete_model(self, request: HttpRequest, obj: Product) -> None:
        with transaction.atomic():
            obj.shelves.all().delete()
            obj.variations.all().delete()
            super().delete_model(request, obj)


def _is_sold(product: Product) -> bool:
    sales = (DailySales.objects.all(), _newest_orders())
    return any(rows.filter(shelf__product=product).exists() for rows in sales)


def _newest_orders() -> QuerySet[Order]:
    """The orders that may not be counted as sales yet, and some more."""
    newest = Order.objects.aggregate(newest=Max("pk"))["newest"] or 0
    return Order.objects.filter(pk__gt=newest - LOOKED_AT)


def _holds(product: Product) -> Iterator[tuple[str, int]]:
    """The rows that prevent the product's deletion: kinds, with counts of at most 1000.

    Held codes come last, because their index begins with the hold.
    """
    shelves = list(product.shelves.values_list("pk", flat=True))
    codes = VoucherCode.objects.filter(shelf__in=shelves)
    rows_of = {
        _("codes in stock"): codes.filter(STATES["in-stock"]),
        _("batches"): Batch.objects.filter(shelf__in=shelves),
        _("days with sales"): DailySales.objects.filter(shelf__in=shelves),
        _("new orders"): _newest_orders().filter(shelf__in=shelves),
        _("reference links"): ReferenceLink.objects.filter(shelf__in=shelves),
        _("price list entries"): PriceListEntry.objects.filter(
            Q(shelf__in=shelves) | Q(product=product)
        ),
        _("held or void codes"): codes.filter(hold__isnull=False),
    }
    for what, rows in rows_of.items():
        if count := rows[:1000].count():
            yield what, count


class StockFilter(DropdownFilter):
    title = lazy("stock")
    parameter_name = "stock"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("none", _("On sale without codes")),
            ("low", _("On sale with 1 to %(most)s codes") % {"most": LOW_STOCK - 1}),
            ("some", _("In stock")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Shelf]) -> QuerySet[Shelf]:
        match self.value():
            case "none":
                return queryset.filter(pk__in=shelves_to_fill(), available_stock=0)
            case "low":
                low = queryset.filter(available_stock__gt=0, available_stock__lt=LOW_STOCK)
                return low.filter(pk__in=shelves_to_fill())
            case "some":
                return queryset.filter(available_stock__gt=0)
        return queryset


@admin.register(Shelf)
class ShelfAdmin(PricesPage, TimelinePage, KeptAdmin):
    """Prices and stock of shelves. Code imports and purchases set `available_stock`."""

    form = ShelfForm
    list_before_template = "admin/about_shelves.html"
    list_display = (
        "shelf_name",
        "product_number",
        "variation_number",
        "price_text",
        "quantity_step",
        "stock",
    )
    list_filter = (
        StockFilter,
        "product__active",
        ("product__category", AutocompleteSelectFilter),
    )
    search_fields = ("product__name", "variation__name", "product__id__exact")
    search_help_text = lazy("Product, variation or product ID")
    ordering = ("available_stock",)
    fields = (
        *("product_link", "variation_name", "currency", "price", "next_price_text"),
        *("quantity_step", codes_in_stock, "lasts", "codes", "batches"),
        *("price_history", "own_prices"),
    )
    readonly_fields = (
        *("product_link", "variation_name", "currency", "next_price_text", codes_in_stock),
        *("lasts", "codes", "batches", "price_history", "own_prices", "margin"),
    )
    actions = ("change_prices",)  # type: ignore[assignment]
    actions_detail = ("import_codes", "change_price", "withdraw_price")
    price_names = ("product", "variation__product")
    currency_path = "product__currency"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Shelf]:
        shelves: QuerySet[Shelf] = super().get_queryset(request)
        of_product = Shelf.objects.filter(product=OuterRef("product"), variation__isnull=False)
        in_variations = of_product.order_by().values("product").values(all=Sum("available_stock"))
        nothing_to_sell = Q(to_fill=False, variation=None, available_stock=0)
        return shelves.select_related("product", "variation__product").annotate(
            to_fill=Exists(shelves_to_fill().filter(pk=OuterRef("pk"))),
            in_variations=Case(When(nothing_to_sell, then=Subquery(in_variations))),
        )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: Shelf | None = None) -> list[Any]:
        """Adds the margin below the price, for people who may see costs."""
        fields: list[Any] = list(self.fields)
        if sees_cost(request):
            fields.insert(fields.index("price") + 1, "margin")
        return fields

    @admin.display(description=lazy("margin"))
    def margin(self, shelf: Shelf) -> str:
        cost = stock_costs([("shelf", shelf.pk)]).get(("shelf", shelf.pk))
        if shelf.price is None or (cost is None and not shelf.available_stock):
            return EMPTY
        if cost is None:
            text = _("Not known. Check the cost of its batches.")
            return link_to_list(Batch, text, shelf__id__exact=shelf.pk, left="some")
        unit = cost * shelf.quantity_step
        return format_html(
            _("{margin}, at a cost of {cost}"),
            margin=margin_text(shelf.price, unit),
            cost=amount(unit, shelf.product.currency),
        )

    def has_import_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return may_import(staff_of(request), ImportKind.CODES)

    @action(
        description=lazy("Import codes…"),
        icon="upload_file",
        permissions=["import"],
        url_path="import-codes",
    )
    def import_codes(self, request: HttpRequest, object_id: str) -> HttpResponse:
        shelf = self.get_object(request, unquote(object_id))
        return HttpResponseRedirect(upload_url(ImportKind.CODES, shelf))

    @admin.display(description=lazy("shelf"), ordering="product__name")
    def shelf_name(self, shelf: Shelf) -> str:
        return str(shelf)

    @admin.display(description=lazy("product ID"), ordering="product_id")
    def product_number(self, shelf: Shelf) -> int:
        return shelf.product_id

    @admin.display(description=lazy("variation ID"), ordering="variation_id")
    def variation_number(self, shelf: Shelf) -> int | None:
        return shelf.variation_id

    @admin.display(description=lazy("price"), ordering="price")
    def price_text(self, shelf: Shelf) -> str:
        return price_and_next(shelf, shelf.product.currency)

    @display(
        description=lazy("codes in stock"),
        ordering="available_stock",
        label={"none": "danger", "low": "warning", "some": "success", "": None},
    )
    def stock(self, shelf: Shelf) -> tuple[str, str]:
        left = shelf.available_stock
        if not getattr(shelf, "to_fill", True):  # nothing is sold from it
            others = getattr(shelf, "in_variations", None)
            if left or others is None:
                return "", local_number(left)
            return "", _("%(number)s in variations") % {"number": local_number(others)}
        level = "none" if left == 0 else "low" if left < LOW_STOCK else "some"
        return level, local_number(left)

    def currency_of(self, row: Shelf) -> str:
        return row.product.currency

    @admin.display(description=lazy("next price"))
    def next_price_text(self, shelf: Shelf) -> str:
        return next_price(shelf, shelf.product.currency) or EMPTY

    @admin.display(description=lazy("in price lists"))
    def own_prices(self, shelf: Shelf) -> str:
        return link_to_list(PriceListEntry, _("Prices of this shelf"), shelf__id__exact=shelf.pk)

    @admin.display(description=lazy("product"))
    def product_link(self, shelf: Shelf) -> str:
        return link_to(shelf.product)

    @admin.display(description=lazy("variation"))
    def variation_name(self, shelf: Shelf) -> str:
        return shelf.variation.name if shelf.variation else EMPTY

    @admin.display(description=lazy("currency"))
    def currency(self, shelf: Shelf) -> str:
        return shelf.product.currency

    @admin.display(description=lazy("codes"))
    def codes(self, shelf: Shelf) -> str:
        every = link_to_list(VoucherCode, _("Codes of this shelf"), shelf__id__exact=shelf.pk)
        held = link_to_list(
            VoucherCode, _("held ones only"), shelf__id__exact=shelf.pk, state="held"
        )
        return format_html("{}, {}", every, held)

    @admin.display(description=lazy("lasts for"))
    def lasts(self, shelf: Shelf) -> str:
        return level_of(shelf, datetime.now(UTC)).left_in_words

    @admin.display(description=lazy("batches"))
    def batches(self, shelf: Shelf) -> str:
        link = link_to_list(Batch, _("Batches of this shelf"), shelf__id__exact=shelf.pk)
        days = Batch.objects.filter(LEFT, HAS_STOCK, shelf=shelf, expires_on__isnull=False)
        first = days.order_by("expires_on").values_list("expires_on", flat=True).first()
        if first is None:
            return link
        expires = _("the first codes expire on %(day)s") % {"day": local_day(first)}
        return format_html("{}, {}", link, expires)


@admin.register(ReferenceLink)
class ReferenceLinkAdmin(BackOfficeAdmin):
    added_action = AuditAction.REFERENCE_LINKED
    deleted_action = AuditAction.REFERENCE_UNLINKED
    list_display = ("merchant_reference", "account", "shelf")
    list_filter = (("account", AutocompleteSelectFilter), ("shelf", AutocompleteSelectFilter))
    list_select_related = ("account", "shelf__product", "shelf__variation__product")
    search_fields = ("reference", "account__name", "shelf__product__name")
    search_help_text = lazy("Merchant reference, account or product")
    list_before_template = "admin/about_references.html"
    help_texts = {
        "account": lazy("The merchant who uses the reference."),
        "reference": lazy("What the merchant's programs send in place of our IDs."),
        "shelf": lazy("The product or variation that they buy with it."),
    }
    ordering = ("account__name", "reference")
    autocomplete_fields = ("account", "shelf")

    @admin.display(description=lazy("merchant reference"), ordering="reference")
    def merchant_reference(self, link: ReferenceLink) -> str:
        return link.reference
