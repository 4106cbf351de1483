"""Top-up products and their fields. The forms refuse mistakes before they reach a merchant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Max
from django.http import HttpRequest
from django.utils.translation import gettext as _
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextareaWidget

from accounts.form_fields import WholeNumberField
from catalogue.models import PriceListEntry
from core.formats import local_number
from core.inputs import is_blank
from core.texts import lazy
from operators.catalogue.price_changes import PricesPage, next_price, price_and_next
from operators.frame.base import (
    CURRENCY_HELP,
    EMPTY,
    KeptAdmin,
    link_to_list,
    save_changed,
)
from operators.frame.form_fields import PriceForm
from operators.history.timeline import TimelinePage
from topups.models import (
    FIELD_LABEL_LENGTH,
    MAX_FIELD_VALUE_LENGTH,
    MAX_FIELDS,
    MAX_STOCK,
    FieldType,
    TopUpField,
    TopUpFieldOption,
    TopUpProduct,
)


class OptionsField(forms.CharField):
    """The choices of a dropdown, one per line: `eu` or `eu | Europe`."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 3})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            required=False,
            help_text=lazy("For a dropdown, one option per line: eu, or eu | Europe."),
            **kwargs,
        )

    def clean(self, value: Any) -> list[tuple[str, str | None]]:
        options: dict[str, str | None] = {}
        for line in super().clean(value).splitlines():
            option, _bar, label = (part.strip() for part in line.partition("|"))
            if is_blank(option):
                continue
            if len(option) > MAX_FIELD_VALUE_LENGTH or len(label) > FIELD_LABEL_LENGTH:
                raise ValidationError(
                    _("The option %(option)s… is too long.") % {"option": option[:20]}
                )
            if option in options:
                raise ValidationError(
                    _("The option %(option)s appears twice.") % {"option": option}
                )
            options[option] = None if is_blank(label) else label
        return list(options.items())


