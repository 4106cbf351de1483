"""The page of the audit trail, its export as a file, and the page of one audit entry."""

from __future__ import annotations

import csv
import re
from collections.abc import Generator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    QueryDict,
)
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminSelect2Widget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.preferences.time_zones import local_text
from audit.actor import in_words
from audit.models import AuditAction, AuditEntry
from core.files.csv_cells import Echo, harmless
from core.inputs import ID_DIGITS, is_id
from core.texts import english, in_english, lazy
from merchants.frame.periods import PeriodForm
from operators.frame.base import DETAILS, EMPTY, RecordAdmin, shown_reference, site_page
from operators.frame.exports import send_to_staff
from operators.frame.reader import may_view, registered_models
from operators.history.audit_trail import (
    Entry,
    EntryPosition,
    EntryQuery,
    entry_of,
    read_all,
    read_entries,
    with_parts,
)
from operators.history.entries import (
    NAMES,
    change_texts,
    kind_of,
    links_to_rows,
    note_text,
    object_name,
    page_of,
    request_of,
    rows,
    staff,
    url_for,
)
from operators.history.revealed_codes import condition_of_codes, condition_of_orders, name_codes
from operators.sign_in.models import TwoPersonChange
from orders.models import Order
from orders.selectors import REFERENCE_PATTERN
from wallets.models import LedgerEntry
from wallets.services import BOOKING_ACTIONS

PER_PAGE = 50
LONGEST_TEXT = 200
REVEALED_LATELY = timedelta(days=29)  # before today
COLUMNS = ["time", "action", "by", "from", "object", "name", "note", "changes", "request_id"]
OBJECT = re.compile(rf"(\w+):(\d{{1,{ID_DIGITS}}})")


class TrailFilter(PeriodForm):
    """Filters the audit trail by person, object, kind and day."""

    # People also type names: entries of work on the server have names that are no usernames.
    who = forms.CharField(
        required=False,
        max_length=LONGEST_TEXT,
        label=lazy("Who"),
        widget=UnfoldAdminSelect2Widget({"data-tags": "true", "style": "width: 100%"}),
    )
    of = forms.ChoiceField(
        required=False, label=lazy("Kind of object"), widget=UnfoldAdminSelectWidget
    )
    about = forms.CharField(
        required=False,
        max_length=LONGEST_TEXT,
        label=lazy("Name or ID"),
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("For an order or a booking, its reference"),
    )
    kind = forms.ChoiceField(required=False, label=lazy("Action"), widget=UnfoldAdminSelectWidget)
    field_order = ("who", "of", "about", "kind", "since", "until")
    kinds: Sequence[str] = (
        *("account", "client", "person", "product", "shelf", "topupproduct", "batch", "pricelist"),
        *("case", "category"),
    )

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.hidden = hidden_bookings(request)
        self.values = self.read(request).copy()
        labels = _labels()
        link = OBJECT.fullmatch(self.values.get("about", ""))
        if link and link[1].lower() in self.kinds:
            self.values["of"], self.values["about"] = link[1].lower(), link[2]
        super().__init__(self.values)
        word, pk = self.values.get("of", ""), self.values.get("about", "")
        if word in self.kinds and is_id(pk):
            self.fields["about"].help_text = self._name_of(labels[word], pk)
        names = {*(staff() if may_view(request, User) else []), self.values.get("who", "")} - {""}
        self.fields["who"].widget.choices = _choices({name: name for name in names})
        kinds = {word: capfirst(kind_of(labels[word])) for word in self.kinds}
        self.fields["of"].choices = _choices(kinds)  # type: ignore[attr-defined]
        if "kind" in self.fields:
            actions = {key: name for key, name in AuditAction.choices if key not in self.hidden}
            self.fields["kind"].choices = _choices(actions)  # type: ignore[attr-defined]
        for name in ("since", "until"):
            self.fields[name].widget = UnfoldAdminTextInputWidget({"type": "date"})

    def read(self, request: HttpRequest) -> QueryDict:
        """The values of the filter."""
        return request.GET

    def query(self) -> EntryQuery:
        """The query of a valid form."""
        values = self.cleaned_data
        about = values["about"].strip()
        match = OBJECT.fullmatch(about)
        label = _labels().get(match[1].lower()) if match else None
        action = values.get("kind", AuditAction.CODE_REVEALED.value)
        codes = None
        reference = "" if label else _reference(about)
        if match and label and action == AuditAction.CODE_REVEALED:
            codes = condition_of_codes(label, match[2])
        elif action == AuditAction.CODE_REVEALED and REFERENCE_PATTERN.fullmatch(reference):
            codes, reference = condition_of_orders(Order.objects.filter(reference=reference)), ""
        return EntryQuery(
            by=values["who"].strip(),
            objects=with_parts(label, match[2]) if match and label and codes is None else {},
            reference=reference,
            action=action,
            where=codes or Q(),
            without=self.hidden,
            since=self.begins,
            until=self.ends,
        )

    def clean(self) -> dict[str, Any]:
        """Replaces a kind and a name by the kind and the ID of the object with this name."""
        cleaned = super().clean()
        word, name = cleaned.get("of"), cleaned.get("about", "").strip()
        if word and not name:
            self.add_error("about", _("Enter a name or an ID."))
        elif word:
            found = [name] if is_id(name) else self._ids_of(_labels()[word], name)
            if not found:
                self.add_error("about", _("Nothing of this kind has this name."))
            elif len(found) > 1:
                self.add_error("about", _("Several objects have this name. Enter the ID of one."))
            else:
                cleaned["about"] = f"{word}:{found[0]}"
        return cleaned

    def _name_of(self, label: str, pk: str) -> str:
        """The name of the object with this ID, for readers who may view it."""
        model = apps.get_model(label)
        rows = model._default_manager.filter(pk=pk) if may_view(self.request, model) else []
        return "".join(map(str, rows))

    def _ids_of(self, label: str, name: str) -> list[str]:
        """The IDs of at most ten objects that the search of their list finds. If only one has
        exactly this name, its ID."""
        model = apps.get_model(label)
        if not may_view(self.request, model):
            return []
        page: Any = admin.site.get_model_admin(model)
        rows = page.get_queryset(self.request)
        found = list(page.get_search_results(self.request, rows, name)[0][:10])
        exact = [row for row in found if str(row).lower() == name.lower()]
        return [str(row.pk) for row in (exact if len(exact) == 1 else found)]


