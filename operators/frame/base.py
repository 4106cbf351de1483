"""Base classes and helpers of all back office pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import display_for_value, get_fields_from_path, lookup_field
from django.contrib.admin.views.main import ERROR_FLAG, PAGE_VAR
from django.contrib.admin.widgets import (
    AutocompleteSelect,
    AutocompleteSelectMultiple,
    get_select2_language,
)
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import DecimalField, IntegerField, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter, DropdownFilter
from unfold.views import ChangeList
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from accounts.form_fields import CurrencyField, MoneyField, NumberField, WholeNumberField
from accounts.sign_in.confirmation import ConfirmingForm
from audit.actor import in_words
from audit.models import AuditEntry
from cases.models import CREDIT_OF
from core.database.columns import MONEY_DECIMALS, validate_currency
from core.database.functions import name_actor
from core.formats import local_amount, local_number
from core.inputs import is_id
from core.texts import lazy
from operators.frame.auditing import AuditedAdmin, read_stored
from operators.frame.exports import ExportedList
from operators.frame.reader import may_view, reader_may_view
from operators.frame.recent import note_opened
from operators.frame.row_names import row_name, row_title
from wallets.models import REPLACEMENT_OF, REVERSAL_OF

UNUSED_SCRIPTS = ("/urlify.js", "/prepopulate.js", "/xregexp.js", "/xregexp.min.js")
SELECT2 = "admin/js/vendor/select2/"
MASK = "••••••••"
EMPTY = "-"
DETAILS = lazy("Details")  # what few readers need, folded at the end of a page
MADE_OF_ROWS = (REVERSAL_OF, REPLACEMENT_OF, CREDIT_OF, "form:", "opening:")
UNUSABLE_FILTER = lazy(
    "The address had a filter that this list does not have, or a value that it cannot read. The"
    " list is not filtered: choose one of its filters."
)
CURRENCY_HELP = lazy("Three capital letters, such as USD.")


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # not generic when it runs
    """Counts at most 4,000 rows, so no page counts a whole large table.

    To find older rows, staff search or filter.
    """

    cap = 4_000
    template_name = "admin/capped_pagination.html"

    @cached_property
    def _number(self) -> int:
        rows: Any = self.object_list
        number: int = rows.order_by()[: self.cap + 1].count()
        return number

    @cached_property
    def count(self) -> int:
        return min(self._number, self.cap)

    @property
    def is_capped(self) -> bool:
        """Whether there are more rows than the pages show."""
        return self._number > self.cap

    def _get_page(self, rows: Any, number: int, paginator: Any) -> Any:
        """The page. Related rows are read for its own rows only, not for those before it."""
        if number > 1 and rows.query.select_related:
            ids = list(rows.values_list("pk", flat=True))
            rows = paginator.object_list.filter(pk__in=ids)
        return super()._get_page(rows, number, paginator)  # type: ignore[misc]


def capped_count(rows: QuerySet[Any]) -> str:
    """How many rows there are, counted up to the cap of the lists."""
    counted = CappedPaginator(rows.order_by("pk"), per_page=1)
    return f"{local_number(counted.count)}{'+' if counted.is_capped else ''}"


class _OnlyIds:
    """When a form with errors is shown again, looks up only values that can be ids. The field
    refuses other values, and they must not reach the database before that."""

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        ids = [one for one in value if is_id(str(one))]
        return super().optgroups(name, ids, attr)  # type: ignore[misc]


class SearchSelect(_OnlyIds, AutocompleteSelect):
    """A choice of another row, found by typing. `empty` is what it shows without one."""

    empty = ""

    def build_attrs(self, *args: Any, **options: Any) -> dict[str, Any]:
        return {**super().build_attrs(*args, **options), "data-placeholder": self.empty}


class SearchSelectMany(_OnlyIds, AutocompleteSelectMultiple):
    """A choice of other rows, found by typing."""


class BackOfficeAdmin(ExportedList, AuditedAdmin, ModelAdmin):
    """A model's pages in the back office.

    Saving writes only the columns that were changed in the form. A form that was open for a while
    therefore does not undo what a sale, a command or a colleague changed in the meantime.
    """

    list_per_page = 50
    list_max_show_all = 0
    paginator = CappedPaginator
    show_facets = ShowFacets.NEVER  # facets count the table once for each choice of a filter
    list_filter_submit = True
    list_fullwidth = True
    warn_unsaved_form = True
    list_disable_select_all = True
    when_empty = lazy("There is nothing here yet.")  # a list without rows says so
    show_full_result_count = False
    help_texts: Mapping[str, str] = {}  # in place of those of the model's fields
    # Parameters that links of other pages filter by, and that no filter beside the list offers.
    filters_of_links: Sequence[str] = ()
    add_button = ""  # the verb of the form for a new row; empty: Create, and the kind
    opens_new_rows = False  # whether adding a row leads on to its page, and not to the list

    @property
    def readonly_preprocess_fields(self) -> dict[str, Callable[[str], str]]:
        """Amounts of money that this person cannot change, as the theme writes them."""
        return {one.name: cut_zeros for one in self.model._meta.fields if is_money(one)}

    @property
    def media(self) -> forms.Media:
        """Leaves out the scripts that fill one field from another: no page here uses them.

        The filters' select2 becomes the file of Django's fields, with the texts of its language:
        a page that loads both files has English texts.
        """
        media = super().media
        scripts: list[Any] = []
        for name in media._js:
            if str(name) == f"{SELECT2}select2.full.js":
                language = get_select2_language()
                scripts.append(f"{SELECT2}select2.full{'' if settings.DEBUG else '.min'}.js")
                scripts += [f"{SELECT2}i18n/{language}.js"] if language else []
            elif not str(name).endswith(UNUSED_SCRIPTS):
                scripts.append(name)
        return forms.Media(css=media._css, js=scripts)

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        """The filters whose choices this person may search."""
        return [
            one
            for one in super().get_list_filter(request)
            if not (isinstance(one, tuple) and issubclass(one[1], AutocompleteSelectFilter))
            or _may_search(self, one[0], request)
        ]

    @property
    def shows_times(self) -> bool:
        """Whether the list has a column with times."""
        names = map(str, self.list_display)
        return any(name == "time" or name.endswith("_at") for name in names)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BackOfficeList]:
        return BackOfficeList

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Django redirects to the flag of an error when the address cannot be used."""
        if ERROR_FLAG in request.GET:
            messages.error(request, UNUSABLE_FILTER)
        answer: HttpResponse = super().changelist_view(request, *args, **kwargs)
        return answer

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> HttpResponse:
        if self.opens_new_rows:
            return HttpResponseRedirect(url_of(obj))
        response: HttpResponse = super().response_post_save_add(request, obj)
        return response

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if text := self.help_texts.get(db_field.name):
            options.setdefault("help_text", text)
        if isinstance(db_field, DecimalField):
            options.setdefault("form_class", MoneyField if is_money(db_field) else NumberField)
        elif isinstance(db_field, IntegerField):
            options.setdefault("form_class", WholeNumberField)
        elif validate_currency in db_field.validators:
            options.setdefault("form_class", CurrencyField)
        return super().formfield_for_dbfield(db_field, request, **options)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name in self.get_autocomplete_fields(request):
            options.setdefault("widget", SearchSelect(db_field, self.admin_site))
        return super().formfield_for_foreignkey(db_field, request, **options)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        # The autocomplete view passes on the raw search term, and the database refuses NUL.
        return self.search(queryset, search_term.replace("\x00", "").strip(), request)

    def search(
        self, queryset: QuerySet[Any], term: str, request: HttpRequest
    ) -> tuple[QuerySet[Any], bool]:
        """The rows that match `term`, and whether a row may occur twice."""
        rows, may_repeat = super().get_search_results(request, queryset, term)
        return rows, may_repeat

    def name_of(self, row: Any) -> str:
        """The name of a row at the top of its pages, with the account that it belongs to."""
        name, account = row_title(type(row), str(row)), account_of(row)
        return name if account is None or str(account) in name else f"{name} · {account}"

    def can_be_deleted(self, obj: Any) -> bool:
        """Whether nothing prevents the deletion of `obj`. Only then its page offers "Delete"."""
        return True

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, obj: Any = None, **kwargs: Any
    ) -> HttpResponse:
        context["show_history"] = False
        context["show_save_and_continue"] = context["show_save_and_add_another"] = False
        if obj is None:
            kind = {"kind": self.opts.verbose_name}
            context["add_button"] = self.add_button or _("Create %(kind)s") % kind
        if obj is not None and request.method == "GET":
            note_opened(staff_of(request), obj)
        if obj is not None and not self.can_be_deleted(obj):
            context["show_delete"] = False
        if obj is not None and "timeline" not in context:
            about = AuditEntry.objects.filter(object_type=obj._meta.label_lower, object_id=obj.pk)
            if about.exists():
                context["trail_url"] = trail_url(request, f"{obj._meta.model_name}:{obj.pk}")
        answer: HttpResponse = super().render_change_form(
            request, context, *args, obj=obj, **kwargs
        )
        return answer

    # Django's own log is not written, and its history not shown: the audit trail replaces both.

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:
        pass

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:
        pass

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:
        pass

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        name_actor(f"admin:{staff_of(request).get_username()}")  # for the row and its inlines
        request.saved_row = obj  # type: ignore[attr-defined]  # message_user gets no row
        if change:
            read_stored(obj, form)
            save_changed(obj, form)
        else:
            super().save_model(request, obj, form, change)

    def message_user(self, request: HttpRequest, message: Any, *args: Any, **options: Any) -> None:
        """Django's messages contain the `__str__` of the saved row, which is in English. With
        `is_undone`, the request says nothing: its change is undone, or waits for a second person.
        """
        if getattr(request, "is_undone", False):
            return
        row = getattr(request, "saved_row", None)
        if row is not None and isinstance(message, SafeString):
            shown = escape(row_name(type(row), str(row)))
            message = SafeString(message.replace(escape(str(row)), shown))
        super().message_user(request, message, *args, **options)

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: int) -> HttpResponse:
        name = row_name(self.model, obj_display)
        response: HttpResponse = super().response_delete(request, name, obj_id)
        return response


