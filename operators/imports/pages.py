"""Imports in the browser: upload a file, read what its check found, import it, see the result."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import uuid4

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Case, F, Model, Q, QuerySet, When
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.templatetags.static import static
from django.urls import path, reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.decorators import action, display
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminFileFieldWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.form_fields import CurrencyField, FormIdField, MoneyField, posted
from catalogue.imports.catalogue_import import AT_PLACE
from catalogue.imports.code_file import WRONG_LINES
from catalogue.imports.code_import import WRONG_FILES
from catalogue.imports.number_columns import DOUBTS
from catalogue.imports.number_columns import KINDS as KINDS_OF_CHARACTERS
from catalogue.models import Batch, PriceList, PriceListEntry, Shelf
from catalogue.price_lists import WRONG_ENTRIES
from catalogue.stock.batches import BatchDetails, total_cost
from core.backoffice.staff import names_of_staff_who_may
from core.database.columns import (
    CURRENCY_LENGTH,
    NAME_LENGTH,
)
from core.files.doubts import ADVICE, Doubtful, doubt_id
from core.files.table_files import CONTENT_TYPES
from core.files.tables import TABLE_DOUBTS, WRONG_LINE, WRONG_TABLES
from core.files.times import WRONG_TIMES, read_time
from core.files.workbook_sentences import WORKBOOK_DOUBTS, WRONG_WORKBOOKS
from core.formats import local_day, local_number
from core.http.body_limits import accepts_bodies_up_to
from core.inputs import SHOWN_PROBLEMS, InputProblem, is_id, problems_as_text
from core.numbers import WRONG_NUMBERS
from core.texts import lazy, translate_stored
from figures.low_prices import prices_below
from figures.models import ExchangeRate
from figures.price_lines import stock_costs
from operators.frame.base import (
    CURRENCY_HELP,
    EMPTY,
    RecordAdmin,
    SearchSelect,
    amount,
    link_to,
    site_page,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.form_fields import LARGE_CHANGE
from operators.imports.catalogue_changes import COLUMNS, as_csv
from operators.imports.catalogue_export import ExportFormat, export_catalogue
from operators.imports.catalogue_file import WRONG_CATALOGUES
from operators.imports.catalogue_table import TWO_NUMBERS, WRONG_CATALOGUE_TABLES, WRONG_CELL
from operators.imports.jobs import (
    LOST_FILE,
    MAX_BYTES,
    PART_BYTES,
    REQUEST_BYTES,
    STOPPED_BY,
    TABLES,
    UNFINISHED,
    add_part,
    confirm_import,
    discard_import,
    finish_upload,
    retry_import,
    size_in_words,
    stop_import,
    upload_file,
)
from operators.imports.models import RUNNING, WAITING, FileImport, ImportKind, ImportState
from operators.imports.price_list_file import NOW, OTHER_NAME, WRONG_PRICES
from operators.imports.rate_file import WRONG_RATES
from operators.imports.table_imports import WRONG_TABLE_IMPORTS
from operators.sign_in.asked_changes import describe_price

# The permissions that imports of each kind need: those of the forms that do the same.
RIGHTS = {
    ImportKind.CODES: ["imports.import_codes"],
    ImportKind.CATALOGUE: ["imports.import_catalogue"],
    ImportKind.PRICE_LISTS: ["catalogue.change_pricelistentry"],
    ImportKind.EXCHANGE_RATES: ["figures.add_exchangerate", "figures.change_exchangerate"],
}
# The cost of codes is on the pages of batches, and in the figures of margins.
SEES_COST = ("catalogue.view_batch", "figures.view_dailymargin")
EMPTY_FILES = {"CSV": "operators/codes.csv", "XLSX": "operators/codes.xlsx"}
REFRESH_SECONDS = 1
SHOWN_CHANGES = 50
STORED_TIME = re.compile(r"[0-9-]{10}T[0-9:.]+Z")
STATE_COLOURS = {
    ImportState.CHECKING: "info",
    ImportState.READY: "warning",
    ImportState.REFUSED: "danger",
    ImportState.IMPORTING: "info",
    ImportState.IMPORTED: "success",
    ImportState.STOPPED: "danger",
    ImportState.DISCARDED: "info",
}
KINDS = {
    "categories": lazy("Categories"),
    "products": lazy("Products"),
    "variations": lazy("Variations"),
    "topup_products": lazy("Top-up products"),
    "prices_in_lists": lazy("Prices in lists"),
    "exchange_rates": lazy("Exchange rates"),
}
# The stored sentences about a file that pages translate. Those about a line come first, because
# they contain others. The one about a place comes last: it fits any sentence with a colon.
PROBLEMS = (
    WRONG_LINE,
    WRONG_CELL,
    LOST_FILE,
    UNFINISHED,
    STOPPED_BY,
    *(*WRONG_TABLE_IMPORTS, *WRONG_PRICES, *WRONG_ENTRIES, *WRONG_RATES),
    *WRONG_CATALOGUES,
    *(*WRONG_FILES, *WRONG_WORKBOOKS, *WRONG_CATALOGUE_TABLES, *WRONG_NUMBERS, *WRONG_TIMES),
    *(*WRONG_LINES, *WRONG_TABLES, ADVICE, AT_PLACE),
)
DOUBTS_OF_FILES = (*WORKBOOK_DOUBTS, *DOUBTS, TWO_NUMBERS, OTHER_NAME, *TABLE_DOUBTS)
STEPS = {"stop": stop_import, "retry": retry_import, "discard": discard_import}


class UploadForm(forms.Form):
    """A file. `form` identifies the form, so that sending it twice uploads once.

    upload.js sends a large file in parts, and then this form with their `upload`, and the name and
    size of the file.
    """

    kind: ClassVar[ImportKind]
    title: ClassVar[str]
    question: ClassVar[str]
    file = forms.FileField(widget=UnfoldAdminFileFieldWidget)
    form = FormIdField()
    upload = forms.UUIDField(required=False, widget=forms.HiddenInput)
    upload_name = forms.CharField(required=False, widget=forms.HiddenInput)
    upload_size = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        size = size_in_words(self.kind)
        file = self.fields["file"]
        if self.kind == ImportKind.CODES:
            file.widget.attrs |= {"data-parts": _parts_url(), "data-part-bytes": PART_BYTES}
            file.required = not self["upload"].data
        file.help_text = _("%(help)s At most %(size)s.") % {"help": file.help_text, "size": size}
        too_large = _("This file is too large. At most %(size)s.") % {"size": size}
        # The browser refuses a larger file before it sends it.
        file.widget.attrs["x-on:change"] = (
            f"$el.setCustomValidity($el.files[0]?.size > {MAX_BYTES[self.kind]}"
            f" ? {json.dumps(too_large)} : '')"
        )


class PartForm(forms.Form):
    """A part of a large file."""

    upload = forms.UUIDField()
    number = forms.IntegerField()
    file = forms.FileField()


class CatalogueForm(UploadForm):
    kind = ImportKind.CATALOGUE
    title = lazy("Import the catalogue")
    question = lazy("Choose a file with the catalogue.")
    file = forms.FileField(
        label=lazy("JSON, CSV or XLSX file"),
        widget=UnfoldAdminFileFieldWidget,
        help_text=lazy(
            "In the format of an exported catalogue. Purchases of the products in the file wait"
            " while it is checked, for up to three seconds, and while it is imported."
        ),
    )


class PriceListsForm(UploadForm):
    kind = ImportKind.PRICE_LISTS
    title = lazy("Import prices of lists")
    question = lazy("Choose a file with prices of price lists.")
    file = forms.FileField(
        label=lazy("CSV or XLSX file"),
        widget=UnfoldAdminFileFieldWidget,
        help_text=lazy("In the format of the exported prices."),
    )


class RatesForm(UploadForm):
    kind = ImportKind.EXCHANGE_RATES
    title = lazy("Import exchange rates")
    question = lazy("Choose a file with exchange rates.")
    file = forms.FileField(
        label=lazy("CSV or XLSX file"),
        widget=UnfoldAdminFileFieldWidget,
        help_text=lazy("In the format of the exported rates."),
    )


def _required_with(name: str) -> dict[str, str]:
    """Attributes that make the field `name` required while this field has a value."""
    script = f"$el.form.elements.{name}.required = $el.value !== ''"
    return {"x-init": script, "x-on:input": script}


class CodesForm(UploadForm):
    kind = ImportKind.CODES
    title = lazy("Import voucher codes")
    question = lazy("Choose a file with voucher codes.")
    shelf = forms.ModelChoiceField(
        Shelf.objects.select_related("product", "variation__product"),
        label=lazy("Put the codes on"),
        widget=SearchSelect(
            FileImport._meta.get_field("shelf"),
            admin.site,
            attrs={"class": "unfold-admin-autocomplete"},
        ),
        help_text=lazy("A product, or one of its variations."),
    )
    file = forms.FileField(
        label=lazy("CSV or XLSX file"),
        widget=UnfoldAdminFileFieldWidget,
        help_text=lazy(
            "CSV in UTF-8, or a workbook with one sheet. The first line names the columns: code,"
            " and optionally serial_number and pin_code. In CSV, commas, semicolons or tabs are"
            " between them."
        ),
    )
    supplier = forms.CharField(
        label=lazy("Supplier"),
        required=False,
        max_length=NAME_LENGTH,
        widget=UnfoldAdminTextInputWidget,
    )
    invoice = forms.CharField(
        label=lazy("Invoice number"),
        required=False,
        max_length=NAME_LENGTH,
        widget=UnfoldAdminTextInputWidget,
    )
    unit_cost = MoneyField(
        label=lazy("Cost of one code"),
        required=False,
        min_value=0,
        widget=UnfoldAdminDecimalFieldWidget(attrs=_required_with("cost_currency")),
    )
    cost_currency = CurrencyField(
        label=lazy("Currency of the cost"),
        required=False,
        max_length=CURRENCY_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text=CURRENCY_HELP,
    )
    expires_on = forms.DateField(
        label=lazy("Last day of sale"),
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"type": "date"}),
        help_text=lazy(
            "In UTC. Leave it empty if the codes do not expire. Codes are sold in the order of"
            " their import, not of this day."
        ),
    )
    field_order = (
        *("shelf", "file", "supplier", "invoice", "unit_cost", "cost_currency"),
        "expires_on",
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            if cleaned.get("unit_cost") is None:  # the form has filled the currency in
                cleaned["cost_currency"] = ""
            try:
                cleaned["details"] = BatchDetails.read(cleaned)
            except InputProblem as problem:
                self.add_error("cost_currency", str(problem))
        if self.errors and cleaned.get("file"):
            self.add_error("file", _("Choose the file again: your browser does not keep it."))
        return cleaned


FORMS: dict[ImportKind, type[UploadForm]] = {
    one.kind: one for one in (CodesForm, CatalogueForm, PriceListsForm, RatesForm)
}


def may_import(user: User, kind: str) -> bool:
    """Whether this person may import files of this kind."""
    return user.has_perms(RIGHTS[ImportKind(kind)])


@admin.register(FileImport)
class FileImportAdmin(RecordAdmin):
    """The imports, newest first. The page of one follows its progress."""

    list_display = ("file_name", "kind", "progress", "target", "uploaded_by", "uploaded_at")
    list_filter = (("kind", ChoicesDropdownFilter), ("state", ChoicesDropdownFilter))
    list_select_related = ("shelf__product", "shelf__variation__product", "created_by")
    search_fields = ("file_name",)
    search_help_text = lazy("Name of the file")
    fields = (
        *("kind", "target", "uploaded_by", "uploaded_at", "asked_by", "confirmer", "finished_at"),
    )
    actions_list = ("new_codes", "new_catalogue", "new_prices", "new_rates")
    change_form_outer_before_template = "admin/import_page.html"

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Sequence[Any]:
        is_asked = isinstance(obj, FileImport) and obj.asker() is not None
        return [one for one in self.fields if is_asked or one != "asked_by"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[FileImport]:
        rows: QuerySet[FileImport] = super().get_queryset(request)
        if not super().has_view_permission(request):
            user = staff_of(request)
            rows = rows.filter(kind__in=[kind for kind in ImportKind if may_import(user, kind)])
        is_ready = Q(state=ImportState.READY)
        return rows.annotate(
            waits=Case(When(is_ready, then=F("result__waits__0"))),
            doubts=Case(When(is_ready, then=F("result__doubts__0"))),
        ).defer("sealed", "problems", "result")

    def has_view_permission(self, request: HttpRequest, obj: FileImport | None = None) -> bool:
        """Limits the list to the kinds of files that the person may import."""
        if super().has_view_permission(request, obj):
            return True
        kinds = list(ImportKind) if obj is None else [obj.kind]
        user = request.user
        return isinstance(user, User) and any(may_import(user, kind) for kind in kinds)

    @display(description=lazy("state"), label={one: one for one in STATE_COLOURS.values()})
    def progress(self, row: Any) -> tuple[str, str]:
        state, colour = _state_of(row, waits=row.waits, doubts=row.doubts)
        return colour, state

    @admin.display(description=lazy("shelf"))
    def target(self, row: FileImport) -> str:
        return link_to(row.shelf) if row.shelf else EMPTY

    @admin.display(description=lazy("uploaded by"))
    def uploaded_by(self, row: FileImport) -> str:
        return str(row.created_by)

    @admin.display(description=lazy("asked by"))
    def asked_by(self, row: FileImport) -> str:
        return str(row.asker() or EMPTY)

    @admin.display(description=lazy("confirmed by"))
    def confirmer(self, row: FileImport) -> str:
        return str(row.confirmed_by or EMPTY)

    @admin.display(description=lazy("uploaded at"))
    def uploaded_at(self, row: FileImport) -> str:
        return time_cell(row.created_at)

    def has_codes_permission(self, request: HttpRequest) -> bool:
        return may_import(staff_of(request), ImportKind.CODES)

    def has_catalogue_permission(self, request: HttpRequest) -> bool:
        return may_import(staff_of(request), ImportKind.CATALOGUE)

    @action(
        description=lazy("Import codes…"),
        icon="upload_file",
        permissions=["codes"],
        url_path="new-codes",
    )
    def new_codes(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(upload_url(ImportKind.CODES))

    @action(
        description=lazy("Import the catalogue…"),
        icon="upload_file",
        permissions=["catalogue"],
        url_path="new-catalogue",
    )
    def new_catalogue(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(upload_url(ImportKind.CATALOGUE))

    def has_prices_permission(self, request: HttpRequest) -> bool:
        return may_import(staff_of(request), ImportKind.PRICE_LISTS)

    def has_rates_permission(self, request: HttpRequest) -> bool:
        return may_import(staff_of(request), ImportKind.EXCHANGE_RATES)

    @action(
        description=lazy("Import prices of lists…"),
        icon="upload_file",
        permissions=["prices"],
        url_path="new-prices",
    )
    def new_prices(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(upload_url(ImportKind.PRICE_LISTS))

    @action(
        description=lazy("Import exchange rates…"),
        icon="upload_file",
        permissions=["rates"],
        url_path="new-rates",
    )
    def new_rates(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(upload_url(ImportKind.EXCHANGE_RATES))

    def get_urls(self) -> list[Any]:
        ours = [
            ("export/<str:file_format>/", self.export, "export"),
            ("upload/part/", self.add_part, "part"),
            ("upload/<str:kind>/", self.upload, "upload"),
            ("<int:pk>/progress/", self.show_progress, "progress"),
            ("<int:pk>/step/<str:step>/", self.take_step, "step"),
            ("<int:pk>/problems/", self.download_problems, "problems"),
            ("<int:pk>/changes/", self.download_changes, "changes"),
        ]
        urls = [
            path(route, self.admin_site.admin_view(view), name=f"imports_fileimport_{name}")
            for route, view, name in ours
        ]
        return [*urls, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row = self.get_object(request, object_id)
        own = _context(request, row) if isinstance(row, FileImport) else {}
        context = {**own, **(extra_context or {})}
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    @accepts_bodies_up_to(PART_BYTES + settings.MAX_BODY_BYTES)
    def add_part(self, request: HttpRequest) -> HttpResponse:
        """Takes a part of a file of codes from upload.js."""
        if not may_import(staff_of(request), ImportKind.CODES):
            raise PermissionDenied
        form = PartForm(posted(request), request.FILES or None)
        if not form.is_valid():
            raise BadRequest(_("This is not a part of a file."))
        values = form.cleaned_data
        try:
            add_part(
                upload=values["upload"],
                number=values["number"],
                content=values["file"].read(),
                actor=staff_of(request),
            )
        except InputProblem as problem:
            raise BadRequest(str(problem)) from None
        return HttpResponse(status=204)

    @accepts_bodies_up_to(REQUEST_BYTES + settings.MAX_BODY_BYTES)
    def upload(self, request: HttpRequest, kind: str) -> HttpResponse:
        """The form of a file; then the page of its import."""
        if kind not in ImportKind.values:
            raise Http404
        if not may_import(staff_of(request), kind):
            raise PermissionDenied
        shelf = request.GET.get("shelf", "")
        of_shelf = Shelf.objects.filter(pk=shelf if is_id(shelf) else 0)
        currency = of_shelf.values_list("product__currency", flat=True).first()
        initial = {"cost_currency": currency, **_details_of_last_file(request), "shelf": shelf}
        form = FORMS[ImportKind(kind)](posted(request), request.FILES or None, initial=initial)
        if form.is_valid():
            try:
                return HttpResponseRedirect(url_of(_upload(request, ImportKind(kind), form)))
            except InputProblem as problem:
                form.add_error("file", str(problem))
        of_codes = kind == ImportKind.CODES
        return site_page(
            request,
            "admin/import_upload.html",
            opts=self.opts,
            title=form.title,
            form=form,
            question=form.question,
            empty_files=_empty_files() if of_codes else [],
            exports=_exports(request, ImportKind(kind)),
            whole=kind != ImportKind.CATALOGUE,
            in_parts=of_codes,
            facts=[_("The file is checked first. You see what was found before anything changes.")],
            button=_("Upload and check"),
            back=_list_url(),
        )

    def export(self, request: HttpRequest, file_format: str) -> HttpResponse:
        """Sends the catalogue as a file."""
        if not may_import(staff_of(request), ImportKind.CATALOGUE):
            raise PermissionDenied
        if file_format not in ExportFormat.values:
            raise Http404
        try:
            content = export_catalogue(
                file_format=ExportFormat(file_format), actor=staff_of(request)
            )
        except InputProblem as problem:
            messages.error(request, str(problem))
            return HttpResponseRedirect(upload_url(ImportKind.CATALOGUE))
        return HttpResponse(
            content,
            content_type=CONTENT_TYPES.get(file_format, "application/json"),
            headers={
                "Content-Disposition": f'attachment; filename="catalogue.{file_format}"',
                "Cache-Control": "no-store",
            },
        )

    def show_progress(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The part of the page that refreshes itself while a worker is busy (live.js)."""
        row = self._row(request, pk)
        return TemplateResponse(request, "admin/import_now.html", _context(request, row))

    def take_step(self, request: HttpRequest, pk: int, step: str) -> HttpResponse:
        """Imports, stops, discards or tries again."""
        row = self._row(request, pk)
        if step not in (*STEPS, "confirm"):
            raise Http404
        if not may_import(staff_of(request), row.kind):
            raise PermissionDenied
        try:
            done = request.method != "POST" or _take_step(request, pk, step)
        except Doubtful:
            messages.warning(request, _("Nothing was changed: confirm each doubt first."))
            return HttpResponseRedirect(url_of(row))
        if not done:
            messages.warning(
                request,
                _("Nothing was changed: another person has already continued this import."),
            )
        return HttpResponseRedirect(url_of(row))

    def download_problems(self, request: HttpRequest, pk: int) -> HttpResponse:
        """All problems of a file as text."""
        row = self._row(request, pk)
        return HttpResponse(
            problems_as_text(row.problems, row.more_problems),
            content_type="text/plain; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="problems-{row.pk}.txt"'},
        )

    def download_changes(self, request: HttpRequest, pk: int) -> HttpResponse:
        """All changes of a file as CSV."""
        row = self._row(request, pk)
        changes, columns = row.result.get("changes", []), [*COLUMNS]
        if row.kind in TABLES:
            columns += ["list", "since"]
            if sees_cost(request):
                changes, columns = _with_costs(changes), [*columns, "cost", "margin"]
        return HttpResponse(
            as_csv(changes, columns),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="changes-{row.pk}.csv"'},
        )

    def _row(self, request: HttpRequest, pk: int) -> FileImport:
        row = FileImport.objects.defer("sealed").filter(pk=pk).first()
        if row is None:
            raise Http404
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return row


