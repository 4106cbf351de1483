"""Warnings for staff: the list, the rules, and the stock limits of shelves."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from unfold.decorators import display

from core.backoffice.registry import watches
from core.texts import lazy
from figures.models import StockThreshold
from operators.frame.base import (
    BackOfficeAdmin,
    Colours,
    KeptAdmin,
    RecordAdmin,
    list_url,
    staff_of,
)
from operators.warnings.models import StaffWarning, WarningRule
from operators.warnings.raising import describe, kinds_for, open_warnings, rules

SHOWN = 8  # on the overview


def show_warnings(request: HttpRequest) -> dict[str, Any]:
    """The newest open warnings that this person may see, for the first page."""
    if not staff_of(request).has_perm("warnings.view_staffwarning"):
        return {}
    found = list(open_warnings(staff_of(request))[: SHOWN + 1])
    for warning in found:
        warning.text = describe(warning)  # not saved
    return {
        "warnings": found[:SHOWN],
        "more_warnings": len(found) > SHOWN,
        "warnings_url": list_url(StaffWarning),
    }


@admin.register(StaffWarning)
class StaffWarningAdmin(RecordAdmin):
    """Each crossing of a limit. People see those about what they may view."""

    list_display = ("sentence", "about", "state", "raised_at", "ended_at")
    fields = ("sentence", "about", "page_of_it", "raised_at", "ended_at")
    search_fields = ("text",)
    search_help_text = lazy("Words of the warning")

    def get_queryset(self, request: HttpRequest) -> QuerySet[StaffWarning]:
        rows: QuerySet[StaffWarning] = super().get_queryset(request)
        return rows.filter(kind__in=kinds_for(staff_of(request)))

    @admin.display(description=lazy("text"), ordering="text")
    def sentence(self, warning: StaffWarning) -> str:
        return describe(warning)

    @admin.display(description=lazy("kind"))
    def about(self, warning: StaffWarning) -> str:
        return watches()[warning.kind].title

    @display(
        description=lazy("state"), label=Colours({lazy("open"): "warning", lazy("over"): "success"})
    )
    def state(self, warning: StaffWarning) -> str:
        return _("over") if warning.ended_at else _("open")

    @admin.display(description=lazy("page"))
    def page_of_it(self, warning: StaffWarning) -> str:
        if not warning.path:
            return "-"
        return format_html(
            '<a href="{}" class="text-link">{}</a>', warning.path, pgettext("button", "Open")
        )


@admin.register(WarningRule)
class WarningRuleAdmin(KeptAdmin):
    """The limit and the receivers of each kind of warning."""

    list_display = ("title", "active", "limit", "unit", "email", "telegram")
    list_display_links = ("title",)
    fields = ("about", "active", "limit", "roles", "people", "email", "telegram")
    readonly_fields = ("about",)
    filter_horizontal = ("roles", "people")
    ordering = ("kind",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        rules()  # kinds that are new have no row yet
        answer: HttpResponse = super().changelist_view(request, extra_context)
        return answer

    def get_queryset(self, request: HttpRequest) -> QuerySet[WarningRule]:
        rows: QuerySet[WarningRule] = super().get_queryset(request)
        return rows.filter(kind__in=watches())

    def get_form(
        self, request: HttpRequest, obj: WarningRule | None = None, **options: Any
    ) -> type[forms.ModelForm[WarningRule]]:
        if obj is not None:
            options["help_texts"] = {"limit": f"{capfirst(str(watches()[obj.kind].unit))}."}
        form: type[forms.ModelForm[WarningRule]] = super().get_form(request, obj, **options)
        return form

    @admin.display(description=lazy("kind"))
    def title(self, rule: WarningRule) -> str:
        return watches()[rule.kind].title

    @admin.display(description=lazy("unit"))
    def unit(self, rule: WarningRule) -> str:
        return watches()[rule.kind].unit

    @admin.display(description=lazy("kind"))
    def about(self, rule: WarningRule) -> str:
        watch = watches()[rule.kind]
        return f"{watch.title}. {watch.advice}"


@admin.register(StockThreshold)
class StockThresholdAdmin(BackOfficeAdmin):
    """The stock at which a warning about one shelf or top-up product is sent."""

    list_display = ("__str__", "stock", "days")
    list_select_related = ("shelf__product", "shelf__variation__product", "topup_product")
    autocomplete_fields = ("shelf", "topup_product")
    list_before_template = "admin/about_stock_limits.html"
    change_form_before_template = "admin/about_stock_limits.html"
    search_fields = ("shelf__product__name", "topup_product__name")
    search_help_text = lazy("Product")
    ordering = ("-id",)
    actions = None
