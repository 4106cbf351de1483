"""What the pages of the back office have in common."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.contrib.admin import ShowFacets
from django.contrib.admin.utils import get_fields_from_path
from django.contrib.admin.widgets import AutocompleteSelect
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.forms import Form, ModelForm
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.timezone import localtime
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display
from unfold.views import ChangeList

from config.database.functions import name_actor

MASK = "••••••••"
EMPTY = "-"
ID_DIGITS = 18  # any number of so many digits fits into a bigint


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # not generic when it runs
    """Counts up to a limit, so that no page of a large table counts all of it.

    Whoever looks for something older searches or filters.
    """

    cap = 10_000
    template_name = "admin/capped_pagination.html"

    @cached_property
    def _found(self) -> int:
        rows: Any = self.object_list
        found: int = rows.order_by()[: self.cap + 1].count()
        return found

    @cached_property
    def count(self) -> int:
        return min(self._found, self.cap)

    @property
    def is_capped(self) -> bool:
        """Whether there are more rows than can be leafed through."""
        return self._found > self.cap


class SearchSelect(AutocompleteSelect):
    """A choice of another row, found by typing. It shows again only what can be a row's id: what
    else was sent is refused by the field, and must not reach the database on the way."""

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        ids = [one for one in value if str(one).isascii() and str(one).isdecimal()]
        return super().optgroups(name, [one for one in ids if len(str(one)) <= ID_DIGITS], attr)


class DeskAdmin(ModelAdmin):
    """A page of the back office. Saving writes the changed columns and no others, so that a form
    which was open for a while does not undo what a sale, a command or a colleague did meanwhile."""

    list_per_page = 50
    list_max_show_all = 0
    show_facets = ShowFacets.NEVER  # they count the table once for every choice of a filter
    list_filter_submit = True
    list_fullwidth = True
    warn_unsaved_form = True
    list_disable_select_all = True

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """Those whose choices this person may see: a search for them would be refused."""
        return [
            one
            for one in super().get_list_filter(request)
            if not (isinstance(one, tuple) and one[1] is AutocompleteSelectFilter)
            or _may_search(self, one[0], request)
        ]

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):
            options.setdefault("widget", SearchSelect(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **options)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        # The database refuses NUL, and the autocomplete view passes on what it got.
        return self.search(queryset, search_term.replace("\x00", "").strip(), request)

    def search(
        self, queryset: QuerySet[Any], term: str, request: HttpRequest
    ) -> tuple[QuerySet[Any], bool]:
        """The rows that match `term`, and whether some may be there twice."""
        found, may_repeat = super().get_search_results(request, queryset, term)
        return found, may_repeat

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        name_actor(f"admin:{staff_of(request).get_username()}")  # for rows and inlines alike
        if change:
            save_changed(obj, form)
        else:
            super().save_model(request, obj, form, change)


def _may_search(page: ModelAdmin, path: str, request: HttpRequest) -> bool:
    related = get_fields_from_path(page.model, path)[-1].related_model
    found = page.admin_site._registry.get(related)
    return bool(found and found.has_view_permission(request))


class RecordList(ChangeList):
    """Says how many rows it found once, at the bottom, and never how many there are in all."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.full_result_count = self.result_count


class RecordAdmin(DeskAdmin):
    """Something that happened: read by those with the view permission, written by nobody here,
    superusers included. Newest first, always; sorting a large table by another column is not
    offered."""

    paginator = CappedPaginator
    show_full_result_count = False
    ordering = ("-id",)
    sortable_by = ()
    actions = None

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[RecordList]:
        return RecordList

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        # The admin's own history would be empty: nothing is ever edited here.
        context = {"show_history": False, **(extra_context or {})}
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class KeptAdmin(DeskAdmin):
    """For what merchants or records refer to: switched off instead of deleted."""

    actions = None

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class PriceHistoryInline(TabularInline):
    """What something cost before, newest first; the database writes it (sql/price_history.sql)."""

    verbose_name_plural = "price history"
    fields = readonly_fields = ("changed_at", "was", "became", "changed_by")
    ordering = ("-id",)
    extra = max_num = 0
    per_page = 20
    can_delete = False
    hide_title = True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True  # whoever sees what it belongs to

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @display(description="before")
    def was(self, change: Any) -> str:
        return amount(change.before)

    @display(description="after")
    def became(self, change: Any) -> str:
        return amount(change.after)


def price_line(change: Any) -> str:
    """One change of a price, for people."""
    when = date_format(localtime(change.changed_at), "DATETIME_FORMAT")
    by = f", {change.changed_by}" if change.changed_by else ""
    return f"{when}: {amount(change.before)} → {amount(change.after)}{by}"


def save_changed(obj: Model, form: Form | ModelForm[Any]) -> None:
    """Writes the columns that the form changed."""
    columns = {field.name for field in obj._meta.concrete_fields}
    changed = [name for name in form.changed_data if name in columns]
    if changed:
        obj.save(update_fields=changed)


def amount(value: Decimal | None, currency: str = "") -> str:
    """Money for people: 1,234.50 USD; never fewer than two decimals, never a false zero more."""
    if value is None:
        return EMPTY
    whole, _, decimals = f"{value:,.4f}".partition(".")
    return f"{whole}.{decimals.rstrip('0'):0<2} {currency}".rstrip()


def label(text: str, colour: str) -> str:
    """A word on a ground of `success`, `warning`, `danger` or `info`, as the theme draws it."""
    return render_to_string("unfold/helpers/label.html", {"text": text, "type": colour})


def link_to(obj: Model | None, text: str = "") -> str:
    """A link to the object's own page."""
    if obj is None:
        return EMPTY
    return format_html('<a href="{}" class="text-link">{}</a>', url_of(obj), text or str(obj))


def url_of(obj: Model) -> str:
    """Where the object's own page is."""
    return reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change", args=[obj.pk])


def link_to_list(model: type[Model], text: str, **query: Any) -> str:
    """A link to the list of a model, filtered."""
    meta = model._meta
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist", query=query)
    return format_html('<a href="{}" class="text-link">{}</a>', url, text)


def staff_of(request: HttpRequest) -> User:
    """Who is signed in; no page of the back office is open to anyone else."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def posted(request: HttpRequest) -> QueryDict | None:
    """What a form is bound to: the POST, however empty; nothing on a GET."""
    return request.POST if request.method == "POST" else None


def page(
    admin: ModelAdmin,
    request: HttpRequest,
    template: str,
    *,
    obj: Model,
    title: str,
    **context: Any,
) -> TemplateResponse:
    """A page of our own in the frame of the back office. Nobody may keep a copy of it."""
    request.current_app = admin.admin_site.name
    return TemplateResponse(
        request,
        template,
        {
            **admin.admin_site.each_context(request),
            "opts": admin.opts,
            "original": obj,
            "object": obj,
            "title": title,
            **context,
        },
        headers={"Cache-Control": "no-store"},
    )