def _take_step(request: HttpRequest, pk: int, step: str) -> bool:
    """False if the import was in another state. Raises Doubtful."""
    if step == "confirm":
        confirmed = request.POST.getlist("doubt")
        seen = request.POST.get("seen", "")
        return confirm_import(pk=pk, actor=staff_of(request), seen=seen, confirmed=confirmed)
    return STEPS[step](pk=pk, actor=staff_of(request))


def upload_url(kind: ImportKind, shelf: Shelf | None = None, **query: int) -> str:
    """The address of the form, with this shelf chosen. With the id of a `price_list`, the form
    exports only that one."""
    query |= {"shelf": shelf.pk} if shelf else {}
    return reverse("admin:imports_fileimport_upload", args=[kind.value], query=query)


def _upload(request: HttpRequest, kind: ImportKind, form: UploadForm) -> FileImport:
    values = form.cleaned_data
    if values["file"] is None:  # it came in parts
        return finish_upload(
            upload=values["upload"],
            size=values["upload_size"] or 0,
            file_name=values["upload_name"],
            shelf=values["shelf"],
            actor=staff_of(request),
            details=values["details"],
        )
    return upload_file(
        kind=kind,
        content=values["file"].read(REQUEST_BYTES + 1),
        file_name=values["file"].name,
        shelf=values.get("shelf"),
        actor=staff_of(request),
        token=values["form"] or uuid4(),
        details=values.get("details"),
    )