def name_on_page(row: Model) -> str:
    """The name of a row at the top of its pages."""
    page: Any = admin.site.get_model_admin(type(row))
    return str(getattr(page, "name_of", str)(row))


def account_of(row: Any) -> Any:
    """The account of a row, or of its client or its wallet; None if it has none."""
    for owner in (row, getattr(row, "client", None), getattr(row, "wallet", None)):
        if (account := getattr(owner, "account", None)) is not None:
            return account
    return None


def _may_search(page: ModelAdmin, path: str, request: HttpRequest) -> bool:
    related = get_fields_from_path(page.model, path)[-1].related_model
    return related is not None and may_view(request, related)


class ConditionFilter(DropdownFilter):
    """A filter with a condition for each choice, by the word for it in the address.

    names: the choices as people read them, by the same words.
    """

    conditions: Mapping[str, Q] = {}
    names: Mapping[str, str] = {}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            (word, self.names.get(word) or word.replace("-", " ").capitalize())
            for word in self.conditions
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        condition = self.conditions.get(self.value() or "")
        return queryset if condition is None else queryset.filter(condition)


class Colours(dict[str, str]):
    """The colours of badges by their texts.

    The theme looks a badge up by its text in the language of the reader. A usual dictionary holds
    lazy texts by their English.
    """

    def __contains__(self, text: object) -> bool:
        return any(str(one) == text for one in self)

    def __getitem__(self, text: str) -> str:
        return next(colour for one, colour in self.items() if str(one) == text)


