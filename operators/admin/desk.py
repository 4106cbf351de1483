"""The operators' desk: top-ups that wait, and what can be done with each.

Every move goes through `topups.fulfilments.move_fulfilment`, as it does from a shell or the bot.
Only a POST moves anything; a move that ends an order asks once more before.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Max, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    DropdownFilter,
    RangeDateTimeFilter,
    RelatedDropdownFilter,
)
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from operators.admin.base import (
    EMPTY,
    RecordAdmin,
    amount,
    label,
    page,
    posted,
    staff_of,
    url_of,
)
from operators.admin.menu import show_desk
from operators.desk_summary import STATES, URGENCIES, age_in_words, summarise_queue, urgency
from operators.models import Announcement, AnnouncementState
from topups.fulfilments import (
    MoveRefused,
    Operator,
    RejectReason,
    claim_next,
    may_move,
    move_fulfilment,
)
from topups.models import Channel, Fulfilment, FulfilmentEvent, FulfilmentStatus
from topups.transitions import ENDING, FULFIL, OPEN, Move, moves_from

NAMES = {
    Move.CLAIM: "Claim",
    Move.RELEASE: "Release",
    Move.COMPLETE: "Delivered",
    Move.REVIEW: "Send to review",
    Move.REJECT: "Reject and refund",
    Move.REJECT_UNREFUNDED: "Fail without refund",
}
COLOURS = {
    FulfilmentStatus.PENDING: "info",
    FulfilmentStatus.PROCESSING: "warning",
    FulfilmentStatus.PENDING_REVIEW: "danger",
    FulfilmentStatus.COMPLETED: "success",
    FulfilmentStatus.FAILED: "danger",
}
DANGEROUS = {Move.REJECT, Move.REJECT_UNREFUNDED}
REJECTIONS = {Move.REJECT, Move.REJECT_UNREFUNDED}
MAX_SELECTED = 100


class WorkFilter(DropdownFilter):
    """What is still to do, unless asked otherwise."""

    title = "work"
    parameter_name = "work"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        states = [(status.value, status.label) for status in STATES]
        return [("mine", "My claims"), *states, ("all", "All, ended ones too")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Fulfilment]
    ) -> QuerySet[Fulfilment]:
        match self.value():
            case "all":
                return queryset
            case "mine":
                return queryset.filter(claimed_by=staff_of(request))
            case state if state in STATES:
                return queryset.filter(status=state)
        return queryset.filter(status__in=OPEN)


class MoveForm(forms.Form):
    """What an operator may add to a move."""

    note = forms.CharField(
        required=False,
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text="Kept in the order's history.",
    )


class RejectForm(MoveForm):
    reason = forms.ChoiceField(
        choices=[
            (RejectReason.WRONG_ID, "The player id is wrong"),
            (RejectReason.NO_STOCK, "There is no stock"),
            (RejectReason.OTHER, "Something else"),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    field_order = ["reason", "note"]


class EventInline(TabularInline):
    """The history of an order."""

    model = FulfilmentEvent
    verbose_name_plural = "history"
    fields = readonly_fields = ("created_at", "move", "to_status", "actor", "channel", "note")
    ordering = ("id",)
    extra = max_num = 0
    can_delete = False
    hide_title = True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True  # whoever sees the order sees what became of it

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Fulfilment)
class FulfilmentAdmin(RecordAdmin):
    """Top-ups, the longest waiting first."""

    ordering = ("created_at", "id")  # type: ignore[assignment]
    inlines = (EventInline,)
    list_display = ("order_reference", "age", "state", "sold", "player", "given", "held", "account")
    list_filter = (
        WorkFilter,
        ("product", RelatedDropdownFilter),
        ("account", AutocompleteSelectFilter),
        ("created_at", RangeDateTimeFilter),
    )
    list_filter_submit = True
    list_select_related = ("product", "account", "claimed_by", "announcement")
    search_fields = ("order_reference", "player_id")
    search_help_text = "An order's reference, or a player id"
    list_before_template = "admin/desk_next.html"
    change_form_outer_before_template = "admin/desk_moves.html"
    actions = tuple(f"{move.value}_selected" for move in Move)  # type: ignore[assignment]
    fieldsets = (
        (None, {"fields": ("order_reference", "now", "held", "waited", "sold", "player", "given")}),
        ("Merchant", {"fields": ("account", "price", "refund", "failure_reason")}),
        ("Telegram", {"fields": ("telegram",)}),
    )

    # Whoever works at the desk sees it, and that is all they need.
    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(FULFIL) or super().has_view_permission(request, obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_fulfil_permission(self, request: HttpRequest) -> bool:
        return staff_of(request).has_perm(FULFIL)

    # How a row looks.

    @display(description="age", label=URGENCIES)
    def age(self, fulfilment: Fulfilment) -> tuple[str, str]:
        age = (fulfilment.closed_at or timezone.now()) - fulfilment.created_at
        return (urgency(age) if fulfilment.closed_at is None else "", age_in_words(age))

    @admin.display(description="top-up product")
    def sold(self, fulfilment: Fulfilment) -> str:
        return fulfilment.product.name

    @admin.display(description="player id")
    def player(self, fulfilment: Fulfilment) -> str:
        return format_html(
            '<input class="desk-copy" type="text" readonly size="{}" value="{}"'
            ' aria-label="Player id" title="Click to copy"'
            ' x-data="{{copied: false}}" x-bind:class="copied && \'desk-copied\'"'
            ' x-on:click="$el.select(); (navigator.clipboard'
            " ? navigator.clipboard.writeText($el.value)"
            " : Promise.resolve(document.execCommand('copy'))).then(() => copied = true)\">",
            max(len(fulfilment.player_id), 4),
            fulfilment.player_id,
        )

    @admin.display(description="fields")
    def given(self, fulfilment: Fulfilment) -> str:
        rows = [
            (each["label"], each.get("value_label") or each["value"]) for each in fulfilment.fields
        ]
        return format_html_join("", "<div>{}: <strong>{}</strong></div>", rows) or EMPTY

    @display(description="state", label=COLOURS)
    def state(self, fulfilment: Fulfilment) -> tuple[str, str]:
        label = str(FulfilmentStatus(fulfilment.status).label)
        row = _announcement(fulfilment)
        if row and row.state == AnnouncementState.GIVEN_UP and fulfilment.status in OPEN:
            label += ", not in Telegram"
        return fulfilment.status, label

    # The same on an order's own page, where the theme draws no labels by itself.

    @admin.display(description="state")
    def now(self, fulfilment: Fulfilment) -> str:
        status = FulfilmentStatus(fulfilment.status)
        return label(status.label, COLOURS[status])

    @admin.display(description="age")
    def waited(self, fulfilment: Fulfilment) -> str:
        level, words = self.age(fulfilment)
        return label(words, URGENCIES.get(level, ""))

    @admin.display(description="claimed by")
    def held(self, fulfilment: Fulfilment) -> str:
        return str(fulfilment.claimed_by or EMPTY)

    @admin.display(description="announced")
    def telegram(self, fulfilment: Fulfilment) -> str:
        row = _announcement(fulfilment)
        if row is None:
            return EMPTY
        label = AnnouncementState(row.state).label
        return f"{label}: {row.last_error}" if row.last_error else str(label)

    @admin.display(description="price")
    def price(self, fulfilment: Fulfilment) -> str:
        return amount(fulfilment.amount, fulfilment.currency)

    @admin.display(description="refund")
    def refund(self, fulfilment: Fulfilment) -> str:
        if fulfilment.refunded:
            return "credited"
        return "due" if fulfilment.refund_due_at else "none"

    # What can be done.

    def get_urls(self) -> list[Any]:
        desk = self.admin_site.admin_view
        return [
            path("next/", desk(self.claim_next), name="topups_fulfilment_next"),
            path("strip/", desk(self.strip), name="topups_fulfilment_strip"),
            path("glance/", desk(self.glance), name="topups_fulfilment_glance"),
            path("dashboard/", desk(self.dashboard), name="topups_fulfilment_dashboard"),
            path("<int:pk>/move/<str:move>/", desk(self.move), name="topups_fulfilment_move"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        found = self.get_object(request, object_id)
        moves = self._offered(request, found) if isinstance(found, Fulfilment) else []
        context = {**(extra_context or {}), "moves": moves}
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        newest = Fulfilment.objects.aggregate(newest=Max("pk"))["newest"] or 0
        context = {**(extra_context or {}), **_strip(request, newest)}
        answer: HttpResponse = super().changelist_view(request, context)
        return answer

    def strip(self, request: HttpRequest) -> HttpResponse:
        """The numbers above the queue, which its page fetches again and again (live.js).

        `after` is the newest order when that page was made; those behind it are new to its reader.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        return TemplateResponse(request, "admin/desk_strip.html", _strip(request, _after(request)))

    def glance(self, request: HttpRequest) -> HttpResponse:
        """The numbers of the dashboard, which its page fetches again and again (live.js)."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        desk = show_desk(staff_of(request))
        return TemplateResponse(request, "admin/desk_numbers.html", {"desk": desk})

    def dashboard(self, request: HttpRequest) -> HttpResponse:
        """The state of the desk, on a page of its own."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            "admin/desk_dashboard.html",
            {
                **self.admin_site.each_context(request),
                "title": "Dashboard",
                "desk": show_desk(staff_of(request)),
            },
        )

    def claim_next(self, request: HttpRequest) -> HttpResponse:
        """Gives the operator the order that waits longest."""
        if request.method != "POST":
            return HttpResponseRedirect(_queue_url())
        try:
            claimed = claim_next(operator=_operator(request))
        except MoveRefused as refused:
            messages.error(request, str(refused))
            return HttpResponseRedirect(_queue_url())
        if claimed is None:
            messages.info(request, "Nothing waits.")
            return HttpResponseRedirect(_queue_url())
        return HttpResponseRedirect(url_of(claimed))

    def move(self, request: HttpRequest, pk: int, move: str) -> HttpResponse:
        """Moves one order; asks first where that ends it."""
        fulfilment = self.get_object(request, str(pk))
        if not isinstance(fulfilment, Fulfilment) or move not in Move.values:
            raise Http404
        if not self.has_fulfil_permission(request):
            raise PermissionDenied
        chosen = Move(move)
        form = _form(chosen)(posted(request) if "confirmed" in request.POST else None)
        if chosen not in ENDING:
            if request.method == "POST":
                _carry_out(request, [fulfilment], chosen)
            return HttpResponseRedirect(url_of(fulfilment))
        if form.is_valid():
            _carry_out(request, [fulfilment], chosen, **form.cleaned_data)
            return HttpResponseRedirect(url_of(fulfilment))
        if not may_move(fulfilment, chosen, _operator(request)):
            _tell_impossible(request, [fulfilment], chosen)
            return HttpResponseRedirect(url_of(fulfilment))
        return self._confirm(request, [fulfilment], chosen, form, back=url_of(fulfilment))

    def _offered(self, request: HttpRequest, fulfilment: Fulfilment) -> list[dict[str, Any]]:
        operator = _operator(request)
        return [
            {
                "name": NAMES[move],
                "url": reverse("admin:topups_fulfilment_move", args=[fulfilment.pk, move.value]),
                "asks": move in ENDING,
                "danger": move in DANGEROUS,
            }
            for move in moves_from(FulfilmentStatus(fulfilment.status))
            if may_move(fulfilment, move, operator)
        ]

    def _confirm(
        self,
        request: HttpRequest,
        selected: list[Fulfilment],
        move: Move,
        form: forms.Form,
        *,
        back: str,
        **context: Any,
    ) -> TemplateResponse:
        count = f"{len(selected)} orders" if len(selected) > 1 else "this order"
        return page(
            self,
            request,
            "admin/desk_confirm.html",
            obj=selected[0],
            title=NAMES[move],
            form=form,
            question=f"{NAMES[move]}: this ends {count} for good.",
            facts=[
                f"{each.order_reference}: {each.product} for player {each.player_id}"
                for each in selected
            ],
            button=NAMES[move],
            danger=move in DANGEROUS,
            back=back,
            **context,
        )

    # The same on a selection.

    def get_actions(self, request: HttpRequest) -> Any:
        actions = super().get_actions(request)
        if not self.has_fulfil_permission(request):
            return {}
        if not _operator(request).is_senior:
            actions.pop(f"{Move.REJECT_UNREFUNDED.value}_selected", None)
        return actions

    def move_selected(
        self, request: HttpRequest, queryset: QuerySet[Fulfilment], move: Move
    ) -> HttpResponse | None:
        """Moves each of the selected orders that allows it, and tells of the others."""
        rows = queryset.select_related("product", "claimed_by").order_by("created_at", "pk")
        selected = list(rows[:MAX_SELECTED])
        form = _form(move)(request.POST if "confirmed" in request.POST else None)
        possible = [each for each in selected if may_move(each, move, _operator(request))]
        if move not in ENDING:
            _carry_out(request, selected, move)
        elif form.is_valid():
            _carry_out(request, selected, move, **form.cleaned_data)
        elif not possible:
            _tell_impossible(request, selected, move)
        else:
            return self._confirm(
                request,
                possible,
                move,
                form,
                back=_queue_url(),
                left=[each for each in selected if each not in possible],
                pks=[each.pk for each in possible],
                action=f"{move.value}_selected",
            )
        return None

    @admin.action(description="Claim")
    def claim_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.CLAIM)

    @admin.action(description="Release")
    def release_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.RELEASE)

    @admin.action(description="Delivered…")
    def complete_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.COMPLETE)

    @admin.action(description="Send to review")
    def review_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.REVIEW)

    @admin.action(description="Reject and refund…")
    def reject_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.REJECT)

    @admin.action(description="Fail without refund…")
    def reject_unrefunded_selected(
        self, request: HttpRequest, queryset: Any
    ) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.REJECT_UNREFUNDED)