class RevealFilter(TrailFilter):
    """Filters the entries of revealed codes. Without a first day, those of the last 30 days."""

    kind = None  # type: ignore[assignment]  # Django removes the field
    kinds = ("batch", "shelf", "product", "account", "client")

    def read(self, request: HttpRequest) -> QueryDict:
        values = request.GET.copy()
        if "since" not in values:
            today = timezone.localdate()
            values["since"] = str(today - REVEALED_LATELY)
            values.setdefault("until", str(today))
        return values


def _choices(names: Mapping[str, str]) -> list[tuple[str, str]]:
    """All, and these choices by name."""
    choices = sorted(names.items(), key=lambda choice: choice[1].casefold())
    return [("", _("All")), *choices]


def _labels() -> dict[str, str]:
    """The labels of models by the words that people write for them, such as `client`."""
    labels = {model._meta.model_name: model._meta.label_lower for model in registered_models()}
    return {str(name): label for name, label in labels.items()} | {
        english(name).replace(" ", ""): label for label, name in NAMES.items()
    }


def _reference(text: str) -> str:
    """References of orders are found in lower case, too."""
    return text.upper() if REFERENCE_PATTERN.fullmatch(text.upper()) else text


@require_safe
def show_trail(request: HttpRequest) -> HttpResponse:
    """One page of the audit trail, newest first. The query names the position of an older page."""
    return _show(
        request, TrailFilter, title=_("Audit trail"), all_url=reverse("audit_trail"), query={}
    )


@require_safe
def show_revealed_codes(request: HttpRequest) -> HttpResponse:
    """One page of the codes that staff revealed. Its file is that of the audit trail."""
    return _show(
        request,
        RevealFilter,
        title=_("Who saw codes"),
        intro=_(
            "The codes that staff revealed in the back office. The merchant site shows no codes:"
            " a merchant's programs receive the codes of their own orders over the API. “Who"
            " bought…” on the page of a batch names these orders."
        ),
        all_url=reverse("who_saw_codes", query={"since": ""}),
        query={"kind": AuditAction.CODE_REVEALED.value},
        empty=_("Nobody revealed a code in this period."),
    )


def _show(
    request: HttpRequest,
    form: type[TrailFilter],
    *,
    query: dict[str, str],
    **context: Any,
) -> HttpResponse:
    """`query` is what the address of the file has besides the values of the filter."""
    _refuse_others(request)
    filters = form(request)
    entries: list[AuditEntry] = []
    older = ""
    if filters.is_valid():
        before = EntryPosition.parse(request.GET.get("before", ""))
        entries = read_entries(filters.query(), before=before, limit=PER_PAGE + 1)
        if len(entries) > PER_PAGE:
            entries = entries[:PER_PAGE]
            older = _query(filters, before=str(EntryPosition.of(entries[-1])))
    names = name_codes if isinstance(filters, RevealFilter) else partial(map, entry_of)
    return site_page(
        request,
        "admin/audit_trail.html",
        filters=filters,
        rows=rows(request, names(entries)),
        older=older,
        newest=_query(filters) if request.GET.get("before") else "",
        export=f"{reverse('audit_trail_file')}{_query(filters, **query)}",
        filtered=any(request.GET.values()),
        ranges=_ranges(filters),
        **context,
    )


@require_safe
def export_trail(request: HttpRequest) -> HttpResponseBase:
    """All that the filter finds, as CSV, newest first. 400 if the filter is invalid."""
    _refuse_others(request)
    filters = TrailFilter(request)
    if not filters.is_valid():
        return HttpResponse(
            _("The filter is not valid. Go back and correct it."),
            status=400,
            content_type="text/plain",
        )
    return send_to_staff(
        request,
        _write(filters.query()),
        content_type="text/csv; charset=utf-8",
        name="audit-trail.csv",
    )