class BackOfficeList(ChangeList):
    """Shows the number of rows found, and never counts the whole table."""

    left_out_of_files: Sequence[str] = (PAGE_VAR,)
    files: Sequence[tuple[str, str]] = ()  # formats and addresses of the list as a file

    def get_filters(self, request: HttpRequest) -> Any:
        """Only declared filters work. Django would use any parameter with the name of a field."""
        found = super().get_filters(request)
        if found[2].keys() - {*self.model_admin.filters_of_links, *self._searched_filters()}:
            raise IncorrectLookupParameters
        return found

    def _searched_filters(self) -> set[str]:
        """The filters whose choices are searched. They work for people to whom none is shown."""
        paths = [
            one[0]
            for one in self.model_admin.list_filter
            if isinstance(one, tuple) and issubclass(one[1], AutocompleteSelectFilter)
        ]
        keys: dict[str, Any] = {path: get_fields_from_path(self.model, path)[-1] for path in paths}
        return {f"{path}__{key.target_field.name}__exact" for path, key in keys.items()}

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        if any("\x00" in text for texts in self.get_filters_params().values() for text in texts):
            raise IncorrectLookupParameters  # the database refuses NUL
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return rows

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.full_result_count = self.result_count
        if self.result_count:
            query = self.get_query_string(remove=self.left_out_of_files)
            self.files = self.model_admin.files_of(request, query)

    def all_rows(self, request: HttpRequest) -> tuple[QuerySet[Any], bool]:
        """All rows that the filter finds, and whether to read them in windows of ids."""
        return self.get_queryset(request), False