def entrance(request: HttpRequest) -> HttpResponse:
    """The first page of the back office: those who only work at the desk land on their work."""
    user = request.user
    if user.is_active and user.is_staff and user.has_perm(FULFIL):
        sees = {
            model
            for model, desk in admin.site._registry.items()
            if desk.has_view_or_change_permission(request)
        }
        if sees <= {Fulfilment, Announcement}:
            return HttpResponseRedirect(_queue_url())
    index: HttpResponse = admin.site.admin_view(admin.site.index)(request)
    return index


def _announcement(fulfilment: Fulfilment) -> Announcement | None:
    return getattr(fulfilment, "announcement", None)


def _operator(request: HttpRequest) -> Operator:
    return Operator(user=staff_of(request), channel=Channel.ADMIN)


def _form(move: Move) -> type[MoveForm]:
    return RejectForm if move in REJECTIONS else MoveForm


def _carry_out(
    request: HttpRequest,
    selected: list[Fulfilment],
    move: Move,
    *,
    reason: str = RejectReason.OTHER,
    note: str = "",
) -> None:
    """Moves each by itself, so that one that somebody else was faster with stops no other."""
    done = 0
    for fulfilment in selected:
        try:
            move_fulfilment(
                reference=fulfilment.order_reference,
                move=move,
                operator=_operator(request),
                reason=RejectReason(reason),
                note=note,
            )
            done += 1
        except MoveRefused as refused:
            messages.error(request, f"{fulfilment.order_reference}: {refused}")
    if done:
        messages.success(request, f"{NAMES[move]}: {done} done.")


def _tell_impossible(request: HttpRequest, selected: list[Fulfilment], move: Move) -> None:
    for each in selected:
        holder = f", claimed by {each.claimed_by}" if each.claimed_by else ""
        state = f"{each.order_reference} is {each.get_status_display()}{holder}"
        messages.error(request, f"{NAMES[move]}: not possible now. {state}.")


def _after(request: HttpRequest) -> int | None:
    after = request.GET.get("after", "")
    return int(after) if after.isascii() and after.isdecimal() and len(after) < 19 else None


def _strip(request: HttpRequest, after: int | None) -> dict[str, Any]:
    return {"queue": summarise_queue(staff_of(request), after=after), "after": after}


def _queue_url() -> str:
    return reverse("admin:topups_fulfilment_changelist")