def hidden_bookings(request: HttpRequest) -> list[str]:
    """The actions that the audit trail hides from this reader: bookings are for those who may view
    the ledger."""
    return [] if may_view(request, LedgerEntry) else list(BOOKING_ACTIONS)


def _refuse_others(request: HttpRequest) -> None:
    """Raises PermissionDenied for people who may not read the audit trail."""
    if not may_view(request, AuditEntry):
        raise PermissionDenied


def _ranges(filters: TrailFilter) -> list[dict[str, Any]]:
    """Links to periods that end today, and to all, for `admin/ranges.html`."""
    today = timezone.localdate()
    periods = {
        _("Today"): {"since": str(today), "until": str(today)},
        _("7 days"): {"since": str(today - timedelta(days=6)), "until": str(today)},
        _("30 days"): {"since": str(today - timedelta(days=29)), "until": str(today)},
        _("This month"): {"since": str(today.replace(day=1)), "until": str(today)},
        _("All"): {"since": "", "until": ""},
    }
    chosen = {end: filters.values.get(end, "") for end in ("since", "until")}
    return [
        {"name": name, "url": _query(filters, **period), "chosen": period == chosen}
        for name, period in periods.items()
    ]


def _query(filters: TrailFilter, **more: str) -> str:
    values = filters.values.copy()
    values.pop("before", None)
    for name, value in more.items():
        values[name] = value
    return f"?{values.urlencode()}"


def _write(query: EntryQuery) -> Generator[bytes]:
    writer = csv.writer(Echo())
    yield "".join(("\ufeff", _csv(writer, COLUMNS))).encode()
    for entry in read_all(query):
        with in_english():
            line = _csv(writer, _cells(entry_of(entry)))
        yield line.encode()


def _csv(writer: Any, cells: list[Any]) -> str:
    text: str = writer.writerow([harmless(cell) for cell in cells])
    return text


def _cells(entry: Entry) -> list[Any]:
    changes = "; ".join(f"{name}: {old} → {new}" for name, old, new in change_texts(entry))
    label, pk = entry.on
    what = f"{kind_of(label)} {pk}".rstrip()
    return [
        *(local_text(entry.at), entry.what, entry.who, entry.address or entry.where, what),
        *(entry.name, entry.note, changes, entry.request_id),
    ]


@admin.register(AuditEntry)
class AuditEntryAdmin(RecordAdmin):
    """The page of one entry. The list of them is the audit trail."""

    fields = ("created_at", "who", "act", "object", "name_then", "words", "change_list")
    details = ("ip_address", "request_id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        entries: QuerySet[AuditEntry] = super().get_queryset(request)
        return entries.exclude(action__in=hidden_bookings(request))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return HttpResponseRedirect(reverse("audit_trail"))

    @admin.display(description=lazy("who"))
    def who(self, entry: AuditEntry) -> str:
        return in_words(entry_of(entry).who)

    @admin.display(description=lazy("IP address"))
    def ip_address(self, entry: AuditEntry) -> str:
        return entry.address or EMPTY

    @admin.display(description=lazy("reference or name at that time"))
    def name_then(self, entry: AuditEntry) -> str:
        return shown_reference(entry.reference)

    @display(description=lazy("action"), label=True)
    def act(self, entry: AuditEntry) -> str:
        return entry.action_label

    @admin.display(description=lazy("note"))
    def words(self, entry: AuditEntry) -> str:
        request = TwoPersonChange.objects.filter(pk=request_of(entry_of(entry))).first()
        return note_text(entry.note, request) or EMPTY

    @admin.display(description=lazy("changes"))
    def change_list(self, entry: AuditEntry) -> str:
        one = entry_of(entry)
        lines = (
            format_html("{}{}", name and f"{name}: ", new)
            if old == EMPTY
            else format_html("{}{} → {}", name and f"{name}: ", old, new)
            for name, old, new in change_texts(one, links_to_rows([one]))
        )
        return format_html_join("", "<div>{}</div>", ((line,) for line in lines)) or EMPTY

    @admin.display(description=lazy("object"))
    def object(self, entry: AuditEntry) -> str:
        return object_name(entry_of(entry))

    @admin.display(description=lazy("object"))
    def linked_object(self, entry: AuditEntry) -> str:
        url = page_of(entry.object_type, entry.object_id)
        return format_html('<a href="{}" class="text-link">{}</a>', url, self.object(entry))

    def get_fieldsets(self, request: HttpRequest, obj: AuditEntry | None = None) -> Any:
        """The object is a link for readers who may follow it."""
        is_link = obj is not None and url_for(request, obj.object_type, obj.object_id)
        fields = ["linked_object" if name == "object" and is_link else name for name in self.fields]
        folded = {"fields": self.details, "classes": ["collapse"]}
        return [(None, {"fields": fields}), (DETAILS, folded)]