def _details_of_last_file(request: HttpRequest) -> dict[str, str]:
    """The details of the import before this one, for the form of the next file. The last day of
    sale is left out, unless that file had problems: a wrong one would take codes from sale."""
    pk = request.GET.get("after", "")
    row = FileImport.objects.filter(pk=pk if is_id(pk) else 0, kind=ImportKind.CODES).first()
    if row is None:
        return {}
    left_out = None if row.state == ImportState.REFUSED else "expires_on"
    return {name: text for name, text in row.batch.items() if name != left_out}


def _empty_files() -> list[tuple[str, str]]:
    return [(name, static(path)) for name, path in EMPTY_FILES.items()]


def _exports(request: HttpRequest, kind: ImportKind) -> list[tuple[str, str]]:
    """A list that is exported, changed and imported again: its words, and the file's address."""
    if kind == ImportKind.CATALOGUE:
        name = "admin:imports_fileimport_export"
        return [(one.label, reverse(name, args=[one.value])) for one in ExportFormat]
    if kind == ImportKind.PRICE_LISTS:
        text = request.GET.get("price_list", "")
        chosen = PriceList.objects.filter(pk=text if is_id(text) else 0).first()
        query = {"price_list__id__exact": chosen.pk} if chosen else {}
        return _files_of(request, PriceListEntry, f"?{urlencode({**query, 'state': 'not-ended'})}")
    return _files_of(request, ExchangeRate, "") if kind == ImportKind.EXCHANGE_RATES else []


