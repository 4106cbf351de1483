"""Batches of codes and holds: what was imported, who bought of it, and what must not be sold."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, timedelta
from decimal import Decimal
from functools import partial, reduce
from operator import or_
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import PermissionDenied
from django.db.models import (
    Case,
    Count,
    Exists,
    Func,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    When,
)
from django.db.models.functions import Coalesce, Now, TruncDate
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter, RangeDateTimeFilter
from unfold.decorators import action
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminTextInputWidget

from audit.actor import current_actor, in_words
from audit.models import AuditAction, AuditEntry
from catalogue.imports.take_back import take_import_back
from catalogue.models import Batch, CodeHold, Shelf, VoucherCode
from catalogue.stock.batches import STATES, count_codes, total_cost
from catalogue.stock.holds import (
    count_by_hold,
    end_codes,
    hold_codes,
    holds_of_batch,
    other_to_ask,
    refuse_own,
    release_hold,
    void_hold,
)
from core.database.columns import NOTE_LENGTH
from core.files.csv_cells import Echo, harmless
from core.files.table_files import CONTENT_TYPES
from core.formats import local_day, local_number
from core.inputs import InputProblem
from core.json_output import money_text
from core.texts import lazy
from figures.models import DailyStock
from operators.frame.base import (
    CURRENCY_HELP,
    DETAILS,
    EMPTY,
    CappedPaginator,
    ConditionFilter,
    KeptAdmin,
    RecordAdmin,
    amount,
    done_by,
    label,
    link_to,
    link_to_list,
    linked,
    page,
    staff_of,
    url_of,
)
from operators.frame.exports import send_to_staff
from operators.frame.reader import may_view
from operators.frame.row_names import row_name
from operators.history.timeline import Timeline, TimelinePage
from operators.imports.models import FileImport, ImportState
from operators.money.booking import actor_of
from operators.sign_in.two_people import TwoPeopleForm, TwoPeoplePage
from orders.models import LostPurchase, Order
from orders.remedies.recall import orders_of_batch

HOLD = "catalogue.hold_codes"
SELECTION = ("action", "_selected_action", "select_across")  # what Django's lists post
SHOWN_ORDERS = 200
LOOKED_AT = 1_000  # sold codes, for the page of their orders
SHOWN_HOLDS = SHOWN_SHELVES = 20
# How a page names the codes that it asks about, or a function that names a number of codes.
CodesInWords = str | Callable[[int], str]
STATE_NAMES = {
    "in-stock": lazy("in stock"),
    "sold": lazy("sold"),
    "held": lazy("held"),
    "void": lazy("void"),
}
COLUMNS = ("account_id", "account", "client", "reference", "created_at", "codes", "quantity")


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label=lazy("Reason"),
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("The audit trail keeps it. Never write a code here."),
    )


class HoldingAdmin(ModelAdmin):
    """Pages with an action that holds, releases or voids codes."""

    def has_hold_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(self.has_view_permission(request)) and staff_of(request).has_perm(HOLD)

    def find(self, request: HttpRequest, object_id: str) -> Any:
        """The row of the page. Raises Http404, or PermissionDenied for people without the right."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return row

    def ask(
        self,
        request: HttpRequest,
        row: Any,
        *,
        title: str,
        question: str,
        facts: list[str],
        act: Callable[[str], str],
        chosen: str = "",
        back: str = "",
        danger: bool = True,
        hidden: Sequence[tuple[str, str]] = (),
    ) -> HttpResponse:
        """Asks for a reason, then acts with it. `act` returns what happened, or raises
        InputProblem. The question names the codes: an action of a list names what was `chosen`; its
        address is `back`."""
        form = ReasonForm(request.POST if "reason" in request.POST else None)
        if form.is_valid():
            try:
                messages.success(request, act(form.cleaned_data["reason"]))
            except InputProblem as problem:
                messages.error(request, str(problem))
            return HttpResponseRedirect(back or url_of(row))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=row,
            title=title,
            form=form,
            question=question
            % {
                "codes": chosen
                or _("the codes of %(row)s") % {"row": row_name(type(row), str(row))}
            },
            facts=facts,
            hidden=[
                *hidden,
                *((name, one) for name in SELECTION for one in request.POST.getlist(name)),
            ],
            button=title,
            danger=danger,
            back=back or url_of(row),
        )

    def ask_to_hold(
        self, request: HttpRequest, row: Any, codes: Q, *, chosen: str = "", back: str = ""
    ) -> HttpResponse:
        """Asks for a reason, then holds these codes as far as they are in stock."""

        def act(reason: str) -> str:
            return hold_chosen(codes, reason=reason, request=request)

        in_stock = _describe_shelves(codes, "in-stock")
        fact = _("Held codes are not sold. You can release them; another person can void them.")
        return self.ask(
            request,
            row,
            title=_("Hold codes"),
            question=_("Hold %(codes)s?"),
            facts=[*(in_stock or [_("None of these codes is in stock.")]), fact],
            act=act,
            chosen=chosen,
            back=back,
        )

    def held_codes(self, row: Any) -> tuple[Q | CodeHold, CodesInWords]:
        """The codes that the buttons of a row release or void, and their name.

        The name is empty for the row's own codes.
        """
        raise NotImplementedError

    @action(description=lazy("Release…"), icon="undo", permissions=["hold"], url_path="release")
    def release(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.find(request, object_id)
        codes, chosen = self.held_codes(row)
        return self.ask_to_release(request, row, codes, chosen=chosen)

    @action(
        description=lazy("Void…"),
        icon="delete",
        permissions=["hold"],
        url_path="void",
        variant=ActionVariant.DANGER,
    )
    def void(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.find(request, object_id)
        codes, chosen = self.held_codes(row)
        return self.ask_to_void(request, row, codes, chosen=chosen)

    def ask_to_release(
        self, request: HttpRequest, row: Any, codes: Q | CodeHold, **more: Any
    ) -> HttpResponse:
        """Asks for a reason, then releases a hold, or these codes if all of them are held."""
        return self._ask_to_end(
            request,
            row,
            codes,
            release_hold,
            title=_("Release codes"),
            question=_("Release %(codes)s?"),
            fact=_("They return to stock at their old places, and the next purchases get them."),
            danger=False,
            **more,
        )

    def ask_to_void(
        self, request: HttpRequest, row: Any, codes: Q | CodeHold, **more: Any
    ) -> HttpResponse:
        """Asks for a reason, then voids a hold, or these codes if all of them are held."""
        return self._ask_to_end(
            request,
            row,
            codes,
            void_hold,
            title=_("Void codes"),
            question=_("Void %(codes)s?"),
            fact=_("Void codes are never sold. This cannot be undone."),
            **more,
        )

    def _ask_to_end(
        self,
        request: HttpRequest,
        row: Any,
        codes: Q | CodeHold,
        end: Callable[..., int],
        *,
        fact: str,
        chosen: CodesInWords = "",
        **more: Any,
    ) -> HttpResponse:
        """Asks, then ends a hold, or the holding of these codes.

        The page names their holds, because merchants may have the codes of one. The form brings the
        holds back: only what the person has seen is done.
        """
        held = Q(hold=codes) if isinstance(codes, CodeHold) else codes
        if isinstance(codes, CodeHold) and _has_ended(codes):
            messages.error(request, _("This hold has ended. Nothing was changed."))
            return HttpResponseRedirect(url_of(row))
        if end is void_hold:
            numbers, cost = _count_with_cost(held)
            fact = f"{cost} {fact}"
            try:
                refuse_own(CodeHold.objects.filter(pk__in=numbers), staff_of(request))
            except InputProblem as problem:
                messages.error(request, str(problem))
                return HttpResponseRedirect(more.get("back") or url_of(row))
        if isinstance(codes, CodeHold):

            def act(reason: str) -> str:
                return _done(end, end(codes.pk, actor=staff_of(request), note=reason))

            facts = [*_describe_shelves(held, "held"), fact]
            return self.ask(request, row, facts=facts, act=act, **more)

        if end is not void_hold:
            numbers = count_by_hold(codes)
        more["chosen"] = chosen(sum(numbers.values())) if callable(chosen) else chosen
        shown = request.POST.get("holds", _as_text(numbers))

        def act_on_codes(reason: str) -> str:
            _refuse_lost(numbers)
            seen = numbers if shown == _as_text(numbers) else {}
            number = end_codes(end, codes=codes, seen=seen, reason=reason, actor=staff_of(request))
            return _done(end, number)

        facts = [*_describe_holds(numbers), fact]
        hidden = [("holds", shown)]
        return self.ask(request, row, facts=facts, act=act_on_codes, hidden=hidden, **more)


class BatchForm(TwoPeopleForm):
    """The form of a batch. Two people enter a lower cost: it would allow a lower price."""

    class Meta:
        model = Batch
        fields = ("supplier", "invoice", "unit_cost", "cost_currency")
        labels = {
            "unit_cost": lazy("Cost of one code"),
            "cost_currency": lazy("Currency of the cost"),
        }
        help_texts = {"unit_cost": ""}

    unsaved = lazy(
        "Not saved yet. A lower cost, or one in another currency, needs a second person. Ask"
        " another member of staff to do the same within a day."
    )

    def needs_two(self) -> str:
        before, currency = (self.initial.get(one) for one in ("unit_cost", "cost_currency"))
        after, new_currency = self.instance.unit_cost, self.instance.cost_currency
        if before is None or (after is not None and after >= before and currency == new_currency):
            return ""
        new = "none" if after is None else f"{money_text(after)} {new_currency}"
        return f"cost of batch {self.instance.pk}: {new}, not {money_text(before)} {currency}"

    def data_of_change(self) -> dict[str, Any]:
        after = self.instance.unit_cost
        cost = {
            "kind": "batch",
            "pk": self.instance.pk,
            "new": None if after is None else money_text(after),
            "currency": self.instance.cost_currency,
            "old": money_text(self.initial["unit_cost"]),
            "was": self.initial["cost_currency"],
        }
        return {"prices": [cost], "number": 1}


TODAY = TruncDate(Now(), tzinfo=UTC)
SOON = timedelta(days=30)
_counts = DailyStock.objects.filter(codes__gt=0, batch__isnull=False)
_counted_on = Coalesce(Subquery(_counts.order_by("-day").values("day")[:1]), date.min)
MOST_COUNTED = 10_000  # codes that a list reads
# Batches that had codes in stock at the last daily count (figures/stock_counting.py), or came
# later, unless their shelf is sold out. To count the codes of all batches for each page would be
# slow.
LEFT = Q(taken_back_at=None, shelf__available_stock__gt=0) & (
    Q(pk__in=_counts.filter(day=_counted_on).values("batch")) | Q(imported_at__gte=_counted_on)
)
# Of few batches: whether one has codes in stock now.
HAS_STOCK = Exists(
    VoucherCode.objects.filter(
        STATES["in-stock"],
        shelf=OuterRef("shelf"),
        pk__range=(OuterRef("first_code"), OuterRef("last_code")),
    )
)


class LeftFilter(ConditionFilter):
    title = lazy("codes left")
    parameter_name = "left"
    conditions = {"some": LEFT, "none": ~LEFT}
    names = {"some": lazy("Some in stock, counted daily"), "none": lazy("None in stock")}


class ExpiryFilter(ConditionFilter):
    title = lazy("last day of sale")
    parameter_name = "expires"
    conditions = {
        "soon": LEFT & Q(expires_on__gte=TODAY, expires_on__lte=TODAY + SOON),
        "passed": Q(expires_on__lt=TODAY),
        "never": Q(expires_on=None),
    }
    names = {
        "soon": lazy("Within 30 days, with codes left"),
        "passed": lazy("Passed"),
        "never": lazy("Never expires"),
    }


class CostFilter(ConditionFilter):
    title = lazy("cost")
    parameter_name = "cost"
    conditions = {"none": Q(unit_cost=None), "entered": Q(unit_cost__isnull=False)}
    names = {"none": lazy("Without a cost"), "entered": lazy("With a cost")}


@admin.register(Batch)
class BatchAdmin(TwoPeoplePage, TimelinePage, HoldingAdmin, KeptAdmin):
    """Each import of codes. What people said of it can be corrected; its codes cannot."""

    form = BatchForm
    list_display = (
        *("id", "on_shelf", "supplier", "invoice", "cost", "number", "left", "expires_on"),
        "imported_at",
    )
    list_filter = (
        *(LeftFilter, ExpiryFilter, CostFilter),
        ("shelf", AutocompleteSelectFilter),
        ("imported_at", RangeDateTimeFilter),
    )
    list_select_related = ("shelf__product", "shelf__variation__product")
    search_fields = ("supplier", "invoice", "shelf__product__name", "shelf__variation__name")
    search_help_text = lazy("Product, supplier or invoice number")
    ordering = ("-id",)
    help_texts = {"cost_currency": CURRENCY_HELP}
    readonly_fields = (
        *("on_shelf", "all_codes", "states", "held", "expires_on"),
        *("its_import", "file", "importer", "imported_at"),
    )
    actions_detail = ("recall", "recall_file", "hold", "release", "void", "take_back")
    on_shelf = linked("shelf")
    importer = done_by("imported_by", lazy("imported by"))

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Batch | None:
        """Reads a batch once for its page, which counts its codes once."""
        known: dict[str, Batch | None] = vars(request).setdefault("_batches", {})
        if object_id not in known or request.method != "GET":
            known[object_id] = super().get_object(request, object_id, from_field)
        return known[object_id]

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leaves the file to the page "Who bought", and the held codes to their field: four buttons
        would hide the title. Leaves out what no code of the batch is left for."""
        actions = super().get_actions_detail(request, object_id)
        hidden = {"recall_file", "release", "void"}
        batch = self.get_object(request, unquote(str(object_id)))
        if batch is not None:
            numbers = _count_once(batch)
            if not numbers["in-stock"]:
                hidden.add("hold")
            if not numbers["in-stock"] and not numbers["held"]:
                hidden.add("take_back")
        return [one for one in actions if one.method.original_function_name not in hidden]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leaves out what may be done with held codes for people who may not do it."""
        held = ["held"] if self.has_hold_permission(request) else []
        fields = [
            *("on_shelf", "all_codes", "states", *held, "supplier", "invoice", "unit_cost"),
            *("cost_currency", "expires_on", "its_import", "importer", "imported_at"),
        ]
        return [
            (None, {"fields": fields}),
            (DETAILS, {"fields": ["file"], "classes": ["collapse"]}),
        ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def timeline(self, request: HttpRequest, obj: Batch) -> Timeline:
        """Includes the holds that have codes of the batch now."""
        empty = _("No changes, and no code is held now.")
        return replace(super().timeline(request, obj), empty=empty)

    @admin.display(description=lazy("codes"))
    def number(self, batch: Batch) -> int:
        return batch.number

    def get_queryset(self, request: HttpRequest) -> QuerySet[Batch]:
        batches: QuerySet[Batch] = super().get_queryset(request)
        own = _counts.filter(day=_counted_on, shelf=OuterRef("shelf"), batch=OuterRef("pk"))
        is_new = Q(taken_back_at=None, imported_at__gte=_counted_on)
        return batches.annotate(
            counted=Coalesce(Subquery(own.values("codes")[:1]), Case(When(~is_new, then=0))),
            counted_on=_counted_on,
        )

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found = super().get_changelist_instance(request)
        found.result_list = list(found.result_list)
        _count_now(found.result_list)
        return found

    @admin.display(description=lazy("in stock"))
    def left(self, batch: Any) -> str:
        """Now, or as the last count found (figures/stock_counting.py) if a list would read too many
        codes. A file has the last count."""
        if not hasattr(batch, "now"):
            return EMPTY if batch.counted is None else local_number(batch.counted)
        if batch.now is not None:
            return local_number(batch.now)
        if batch.counted is None:
            return _("not counted yet")
        number, day = local_number(batch.counted), local_day(batch.counted_on)
        return _("%(number)s on %(day)s") % {"number": number, "day": day}

    @admin.display(description=lazy("unit cost"))
    def cost(self, batch: Batch) -> str:
        return amount(batch.unit_cost, batch.cost_currency)

    @admin.display(description=lazy("codes by state"))
    def states(self, batch: Batch) -> str:
        if batch.taken_back_at is not None:
            return _("none: the import was taken back")
        counts = _count_once(batch).items()
        return ", ".join(f"{local_number(number)} {STATE_NAMES[state]}" for state, number in counts)

    @admin.display(description=lazy("held codes"))
    def held(self, batch: Batch) -> str:
        """Links that release or void the held codes; or the people who can void them."""
        if not _count_once(batch)["held"]:
            return EMPTY
        page_of_batch = url_of(batch).removesuffix("change/")
        release = format_html(
            '<a href="{}release/" class="text-link">{}</a>', page_of_batch, _("Release…")
        )
        if asks := other_to_ask(holds_of_batch(batch.pk), current_actor()):
            return format_html("{} · {}", release, asks)
        void = format_html('<a href="{}void/" class="text-link">{}</a>', page_of_batch, _("Void…"))
        return format_html("{} · {}", release, void)

    @admin.display(description=lazy("codes"))
    def all_codes(self, batch: Batch) -> str:
        number = local_number(batch.number)
        if batch.taken_back_at is not None:
            return number
        ids = {"id__gte": batch.first_code, "id__lte": batch.last_code}
        return link_to_list(VoucherCode, number, **ids)

    @admin.display(description=lazy("import"))
    def its_import(self, batch: Batch) -> str:
        imports = FileImport.objects.filter(shelf=batch.shelf_id, state=ImportState.IMPORTED)
        row = imports.filter(result__batch=batch.pk).only("file_name").first()
        return link_to(row) if row else EMPTY

    @admin.display(description=lazy("digest of the file"))
    def file(self, batch: Batch) -> str:
        return bytes(batch.file_digest).hex()[:16]

    @action(
        description=lazy("Hold unsold codes…"), icon="lock", permissions=["hold"], url_path="hold"
    )
    def hold(self, request: HttpRequest, object_id: str) -> HttpResponse:
        batch: Batch = self.find(request, object_id)
        return self.ask_to_hold(request, batch, batch.its_codes)

    def held_codes(self, row: Batch) -> tuple[Q | CodeHold, CodesInWords]:
        return _held(row), partial(_held_in_words, row)

    @action(
        description=lazy("Take the import back…"),
        icon="undo",
        permissions=["hold"],
        url_path="take-back",
        variant=ActionVariant.DANGER,
    )
    def take_back(self, request: HttpRequest, object_id: str) -> HttpResponse:
        batch: Batch = self.find(request, object_id)

        def act(reason: str) -> str:
            deleted, held = take_import_back(
                batch_id=batch.pk,
                reason=reason,
                held_by=actor_of(request),
                actor=staff_of(request),
            )
            if deleted:
                return _("The import was taken back: %(number)s codes were deleted.") % {
                    "number": local_number(deleted)
                }
            return _(
                "Some codes are sold or void. %(number)s codes of this batch are now held."
            ) % {"number": local_number(held)}

        facts = [
            _("If none of its codes is sold or void, all are deleted, and can be imported again."),
            _("Otherwise those in stock are held."),
        ]
        return self.ask(
            request,
            batch,
            title=_("Take back codes"),
            question=_("Take back %(codes)s?"),
            facts=facts,
            act=act,
        )

    @action(description=lazy("Who bought…"), icon="groups", url_path="recall")
    def recall(self, request: HttpRequest, object_id: str) -> HttpResponse:
        batch: Batch = self.find(request, object_id)
        orders = list(orders_of_batch(batch, codes=LOOKED_AT))
        sold = VoucherCode.objects.filter(batch.its_codes, STATES["sold"]).order_by("pk")
        return page(
            self,
            request,
            "admin/recall.html",
            obj=batch,
            title=_("Who bought of this batch"),
            batch=row_name(Batch, str(batch)),
            orders=[
                {**one, "link": link_to(Order(pk=one["order_id"]), one["reference"])}
                for one in orders[:SHOWN_ORDERS]
            ],
            is_cut=len(orders) > SHOWN_ORDERS or sold[LOOKED_AT:].exists(),
            file=f"{url_of(batch).removesuffix('change/')}recall-file/",
            who_saw=_who_saw(batch) if may_view(request, AuditEntry) else "",
            back=url_of(batch),
        )

    @action(description=lazy("Who bought, as CSV"), icon="download", url_path="recall-file")
    def recall_file(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        batch: Batch = self.find(request, object_id)
        return send_to_staff(
            request,
            _write(batch),
            name=f"recall-of-batch-{batch.pk}.csv",
            content_type=CONTENT_TYPES["csv"],
        )


@admin.register(CodeHold)
class CodeHoldAdmin(TimelinePage, HoldingAdmin, RecordAdmin):
    list_display = ("id", "codes_of", "number", "reason", "state", "holder", "held_at")
    fields = ("reason", "state", "codes", "contents", "holder", "held_at", "voider", "voided_at")
    search_fields = ("reason",)
    search_help_text = lazy("Reason")
    actions_detail = ("release", "void")
    holder = done_by("held_by", lazy("held by"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[CodeHold]:
        holds: QuerySet[CodeHold] = super().get_queryset(request)
        first = VoucherCode.objects.filter(hold=OuterRef("pk")).order_by("shelf")
        return holds.annotate(
            product=first.values("shelf__product__name")[:1],
            variation=first.values("shelf__variation__name")[:1],
            first_shelf=first.values("shelf")[:1],
            last_shelf=first.reverse().values("shelf")[:1],
            number=Func(
                ArraySubquery(first.values("shelf")[: CappedPaginator.cap + 1]),
                function="cardinality",
                output_field=IntegerField(),
            ),
        )

    @admin.display(description=lazy("codes"))
    def number(self, hold: Any) -> str:
        """Counted up to the cap of lists, by the index of held codes alone."""
        is_capped = hold.number > CappedPaginator.cap
        return f"{local_number(hold.number - is_capped)}{'+' if is_capped else ''}"

    @admin.display(description=lazy("codes of"))
    def codes_of(self, hold: Any) -> str:
        name = f"{hold.product} / {hold.variation}" if hold.variation else hold.product
        if hold.first_shelf == hold.last_shelf:
            return name or EMPTY
        return _("%(product)s, and others") % {"product": name}

    @admin.display(description=lazy("codes"))
    def codes(self, hold: CodeHold) -> str:
        return local_number(sum(number for _shelf, _batch, number in _contents_of(hold)))

    @admin.display(description=lazy("contents"))
    def contents(self, hold: CodeHold) -> str:
        """Each shelf and batch with links, and the number of codes."""
        contents = _contents_of(hold)
        most = contents[:SHOWN_SHELVES]
        shelves = Shelf.objects.select_related("product", "variation__product")
        names = shelves.in_bulk({shelf for shelf, _batch, _number in most})
        lines = [
            (
                local_number(number),
                link_to(names[shelf]),
                link_to(Batch(pk=batch) if batch else None),
            )
            for shelf, batch, number in most
        ]
        more = "…" if contents[len(most) :] else ""
        joined = format_html_join(mark_safe("<br>"), "{} · {} · {}", lines)
        return format_html("{} {}", joined, more) if lines else EMPTY

    @admin.display(description=lazy("voided by"))
    def voider(self, hold: CodeHold) -> str:
        voided = AuditEntry.objects.filter(
            object_type=hold._meta.label_lower, object_id=hold.pk, action=AuditAction.CODES_VOIDED
        )
        entry = voided.select_related("actor").order_by("created_at", "pk").last()
        if hold.voided_at is None or entry is None:
            return EMPTY
        return str(entry.actor or in_words(entry.actor_name))

    @admin.display(description=lazy("state"))
    def state(self, hold: CodeHold) -> str:
        if hold.voided_at:
            return label(_("void"), "danger")
        return label(_("released"), "info") if _has_ended(hold) else label(_("held"), "warning")

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Offers nothing for a hold that has ended."""
        hold = self.get_object(request, unquote(str(object_id)))
        if hold is None or _has_ended(hold):
            return []
        actions: list[Any] = super().get_actions_detail(request, object_id)
        return actions

    def held_codes(self, row: CodeHold) -> tuple[Q | CodeHold, CodesInWords]:
        return row, ""


def hold_chosen(codes: Q, *, reason: str, request: HttpRequest) -> str:
    """Holds these codes as far as they are in stock; returns what happened. Raises InputProblem if
    none is."""
    hold, number = hold_codes(
        codes=codes, reason=reason, held_by=actor_of(request), actor=staff_of(request)
    )
    if hold is None:
        raise InputProblem(_("None of these codes is in stock. Nothing was changed."))
    return ngettext(
        "%(number)s code is held as hold %(hold)s.",
        "%(number)s codes are held as hold %(hold)s.",
        number,
    ) % {"number": local_number(number), "hold": hold.pk}


def _done(end: Callable[..., int], number: int) -> str:
    text = (
        ngettext("%(number)s code is void.", "%(number)s codes are void.", number)
        if end is void_hold
        else ngettext(
            "%(number)s code is in stock again.", "%(number)s codes are in stock again.", number
        )
    )
    return text % {"number": local_number(number)}


def _as_text(numbers: Mapping[int, int]) -> str:
    return " ".join(f"{hold}:{number}" for hold, number in sorted(numbers.items()))


def _has_ended(hold: Any) -> bool:
    """Whether a hold that the list or its page read is void, or has released all its codes."""
    return hold.voided_at is not None or hold.first_shelf is None


def _describe_holds(numbers: Mapping[int, int]) -> list[str]:
    """How many codes are in which hold, and why: the newest holds first."""
    holds = CodeHold.objects.filter(pk__in=numbers).order_by("-pk")[:SHOWN_HOLDS]
    facts = [
        _("%(number)s of %(hold)s: %(reason)s")
        % {
            "number": local_number(numbers[hold.pk]),
            "hold": row_name(CodeHold, str(hold)),
            "reason": hold.reason,
        }
        for hold in holds
    ]
    if more := len(numbers) - len(facts):
        facts.append(_("and codes of %(number)s older holds") % {"number": local_number(more)})
    return facts


BATCH_OF_CODE = Subquery(
    Batch.objects.filter(first_code__lte=OuterRef("pk"), last_code__gte=OuterRef("pk"))
    .order_by("-first_code")
    .values("pk")[:1]
)


def _contents_of(hold: CodeHold) -> list[tuple[int, int | None, int]]:
    """Shelf, batch and number of its codes, those with most first. Two fields of a page show it,
    and the theme computes each of them twice."""
    known = vars(hold)
    if "_contents" not in known:
        rows = hold.codes.order_by().annotate(batch=BATCH_OF_CODE).values_list("shelf", "batch")
        known["_contents"] = list(rows.annotate(number=Count("pk")).order_by("-number", "shelf"))
    contents: list[tuple[int, int | None, int]] = known["_contents"]
    return contents


def _count_with_cost(codes: Q) -> tuple[dict[int, int], str]:
    """The number of the held ones of these codes in each hold, and a sentence with the number and
    the cost by currency."""
    held = (
        VoucherCode.objects.filter(codes, STATES["held"]).order_by().annotate(batch=BATCH_OF_CODE)
    )
    counts = list(held.values_list("hold", "batch").annotate(Count("pk")))
    batches = Batch.objects.in_bulk({pk for _hold, pk, _number in counts if pk is not None})
    numbers: Counter[int] = Counter()
    costs: dict[str, Decimal] = {}
    unknown = 0
    for hold, pk, number in counts:
        numbers[hold] += number
        batch = batches.get(pk)
        cost = total_cost(batch.unit_cost, number) if batch else None
        if batch is None or cost is None:
            unknown += number
        else:
            costs[batch.cost_currency] = costs.get(batch.cost_currency, Decimal()) + cost
    parts = [amount(cost, currency) for currency, cost in sorted(costs.items())]
    if unknown:
        parts.append(_("not known for %(number)s") % {"number": local_number(unknown)})
    words = {"number": local_number(numbers.total()), "cost": ", ".join(parts)}
    return dict(numbers), _("Codes: %(number)s. Cost: %(cost)s.") % words


def _describe_shelves(codes: Q, state: str) -> list[str]:
    """How many of these codes are in this state, by shelf: those with most first."""
    chosen = VoucherCode.objects.filter(codes, STATES[state]).order_by()
    numbers = Counter(dict(chosen.values_list("shelf").annotate(Count("pk"))))
    most = numbers.most_common(SHOWN_SHELVES)
    shelves = Shelf.objects.select_related("product", "variation__product").in_bulk(dict(most))
    facts = [
        _("%(shelf)s: %(number)s %(state)s")
        % {"shelf": shelves[pk], "number": local_number(number), "state": STATE_NAMES[state]}
        for pk, number in most
    ]
    if more := numbers.total() - sum(dict(most).values()):
        facts.append(_("and codes of other shelves: %(number)s") % {"number": local_number(more)})
    return facts


def _refuse_lost(holds: Collection[int]) -> None:
    """Raises InputProblem for codes that merchants may have since before a restore. Their purchases
    name their hold, so it ends as a whole."""
    lost = LostPurchase.objects.filter(hold__in=holds).values_list("hold", flat=True).first()
    if lost is not None:
        raise InputProblem(
            _(
                "Hold %(hold)s has codes of purchases that a restore lost: merchants may have them."
                " Nothing was changed. Release or void it on its own page."
            )
            % {"hold": lost}
        )


def _count_now(batches: Sequence[Any]) -> None:
    """Sets `now` of the batches of a list: the codes in stock, of as many batches as may be read;
    None for the others."""
    left = MOST_COUNTED
    ours = {}
    for batch in batches:
        is_empty = batch.taken_back_at is not None or not batch.shelf.available_stock
        batch.now = 0 if is_empty else None
        if batch.now is None and batch.number <= left:
            left -= batch.number
            ours[f"batch_{batch.pk}"] = batch
    if ours:
        any_of_ours = reduce(or_, (batch.its_codes for batch in ours.values()))
        counts = VoucherCode.objects.filter(any_of_ours, STATES["in-stock"]).aggregate(
            **{name: Count("pk", filter=batch.its_codes) for name, batch in ours.items()}
        )
        for name, batch in ours.items():
            batch.now = counts[name]


def _count_once(batch: Batch) -> dict[str, int]:
    """The number of its codes in each state. Two fields of a page show it, and the theme computes
    each of them twice."""
    known = vars(batch)
    if "_numbers" not in known:
        known["_numbers"] = count_codes(batch)
    numbers: dict[str, int] = known["_numbers"]
    return numbers


def _held(batch: Batch) -> Q:
    return batch.its_codes & STATES["held"]


def _held_in_words(batch: Batch, number: int) -> str:
    return ngettext(
        "%(number)s held code of %(batch)s", "%(number)s held codes of %(batch)s", number
    ) % {"number": local_number(number), "batch": row_name(Batch, str(batch))}


def _who_saw(batch: Batch) -> str:
    """The page of the codes of this batch that staff revealed since its import."""
    since = timezone.localdate(batch.imported_at)
    return reverse("who_saw_codes", query={"about": f"batch:{batch.pk}", "since": str(since)})


def _write(batch: Batch) -> Generator[bytes]:
    writer = csv.writer(Echo())
    yield f"\ufeff{writer.writerow(COLUMNS)}".encode()
    for order in orders_of_batch(batch):
        yield str(writer.writerow([harmless(order[name]) for name in COLUMNS])).encode()