class RecordAdmin(BackOfficeAdmin):
    """A record that nobody edits in the back office, superusers included.

    The list is always newest first: sorting a large table by another column would be slow.
    """

    ordering = ("-id",)
    sortable_by = ()
    actions = None

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, obj: Any = None, **kwargs: Any
    ) -> HttpResponse:
        """Leaves out the rows that are empty, and the parts without a row."""
        form = context["adminform"]
        if obj is not None:
            context["head"] = self.head_of(obj)
            parts = [
                (name, {**part, "fields": [one for one in part["fields"] if self._has(one, obj)]})
                for name, part in form.fieldsets
            ]
            form.fieldsets = [(name, part) for name, part in parts if part["fields"]]
        answer: HttpResponse = super().render_change_form(
            request, context, *args, obj=obj, **kwargs
        )
        return answer

    def head_of(self, row: Any) -> dict[str, Any]:
        """The first lines of the page: `badges`, a sentence about the `money`, and `facts`."""
        return {}

    def _has(self, field: Any, obj: Any) -> bool:
        """Whether the row of a field, or of several beside each other, says anything."""
        names = field if isinstance(field, list | tuple) else [field]
        return any(lookup_field(name, obj, self)[2] not in (None, "", EMPTY) for name in names)


class KeptAdmin(BackOfficeAdmin):
    """Rows that merchants or records refer to: staff switch them off instead of deleting them."""

    actions = None

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class ConfirmForm(forms.Form):
    """A confirmation with an optional note for the audit trail."""

    note = forms.CharField(
        label=lazy("Note"),
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("Saved in the audit trail. Never write a code or a key here."),
    )


class StaffConfirmingForm(ConfirmingForm):
    """Asks staff for a code of their second factor before they see a secret."""

    password_widget = UnfoldAdminPasswordWidget
    code_widget = UnfoldAdminTextInputWidget


class ConfirmAgainForm(StaffConfirmingForm, ConfirmForm):
    """The same with an optional note for the audit trail."""


def save_changed(obj: Model, form: forms.Form | forms.ModelForm[Any]) -> None:
    """Saves only the columns of `obj` that the form changed."""
    columns = {field.name for field in obj._meta.concrete_fields}
    changed = [name for name in form.changed_data if name in columns]
    if changed:
        obj.save(update_fields=changed)


def amount(value: Decimal | None, currency: str = "") -> str:
    """Money for people, such as 1,234.50 USD, or a dash."""
    return EMPTY if value is None else local_amount(round(value, 4), currency)


def cut_zeros(number: str) -> str:
    """The amount of a column without the zeros that the column adds: `7.00` for `7.0000`."""
    return re.sub(r"([.,]\d\d(?:\d*[1-9])?)0+\Z", r"\1", number)


def is_money(column: Any) -> bool:
    """Whether a column holds amounts of money."""
    return isinstance(column, DecimalField) and column.decimal_places == MONEY_DECIMALS