def _files_of(request: HttpRequest, model: type[Model], query: str) -> list[tuple[str, str]]:
    page: Any = admin.site.get_model_admin(model)
    files: list[tuple[str, str]] = page.files_of(request, query)
    return files


def _parts_url() -> str:
    return reverse("admin:imports_fileimport_part")


def _context(request: HttpRequest, row: FileImport) -> dict[str, Any]:
    """The context of an import's page."""
    changes = row.result.get("changes", [])
    result = row.result
    state, colour = _state_of(row, waits=result.get("waits"), doubts=result.get("doubts"))
    user, asker, below = staff_of(request), row.asker(), _below_cost(row)
    is_asker = bool(result.get("waits")) and asker == user
    return {
        "row": row,
        "state": state,
        "colour": colour,
        "is_running": row.state in RUNNING,
        "is_waiting": row.state in WAITING,
        "is_codes": row.kind == ImportKind.CODES,
        "is_table": row.kind in TABLES,
        "sees_cost": row.kind == ImportKind.PRICE_LISTS and sees_cost(request),
        "may_import": may_import(staff_of(request), row.kind),
        "shelf_url": url_of(row.shelf) if row.shelf else "",
        "counts": [
            (name, row.result["counts"][kind])
            for kind, name in KINDS.items()
            if kind in row.result.get("counts", {})
        ],
        "waits": [describe_price(one) for one in row.result.get("waits", [])],
        "below": below,
        "asks": (below or is_asker) and not user.is_superuser,
        "asker": asker,
        "approvers": names_of_staff_who_may(
            RIGHTS[ImportKind(row.kind)][0], (asker or user).get_username()
        )
        or _("nobody yet"),
        "prices": [_price_in_words(one) for one in row.result.get("prices", [])],
        "doubts": [
            (doubt_id(one), translate_stored(one, *DOUBTS_OF_FILES))
            for one in row.result.get("doubts", [])
        ],
        "lengths": _most_first(row, "lengths"),
        "alphabets": [
            (_(KINDS_OF_CHARACTERS[kind]), count) for kind, count in _most_first(row, "alphabets")
        ],
        "batch_url": _batch_url(row),
        "changes": [
            _change_in_words(one)
            for one in (_with_costs if sees_cost(request) else list)(changes[:SHOWN_CHANGES])
        ],
        "more_changes": len(changes[SHOWN_CHANGES:]) + row.result.get("more_changes", 0),
        "cost": _cost(row),
        "details": list(_details(row)),
        "is_taken_back": _is_taken_back(row),
        "problems": [translate_stored(one, *PROBLEMS) for one in row.problems[:SHOWN_PROBLEMS]],
        "more_problems": len(row.problems[SHOWN_PROBLEMS:]) + row.more_problems,
        "refresh": REFRESH_SECONDS,
        "again_url": upload_url(ImportKind(row.kind), row.shelf, after=row.pk),
    }


