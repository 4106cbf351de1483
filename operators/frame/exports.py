"""Every list of the back office as a file: the rows that its filter finds, as CSV or XLSX."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from html import unescape
from typing import Any

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import display_for_field, label_for_field, lookup_field
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Max, QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import strip_tags
from django.utils.text import capfirst, slugify
from django.utils.translation import gettext as _

from audit.models import AuditAction
from audit.services import record_action
from core.files.table_files import CONTENT_TYPES, write_table
from core.texts import in_english
from merchants.frame.downloads import filter_in_words, send_file
from merchants.frame.prepared_files import STILL_BUILDING, StillBuilding, prepare_file
from merchants.models import PreparedFile

EXPORT = "audit.export_lists"
CHUNK = 500  # rows of a query
IDS_AT_ONCE = 5_000
NO_COLUMNS = {"action_checkbox"}

Columns = Mapping[str, Callable[[Any], Any]]


class ExportedList:
    """A list that people with the right to export download.

    export_columns: the columns of the file, in place of those of the list.
    is_imported: whether people change the file and import it again. Its headings are then the
        same in each language.
    """

    export_columns: Columns = {}
    is_imported: bool = False

    def get_urls(self) -> list[URLPattern]:
        page: Any = self
        name = f"{page.opts.app_label}_{page.opts.model_name}_list_file"
        view = page.admin_site.admin_view(self.export_view)
        urls: list[URLPattern] = super().get_urls()  # type: ignore[misc]
        return [path("export.<slug:format>", view, name=name), *urls]

    def has_export_permission(self, request: HttpRequest) -> bool:
        page: Any = self
        return bool(page.has_view_permission(request) and request.user.has_perm(EXPORT))

    def files_of(self, request: HttpRequest, query: str) -> list[tuple[str, str]]:
        """The formats that this person may download, and their addresses."""
        if not self.has_export_permission(request):
            return []
        meta = self.opts  # type: ignore[attr-defined]
        name = f"admin:{meta.app_label}_{meta.model_name}_list_file"
        return [(one.upper(), reverse(name, args=[one]) + query) for one in CONTENT_TYPES]

    def export_view(self, request: HttpRequest, format: str) -> HttpResponseBase:
        """The file, or the page of one that a worker builds. Redirects to the list if its filter is
        not valid."""
        page: Any = self
        if not self.has_export_permission(request) or not isinstance(request.user, User):
            raise PermissionDenied
        if format not in CONTENT_TYPES:
            raise Http404
        meta = page.opts
        try:
            shown = page.get_changelist_instance(request)
        except IncorrectLookupParameters:
            back = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
            return HttpResponseRedirect(f"{back}?e=1")
        rows, in_windows = shown.all_rows(request)
        with nullcontext() if format == "xlsx" else in_english():
            headings, cells = self._columns_of(shown)
            title = "" if self.is_imported else capfirst(str(meta.verbose_name_plural))
        with in_english():
            name = f"{slugify(meta.verbose_name_plural)}.{format}"
            parts = write_table(
                format,
                headings,
                ([cell(row) for cell in cells] for row in read_all(rows, in_windows)),
                is_imported=self.is_imported,
                title=title,
            )
            return send_to_staff(request, parts, name=name, content_type=CONTENT_TYPES[format])

    def _columns_of(self, shown: Any) -> tuple[list[str], list[Callable[[Any], Any]]]:
        """The headings in the present language, and what makes the cells below each."""
        if self.is_imported:
            return [*self.export_columns], [*self.export_columns.values()]
        if self.export_columns:
            return [_(name) for name in self.export_columns], [*self.export_columns.values()]
        names = [name for name in shown.list_display if name not in NO_COLUMNS]
        headings = [str(label_for_field(name, shown.model, self)) for name in names]  # type: ignore[call-overload]
        return headings, [partial(_cell, name, page=self) for name in names]


def send_to_staff(
    request: HttpRequest, parts: Generator[bytes], *, name: str, content_type: str
) -> HttpResponseBase:
    """The file, which the trail records. If it is large or slow, a worker builds it: redirects to
    its page, or to that of an earlier file that is not built yet."""
    record = partial(_record, request, name=name)
    about: dict[str, Any] = {"content_type": content_type, "name": name, "record": record}
    if answer := send_file(request, parts, **about):
        return answer
    user: Any = request.user
    try:
        file = prepare_file(request, user=user, key=None, account=None, **about)
    except StillBuilding as other:
        messages.warning(request, STILL_BUILDING)
        return HttpResponseRedirect(_page_of(other.file))
    return HttpResponseRedirect(_page_of(file))


def _page_of(file: PreparedFile | None) -> str:
    return reverse("prepared_file", args=[file.token]) if file else reverse("admin:index")


def _record(request: HttpRequest, *, name: str) -> None:
    """Records that the signed-in person downloads a file, and the filter of its rows."""
    record_action(
        actor=request.user if isinstance(request.user, User) else None,
        action=AuditAction.EXPORTED,
        on=request.user,  # type: ignore[arg-type]
        reference=name,
        note=filter_in_words(request.GET.items()),
    )


def read_all(rows: QuerySet[Any], in_windows: bool) -> Iterator[Any]:
    """All rows, newest first, in bounded memory.

    Each query is short, so a large file holds no cursor and no transaction open. `in_windows`
    is for filters that no index serves: a query then reads some thousand ids of the table, and not
    the whole table to find few rows.
    """
    rows = rows.order_by("-pk")
    if in_windows:
        newest = rows.model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0
        for end in range(newest + 1, 0, -IDS_AT_ONCE):
            yield from rows.filter(pk__lt=end, pk__gte=end - IDS_AT_ONCE)
        return
    chunk = list(rows[:CHUNK])
    while chunk:
        yield from chunk
        chunk = list(rows.filter(pk__lt=chunk[-1].pk)[:CHUNK])


def _cell(name: str, row: Any, page: Any) -> Any:
    """The value in the list, as text, or as a value that is the same in every language."""
    field, _, value = lookup_field(name, row, page)
    if field is not None and (field.choices or field.is_relation):
        related = getattr(row, field.name)
        value = related if field.is_relation else display_for_field(value, field, "")
    if value is None or isinstance(value, bool | int) or hasattr(value, "isoformat"):
        return value
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    text = str(value)
    if "<" in text or "&" in text:
        text = unescape(strip_tags(text))
    text = " ".join(text.split())
    return "" if text == "-" else text