class FieldForm(forms.ModelForm):  # type: ignore[type-arg]
    options = OptionsField(label=lazy("Options"))

    class Meta:
        model = TopUpField
        fields = ["name", "label", "type", "required", "position"]
        help_texts = {
            "name": lazy("For programs, such as server_id. It never changes."),
            "label": lazy("What people read."),
            "position": lazy("The order in which the fields are listed."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["name"].disabled = True
            self.initial["options"] = "\n".join(
                f"{option.value} | {option.label}" if option.label else option.value
                for option in self.instance.options.all()
            )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        is_dropdown = cleaned.get("type") == FieldType.DROPDOWN
        if "options" in cleaned and is_dropdown != bool(cleaned["options"]):
            self.add_error(
                "options",
                _("Enter the options of the dropdown.")
                if is_dropdown
                else _("Remove the options. Only a dropdown has options."),
            )
        return cleaned


class FieldFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]
    """The fields of a product together."""

    def clean(self) -> None:
        super().clean()
        filled = [form for form in self.forms if form.has_changed() or form.instance.pk]
        fields = [form for form in filled if not form.cleaned_data.get("DELETE")]
        if len(fields) > MAX_FIELDS:
            raise ValidationError(
                _("A top-up product has at most %(number)s fields.") % {"number": MAX_FIELDS}
            )


class FieldInline(TabularInline):
    """The fields of a product. A field can be removed: orders keep the values they were sent.

    Merchants' programs know a field by its id and name, which never change.
    """

    model = TopUpField
    form = FieldForm
    formset = FieldFormSet
    max_num = MAX_FIELDS
    verbose_name_plural = lazy("fields besides the player ID")
    fields = ("number", "name", "label", "type", "required", "options", "position")
    readonly_fields = ("number", "choices")
    extra = 0
    hide_title = True

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Replaces the form's field of options by text for people who only look. It is named like
        the relation, which is no text."""
        if self.has_change_permission(request, obj):
            return self.fields
        return [name.replace("options", "choices") for name in self.fields]

    @admin.display(description=lazy("Options"))
    def choices(self, field: TopUpField) -> str:
        return ", ".join(option.label or option.value for option in field.options.all())


class TopUpProductForm(PriceForm):
    stock = WholeNumberField(
        required=False,
        min_value=0,
        max_value=MAX_STOCK,
        label=lazy("Stock"),
        show_hidden_initial=True,  # to compare with the stock that was shown, not the current one
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=lazy("How many more can be sold. Empty: no limit."),
    )

    class Meta:
        model = TopUpProduct
        fields = [
            "name",
            "category",
            "currency",
            "price",
            "active",
            "published",
            "external_provider",
            "announce",
            "promised_minutes",
        ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["stock"] = self.instance.available_stock
        if "price" in self.fields:
            self.fields["price"].required = True
            self.fields["price"].help_text = ""

    def clean_external_provider(self) -> str | None:
        return (self.cleaned_data["external_provider"] or "").strip() or None


@admin.register(TopUpProduct)
class TopUpProductAdmin(PricesPage, TimelinePage, KeptAdmin):
    form = TopUpProductForm
    inlines = (FieldInline,)
    list_display = ("name", "id", "category", "price_text", "stock_text", "active", "published")
    list_filter = ("active", "published", ("category", AutocompleteSelectFilter), "currency")
    list_select_related = ("category",)
    search_fields = ("name", "id__exact")
    search_help_text = lazy("Name or ID of the product")
    list_before_template = "admin/about_top_up_products.html"
    ordering = ("name",)
    autocomplete_fields = ("category",)
    actions = ("change_prices",)  # type: ignore[assignment]
    actions_detail = ("change_price", "withdraw_price")
    help_texts = {
        "currency": CURRENCY_HELP,
        "active": lazy("If off, it is not for sale."),
        "published": lazy("If off, it is not for sale. Turn it off until the product is complete."),
        "external_provider": lazy(
            "Who delivers it, if not this service. Then it is not for sale here."
        ),
        "announce": lazy("New orders are announced in Telegram."),
    }
    fieldsets = (
        (None, {"fields": ("name", "category", "currency", "price", "stock")}),
        (lazy("Whether it is for sale"), {"fields": ("active", "published", "external_provider")}),
        (lazy("Delivery"), {"fields": ("promised_minutes",)}),
        ("Telegram", {"fields": ("announce",)}),
    )

    def get_fieldsets(self, request: HttpRequest, obj: TopUpProduct | None = None) -> Any:
        prices = (_("Prices"), {"fields": ("next_price_text", "price_history", "own_prices")})
        return (*self.fieldsets, prices) if obj else self.fieldsets

    def get_readonly_fields(
        self, request: HttpRequest, obj: TopUpProduct | None = None
    ) -> tuple[str, ...]:
        if obj is None:
            return ()
        fixed = ("currency",) if obj.fulfilments.exists() else ()
        return (*fixed, "next_price_text", "price_history", "own_prices")

    @admin.display(description=lazy("next price"))
    def next_price_text(self, product: TopUpProduct) -> str:
        return next_price(product, product.currency) or EMPTY

    @admin.display(description=lazy("in price lists"))
    def own_prices(self, product: TopUpProduct) -> str:
        words = _("Prices of this product")
        return link_to_list(PriceListEntry, words, topup_product_id__exact=product.pk)

    @admin.display(description=lazy("price"), ordering="price")
    def price_text(self, product: TopUpProduct) -> str:
        return price_and_next(product, product.currency)

    @admin.display(description=lazy("in stock"), ordering="available_stock")
    def stock_text(self, product: TopUpProduct) -> str:
        stock = product.available_stock
        return _("no limit") if stock is None else local_number(stock)

    stock = stock_text  # for people who may only read

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        super().save_model(request, obj, form, change)
        if "stock" in form.changed_data:
            obj.set_stock(form.cleaned_data["stock"])

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: Any) -> None:
        formset.save(commit=False)
        for field in formset.deleted_objects:
            field.delete()
        for row in formset.forms:
            if row.instance in formset.new_objects:
                row.instance.number = _next_number(row.instance.product)
                row.instance.save()
            elif row.has_changed() and row.instance.pk:
                save_changed(row.instance, row)
            if "options" in row.changed_data and row.instance.pk:
                _replace_options(row.instance, row.cleaned_data["options"])


def _next_number(product: TopUpProduct) -> int:
    """A field number that the product has never used."""
    last: int | None = product.field_ids.aggregate(last=Max("number"))["last"]
    return (last or 0) + 1


def _replace_options(field: TopUpField, options: list[tuple[str, str | None]]) -> None:
    field.options.all().delete()
    TopUpFieldOption.objects.bulk_create(
        TopUpFieldOption(field=field, value=value, label=label, position=position)
        for position, (value, label) in enumerate(options)
    )