def _most_first(row: FileImport, shape: str) -> list[tuple[str, int]]:
    return Counter(row.result.get("shapes", {}).get(shape, {})).most_common()


def _below_cost(row: FileImport) -> list[str]:
    """The prices that are below the cost of the checked codes: their import needs two people."""
    cost, is_ready = row.batch.get("unit_cost"), row.state == ImportState.READY
    if cost is None or row.shelf is None or not is_ready or row.result.get("waits"):
        return []
    below = prices_below(row.shelf, Decimal(cost), row.batch["cost_currency"])
    return [describe_price(one) for one in below]


def _state_of(row: FileImport, *, waits: object, doubts: object) -> tuple[str, str]:
    """The state of an import in words, and its colour. A file that is ready may wait for a second
    person, or have doubts."""
    if row.state == ImportState.READY and waits:
        return _("Waits for a second person"), "warning"
    if row.state == ImportState.READY and doubts:
        return _("In doubt"), "warning"
    return ImportState(row.state).label, STATE_COLOURS[ImportState(row.state)]


def _batch_url(row: FileImport) -> str:
    batch = Batch.objects.filter(pk=row.result.get("batch") or 0).first()
    return url_of(batch) if batch else ""


def _is_taken_back(row: FileImport) -> bool:
    batch = row.result.get("batch")
    return bool(batch) and Batch.objects.filter(pk=batch, taken_back_at__isnull=False).exists()