def shown_reference(reference: str | None) -> str:
    """A booking reference as pages show it. One that the service made of a row is left out: the
    pages link to the row."""
    return EMPTY if not reference or reference.startswith(MADE_OF_ROWS) else reference


def time_cell(value: datetime | None, *, never: str = EMPTY) -> str:
    """A time as lists and pages show the columns of a table."""
    if not value:
        return never
    try:
        return str(display_for_value(value, EMPTY))
    except OverflowError:  # at the end of the calendar, such as 9999-12-31 23:59 UTC in Berlin
        return str(display_for_value(value.replace(tzinfo=None), EMPTY))


def label(text: str, colour: str) -> str:
    """A badge in the theme's colour `success`, `warning`, `danger` or `info`."""
    return render_to_string("unfold/helpers/label.html", {"text": text, "type": colour})


def link_to(obj: Model | None, text: str = "") -> str:
    """A link to the object's own page; only the text if the reader may not see that page."""
    if obj is None:
        return EMPTY
    return _link(type(obj), url_of(obj), text or row_name(type(obj), str(obj)))


def linked(field: str, description: str = "") -> Any:
    """A column with `link_to` of a foreign key. Django links every foreign key on a page, also to
    pages that the reader may not see. Without a description, its heading is the name of the field,
    which is marked for translation in the model."""

    @admin.display(description=description or lazy(field))
    def column(_page: ModelAdmin, obj: Model) -> str:
        return link_to(getattr(obj, field))

    return column


def done_by(field: str, description: str) -> Any:
    """A column with the actor that a field names, in words."""

    @admin.display(description=description)
    def column(_page: ModelAdmin, obj: Model) -> str:
        return in_words(getattr(obj, field)) or EMPTY

    return column


def url_of(obj: Model, page: str = "change") -> str:
    """The address of the object's own page, or of another page about it."""
    return reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_{page}", args=[obj.pk])


def trail_url(request: HttpRequest, about: str) -> str:
    """The address of the entries about an object in the audit trail; empty if the reader may not
    open it."""
    return reverse("audit_trail", query={"about": about}) if may_view(request, AuditEntry) else ""


def list_url(model: type[Model], **query: Any) -> str:
    """The address of the list of a model, filtered by `query`."""
    meta = model._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist", query=query)


def link_to_list(model: type[Model], text: str, **query: Any) -> str:
    """A link to the list of a model, filtered by `query`; only the text if the reader may not see
    the list."""
    return _link(model, list_url(model, **query), text)


def _link(model: type[Model], url: str, text: str) -> str:
    if not reader_may_view(model):
        return escape(text)
    return format_html('<a href="{}" class="text-link">{}</a>', url, text)


def step_link(page: str, obj: Model, text: str) -> str:
    """A link in a list to a page on which the reader does the next step for the row."""
    address, name = reverse(page, args=[obj.pk]), row_name(type(obj), str(obj))
    return format_html(
        '<a href="{}" class="text-link" aria-label="{} {}">{}</a>', address, text, name, text
    )


def staff_of(request: HttpRequest) -> User:
    """The signed-in user. Raises PermissionDenied if nobody is signed in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def page(
    model_admin: ModelAdmin,
    request: HttpRequest,
    template: str,
    *,
    obj: Model,
    title: str,
    **context: Any,
) -> TemplateResponse:
    """Renders our own template about `obj` in the frame of the back office."""
    if request.method == "GET":
        note_opened(staff_of(request), obj)
    return site_page(
        request,
        template,
        opts=model_admin.opts,
        original=obj,
        object=obj,
        title=title,
        **context,
    )


def site_page(request: HttpRequest, template: str, **context: Any) -> TemplateResponse:
    """Renders our own template in the frame of the back office. It is never cached."""
    request.current_app = admin.site.name
    request.page_title = context.get("title", "")  # type: ignore[attr-defined]  # for the path
    return TemplateResponse(
        request,
        template,
        {**admin.site.each_context(request), **context},
        headers={"Cache-Control": "no-store"},
    )
