"""Moving orders at the desk: one order, a selection, or the next one in the queue.

Every move goes through `topups.fulfilments.move_fulfilment`, as it does from a shell or the bot.
Only a POST moves an order. A move that ends an order asks for confirmation first.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.form_fields import posted
from operators.admin.base import RecordAdmin, page, staff_of, url_of
from operators.admin.desk_pages import queue_url
from topups.fulfilments import (
    MoveRefused,
    Operator,
    RejectReason,
    claim_next,
    may_move,
    move_fulfilment,
)
from topups.models import Channel, Fulfilment, FulfilmentStatus
from topups.transitions import ENDING, FULFIL, Move, moves_from

NAMES = {
    Move.CLAIM: "Claim",
    Move.RELEASE: "Release",
    Move.COMPLETE: "Mark delivered",
    Move.REVIEW: "Send to review",
    Move.REJECT: "Reject and refund",
    Move.REJECT_UNREFUNDED: "Fail without refund",
}
DANGEROUS = {Move.REJECT, Move.REJECT_UNREFUNDED}
REJECTIONS = {Move.REJECT, Move.REJECT_UNREFUNDED}
MAX_SELECTED = 100


class MoveForm(forms.Form):
    """What an operator can add to a move."""

    note = forms.CharField(
        required=False,
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text="Kept in the order's history.",
    )


class RejectForm(MoveForm):
    reason = forms.ChoiceField(
        choices=[
            (RejectReason.WRONG_ID, "Wrong player ID"),
            (RejectReason.NO_STOCK, "No stock"),
            (RejectReason.OTHER, "Other reason"),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    field_order = ["reason", "note"]


class DeskMoves(RecordAdmin):
    """The buttons of an order, the actions on a selection, and the pages that confirm both."""

    actions = tuple(f"{move.value}_selected" for move in Move)  # type: ignore[assignment]

    def has_fulfil_permission(self, request: HttpRequest) -> bool:
        return staff_of(request).has_perm(FULFIL)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        found = self.get_object(request, object_id)
        moves = self._offered(request, found) if isinstance(found, Fulfilment) else []
        context = {**(extra_context or {}), "moves": moves}
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def claim_next(self, request: HttpRequest) -> HttpResponse:
        """Claims the oldest waiting order for the operator."""
        if request.method != "POST":
            return HttpResponseRedirect(queue_url())
        try:
            claimed = claim_next(operator=_operator(request))
        except MoveRefused as refused:
            messages.error(request, str(refused))
            return HttpResponseRedirect(queue_url())
        if claimed is None:
            messages.info(request, "No order is waiting.")
            return HttpResponseRedirect(queue_url())
        return HttpResponseRedirect(url_of(claimed))

    def move(self, request: HttpRequest, pk: int, move: str) -> HttpResponse:
        """Moves one order. A move that ends the order asks for confirmation first."""
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
            _tell_unchanged(request, [fulfilment])
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
        ended = f"{len(selected)} orders" if len(selected) > 1 else "the order"
        return page(
            self,
            request,
            "admin/desk_confirm.html",
            obj=selected[0],
            title=NAMES[move],
            form=form,
            question=f"{NAMES[move]}? This ends {ended} and cannot be undone.",
            facts=[
                f"{each.order_reference}: {each.product} for player {each.player_id}"
                for each in selected
            ],
            button=NAMES[move],
            danger=move in DANGEROUS,
            back=back,
            **context,
        )

    # Actions on a selection.

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
        """Moves the selected orders that can be moved, and reports the others."""
        rows = queryset.select_related("product", "claimed_by").order_by("created_at", "pk")
        selected = list(rows[:MAX_SELECTED])
        form = _form(move)(request.POST if "confirmed" in request.POST else None)
        possible = [each for each in selected if may_move(each, move, _operator(request))]
        if move not in ENDING:
            _carry_out(request, selected, move)
        elif form.is_valid():
            _carry_out(request, selected, move, **form.cleaned_data)
        elif not possible:
            _tell_unchanged(request, selected)
        else:
            return self._confirm(
                request,
                possible,
                move,
                form,
                back=queue_url(),
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

    @admin.action(description="Mark delivered…")
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
    """Moves each order separately. A refused order does not stop the others."""
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


def _tell_unchanged(request: HttpRequest, selected: list[Fulfilment]) -> None:
    for each in selected:
        holder = f", claimed by {each.claimed_by}" if each.claimed_by else ""
        state = f"{each.get_status_display()}{holder}"
        messages.error(request, f"{each.order_reference} was not changed: it is {state}.")