def _cost(row: FileImport) -> str:
    """The cost of all codes of a checked file; empty if no cost was entered."""
    cost = total_cost(row.batch.get("unit_cost"), row.result.get("codes", 0))
    return "" if cost is None else amount(cost, row.batch["cost_currency"])


def _details(row: FileImport) -> Iterator[tuple[str, str]]:
    """The details that were entered about the codes of a file: a name and a value each."""
    words: dict[str, Callable[[str], str]] = {
        "supplier": str,
        "invoice": str,
        "unit_cost": lambda cost: amount(Decimal(cost), row.batch["cost_currency"]),
        "expires_on": lambda day: local_day(date.fromisoformat(day)),
    }
    for name, in_words in words.items():
        if value := row.batch.get(name):
            yield str(CodesForm.base_fields[name].label), in_words(value)


def sees_cost(request: HttpRequest) -> bool:
    return any(staff_of(request).has_perm(one) for one in SEES_COST)


def _with_costs(changes: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Changes of prices with the cost of the codes in stock, and what a code then earns."""
    keys = [("shelf", int(one["id"])) for one in changes if one["kind"] == "shelf"]
    costs = stock_costs(keys)
    found = []
    for one in changes:
        cost = costs.get(("shelf", int(one["id"]))) if one["kind"] == "shelf" else None
        after = one["one_after"]
        margin = None if cost is None or not after else Decimal(after) - cost
        found.append({**one, "cost": _exact(cost), "margin": _exact(margin)})
    return found


def _exact(value: Decimal | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _change_in_words(change: dict[str, str]) -> dict[str, str]:
    """A stored change (operators/imports/catalogue_changes.py), for people."""
    danger, value = change["danger"], change["value"].replace("_", " ")
    times = {name: _time_in_words(change.get(name, "")) for name in ("before", "after", "since")}
    return {**change, **times, "danger": danger and _(danger), "value": _(value)}


def _time_in_words(text: str) -> str:
    """A stored time for people; any other text as it is."""
    if text == NOW:
        return _("now")
    if not STORED_TIME.fullmatch(text):
        return text
    return f"{date_format(read_time(text), 'SHORT_DATETIME_FORMAT')} UTC"


def _price_in_words(price: dict[str, Any]) -> dict[str, Any]:
    """For people: what `_prices_to_show` in operators/imports/jobs.py stores of a price."""
    percent = price["percent"]
    return {
        "name": price["name"],
        "before": amount(Decimal(price["before"]), price["currency"]),
        "after": amount(Decimal(price["after"]), price["currency"])
        if price["after"]
        else _("no price"),
        "change": _("removed") if percent is None else f"{local_number(percent, 1, '+')} %",
        "large": percent is None or abs(percent) > 100 * LARGE_CHANGE,
    }


def _list_url() -> str:
    return reverse("admin:imports_fileimport_changelist")
