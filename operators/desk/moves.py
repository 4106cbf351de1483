"""Moving orders at the desk: one order, a selection, or the next one in the queue.

Every move goes through `topups.fulfilment.fulfilments.move_fulfilment`, as it does from a shell or
the bot. Only a POST moves an order. A move that ends an order asks for confirmation first, except
for the button "Delivered, claim next", with which an operator works through the queue. Sending an
order to review asks why. Every form carries the version of each order that the page showed
(topups/fulfilment/versions.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.form_fields import posted
from core.http.body_limits import accepts_bodies_up_to
from core.inputs import InputProblem, is_id
from core.texts import lazy
from operators.desk.columns import sent_to_review, state_label
from operators.desk.pages import queue_url
from operators.desk.proofs import MOST_BYTES, DeskProofs, ProofFields
from operators.frame.base import RecordAdmin, amount, link_to, page, staff_of, url_of
from topups.fulfilment.fulfilments import (
    AlreadyDone,
    MoveRefused,
    Operator,
    check_move,
    claim_next,
    describe_state,
    last_claimed,
    may_move,
    move_fulfilment,
)
from topups.fulfilment.proofs import NewProof, deliver
from topups.fulfilment.transitions import ENDING, OPEN, Move, moves_from
from topups.fulfilment.versions import with_versions
from topups.models import Channel, Fulfilment, FulfilmentEvent, FulfilmentStatus, RejectReason

NAMES = {  # in the order of the buttons
    Move.CLAIM: lazy("Claim"),
    Move.COMPLETE: lazy("Mark delivered"),
    Move.REVIEW: lazy("Send to review"),
    Move.RELEASE: lazy("Release"),
    Move.REJECT: lazy("Reject and refund"),
    Move.REJECT_UNREFUNDED: lazy("Fail without refund"),
}
# Shortcuts (operators/frame/static/operators/keys.js). Those of moves that end an order lead to
# their confirmation.
KEYS = {
    Move.CLAIM: "c",
    Move.RELEASE: "u",
    Move.COMPLETE: "m",
    Move.REVIEW: "v",
    Move.REJECT: "x",
}
FAILING = {Move.REJECT, Move.REJECT_UNREFUNDED}
ASKING = ENDING | {Move.REVIEW}  # on a page of their own
REASONS = [("", lazy("Choose a reason")), *RejectReason.choices]
MAX_SELECTED = 100
TO_READ = timedelta(seconds=2)  # the button in templates/admin/desk_moves.html waits as long


class MoveForm(forms.Form):
    """A note for a move."""

    note = forms.CharField(
        label=lazy("Note"),
        required=False,
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("Stays in the order's timeline. Only staff read it."),
    )


class DeliverForm(ProofFields, MoveForm):
    """The proof of the delivery of one order if there is one, and a note."""

    field_order = ["transaction_number", "file", "note"]


class ReviewForm(MoveForm):
    note = forms.CharField(
        label=lazy("Why"),
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("The senior operator who decides reads it. Merchants do not."),
    )


class RejectForm(MoveForm):
    reason = forms.ChoiceField(
        label=lazy("Reason"),
        choices=REASONS,
        widget=UnfoldAdminSelectWidget,
        help_text=lazy("The merchant reads it on the order's page."),
    )
    message = forms.CharField(
        required=False,
        max_length=400,
        label=lazy("Message for the merchant"),
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("The merchant reads it on the order's page. Never write a code here."),
    )
    field_order = ["reason", "message", "note"]

    def clean(self) -> None:
        says_why = self.cleaned_data.get("message", "too long") != ""
        if self.cleaned_data.get("reason") == RejectReason.OTHER and not says_why:
            self.add_error("message", _("Tell the merchant why it could not be delivered."))


class FailForm(RejectForm):
    """The merchant does not get the money back, so staff can read why."""

    note = forms.CharField(
        label=lazy("Why the merchant gets nothing back"),
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("Stays in the order's timeline. Only staff read it."),
    )


FORMS = {
    Move.REVIEW: ReviewForm,
    Move.REJECT: RejectForm,
    Move.REJECT_UNREFUNDED: FailForm,
}


class DeskMoves(DeskProofs):
    """The buttons of an order, the actions on a selection, and the pages that confirm both."""

    actions = tuple(f"{move.value}_selected" for move in Move)  # type: ignore[assignment]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Fulfilment]:
        """Reads the announcements apart: joined, PostgreSQL might read all of them."""
        reviews = FulfilmentEvent.objects.filter(move=Move.REVIEW)
        return with_versions(super().get_queryset(request)).prefetch_related(
            "announcement", Prefetch("events", reviews, to_attr="reviews")
        )

    def action_checkbox(self, obj: Any) -> str:
        """The box that selects a row, with the version that the row shows."""
        field = format_html('<input type="hidden" name="{}" value="{}">', _row(obj.pk), obj.version)
        return format_html("{}{}", super().action_checkbox(obj), field)

    action_checkbox.short_description = RecordAdmin.action_checkbox.short_description  # type: ignore[attr-defined]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        # Reads the buttons before the page reads the order. If the order moves in between, the
        # buttons are older than the text, and a press of one is refused.
        context = {**(extra_context or {}), **self.desk_context(request, object_id)}
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def head_of(self, row: Fulfilment) -> dict[str, Any]:
        state = state_label(FulfilmentStatus(row.status))
        return {"badges": [state]}

    def desk_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """The buttons that the present state of an order offers this person, for
        admin/desk_moves.html, and its proofs."""
        obj = self.get_object(request, object_id)
        if not isinstance(obj, Fulfilment):
            return {}
        moves, next_review = self._offered_moves(request, obj), _next_review(request, obj)
        return {
            "moves": moves,
            "viewers": self.viewers_of(request, obj),
            "deliver_next": _one_click_move(request, obj, moves),
            "review": sent_to_review(obj),
            "alone": _failed_alone(obj),
            "claims_next": self.has_fulfil_permission(request)
            and obj.claimed_by != staff_of(request),
            "next_review": next_review,
            "next_is_primary": not next_review
            and all(move["variant"] != "primary" for move in moves),
            **self.proofs_context(request, obj),
        }

    def claim_next(self, request: HttpRequest) -> HttpResponse:
        """Claims the oldest waiting order for the operator."""
        if not self.has_fulfil_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseRedirect(queue_url())
        return _claim_next(request)

    def deliver_next(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Marks an order delivered and claims the oldest waiting one.

        A repeated click claims nothing more: it leads to the order that the first one claimed. Nor
        does it end that order, which nobody has read.
        """
        fulfilment = self.find_order(request, pk)
        if not self.has_fulfil_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseRedirect(url_of(fulfilment))
        if _was_just_claimed(fulfilment):
            messages.warning(request, _("Not delivered yet. Read the order, then press again."))
            return HttpResponseRedirect(url_of(fulfilment))
        operator = _operator(request)
        try:
            move_fulfilment(
                reference=fulfilment.order_reference,
                version=_read_version(request.POST.get("version")),
                move=Move.COMPLETE,
                operator=operator,
            )
        except AlreadyDone as repeated:
            _tell(request, fulfilment, repeated)
            order = last_claimed(operator=operator)
            return HttpResponseRedirect(url_of(order) if order else queue_url())
        except MoveRefused as refused:
            _tell(request, fulfilment, refused)
            return HttpResponseRedirect(url_of(fulfilment))
        return _claim_next(request, after=fulfilment, move=Move.COMPLETE)

    @accepts_bodies_up_to(MOST_BYTES)
    def move(self, request: HttpRequest, pk: int, move: str) -> HttpResponse:
        """Moves one order. A move that ends the order asks for confirmation first.

        The query names the version that the order's page showed, and the form the version that the
        confirmation showed. A link without a version is about the order as it is now.
        """
        fulfilment = self.find_order(request, pk)
        if move not in Move.values:
            raise Http404
        if not self.has_fulfil_permission(request):
            raise PermissionDenied
        kind = Move(move)
        back = url_of(fulfilment)
        if request.method == "POST":
            choice = _Choice(fulfilment, _read_version(request.POST.get("version")))
        elif kind in ASKING:
            text = request.GET.get("version")
            choice = _Choice(
                fulfilment, _version(fulfilment) if text is None else _read_version(text)
            )
        else:
            return HttpResponseRedirect(back)
        data = posted(request) if "confirmed" in request.POST else None
        files = None if data is None else request.FILES
        form = (DeliverForm if kind == Move.COMPLETE else _form(kind))(data, files)
        if kind not in ASKING:
            _carry_out(request, [choice], kind)
        elif form.is_valid():
            tells = "claim_next" not in request.POST
            moved = _carry_out(request, [choice], kind, tells=tells, **form.cleaned_data)
            if moved and "claim_next" in request.POST:
                return _claim_next(request, after=fulfilment, move=kind)
        elif _check_or_tell(request, choice, kind):
            own = fulfilment.claimed_by == staff_of(request)
            claim_next = _("%(move)s, claim next") % {"move": NAMES[kind]} if own else ""
            return self._confirm(request, [choice], kind, form, back=back, claim_next=claim_next)
        return HttpResponseRedirect(back)

    def _offered_moves(self, request: HttpRequest, fulfilment: Fulfilment) -> list[dict[str, Any]]:
        operator = _operator(request)
        version = _version(fulfilment)
        offered = [
            move
            for move in NAMES
            if move in moves_from(FulfilmentStatus(fulfilment.status))
            and may_move(fulfilment, move, operator)
        ]
        # The next step stands out.
        holds = fulfilment.claimed_by == operator.user  # “Delivered, claim next” stands out
        in_review = fulfilment.status == FulfilmentStatus.PENDING_REVIEW
        waits_for_senior = in_review and not operator.is_senior
        rest = None if holds or waits_for_senior else Move.COMPLETE
        primary = Move.CLAIM if Move.CLAIM in offered else rest
        return [
            {
                "name": NAMES[move],
                "key": KEYS.get(move, ""),
                "url": reverse(
                    "admin:topups_fulfilment_move",
                    args=[fulfilment.pk, move.value],
                    query={"version": version} if move in ASKING else None,
                ),
                "version": version,
                "is_claim": move == Move.CLAIM,
                "asks": move in ASKING,
                "fails": move in FAILING,
                "variant": "primary" if move == primary else "default",
            }
            for move in offered
        ]

    def _confirm(
        self,
        request: HttpRequest,
        selected: list[_Choice],
        move: Move,
        form: forms.Form,
        *,
        back: str,
        **context: Any,
    ) -> TemplateResponse:
        question = (
            ngettext(
                "%(move)s? This ends the order and cannot be undone.",
                "%(move)s? This ends %(count)s orders and cannot be undone.",
                len(selected),
            )
            if move in ENDING
            else ngettext(
                "%(move)s? A senior operator decides whether the order was delivered.",
                "%(move)s? A senior operator decides whether %(count)s orders were delivered.",
                len(selected),
            )
        )
        is_counted = any(
            one.fulfilment.takes_stock and one.fulfilment.product.available_stock is not None
            for one in selected
        )
        stock = [_("Every reason but “No stock” puts the unsold piece back into stock.")]
        return page(
            self,
            request,
            "admin/desk_confirm.html",
            obj=selected[0].fulfilment,
            title=str(NAMES[move]),
            form=form,
            question=question % {"move": NAMES[move], "count": len(selected)},
            facts=[
                *(_facts(choice.fulfilment, move) for choice in selected),
                *(stock if move == Move.REJECT and is_counted else ()),
            ],
            button=str(NAMES[move]),
            danger=move in FAILING,
            back=back,
            selected=selected,
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
        rows = queryset.select_related("account", "product", "claimed_by").order_by(
            "created_at", "pk"
        )
        selected = [
            _Choice(each, _read_version(request.POST.get(_row(each.pk))))
            for each in rows[:MAX_SELECTED]
        ]
        form = _form(move)(request.POST if "confirmed" in request.POST else None)
        if move not in ASKING:
            _carry_out(request, selected, move)
            return None
        if form.is_valid():
            _carry_out(request, selected, move, **form.cleaned_data)
            return None
        possible = [each for each in selected if _check_or_tell(request, each, move)]
        if not possible:
            return None
        return self._confirm(
            request,
            possible,
            move,
            form,
            back=queue_url(),
            action=f"{move.value}_selected",
        )

    @admin.action(description=lazy("Claim"))
    def claim_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.CLAIM)

    @admin.action(description=lazy("Release"))
    def release_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.RELEASE)

    @admin.action(description=lazy("Mark delivered…"))
    def complete_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.COMPLETE)

    @admin.action(description=lazy("Send to review…"))
    def review_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.REVIEW)

    @admin.action(description=lazy("Reject and refund…"))
    def reject_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.REJECT)

    @admin.action(description=lazy("Fail without refund…"))
    def reject_unrefunded_selected(
        self, request: HttpRequest, queryset: Any
    ) -> HttpResponse | None:
        return self.move_selected(request, queryset, Move.REJECT_UNREFUNDED)


def _facts(fulfilment: Fulfilment, move: Move) -> str:
    """The sentence of a confirmation about one order."""
    texts = {
        Move.REJECT: _(
            "Order %(order)s: %(product)s for player %(player)s, %(state)s; %(price)s goes back to"
            " %(account)s."
        ),
        Move.REJECT_UNREFUNDED: _(
            "Order %(order)s: %(product)s for player %(player)s, %(state)s. We keep the %(price)s;"
            " %(account)s gets nothing back."
        ),
    }
    text = texts.get(move) or _("Order %(order)s: %(product)s for player %(player)s, %(state)s.")
    return text % {
        "order": fulfilment.order_reference,
        "product": fulfilment.product,
        "player": fulfilment.player_id,
        "state": describe_state(fulfilment),
        "price": amount(fulfilment.amount, fulfilment.currency),
        "account": fulfilment.account,
    }


def _operator(request: HttpRequest) -> Operator:
    return Operator(user=staff_of(request), channel=Channel.ADMIN)


def _claim_next(
    request: HttpRequest, *, after: Fulfilment | None = None, move: Move | None = None
) -> HttpResponse:
    """Claims the oldest waiting order. The message also says what the move did to `after`."""
    try:
        order = claim_next(operator=_operator(request))
    except MoveRefused as refused:
        if after is not None and move is not None:
            messages.success(request, _ended(after, move))
        messages.error(request, str(refused))
        return HttpResponseRedirect(queue_url())
    if after is not None and move is not None:
        now = _("Nothing is waiting.") if order is None else _("You have claimed the next one.")
        messages.success(request, format_html("{} {}", _ended(after, move), now))
    elif order is None:
        messages.info(request, _("Nothing is waiting."))
    return HttpResponseRedirect(queue_url() if order is None else url_of(order))


def _ended(fulfilment: Fulfilment, move: Move) -> str:
    """Says which order was moved, with a link to it in case of a mistake."""
    text = {
        Move.COMPLETE: _("Delivered: {}."),
        Move.REVIEW: _("Sent to review: {}. A senior operator decides."),
        Move.REJECT: _("Rejected: {}. The price goes back to the merchant."),
        Move.REJECT_UNREFUNDED: _("Failed without refund: {}."),
    }[move]
    return format_html(text, link_to(fulfilment))


def _was_just_claimed(fulfilment: Fulfilment) -> bool:
    """Whether it is too early to have read the order, as after a second click."""
    since = fulfilment.claimed_at if fulfilment.status == FulfilmentStatus.PROCESSING else None
    return since is not None and timezone.now() - since < TO_READ


def _one_click_move(
    request: HttpRequest, obj: Any, moves: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """The button "Delivered, claim next" of an order that the operator holds; else None."""
    if not any(move["name"] == NAMES[Move.COMPLETE] for move in moves):
        return None
    if obj.claimed_by != staff_of(request):
        return None
    url = url_of(obj, "deliver_next")
    return {"url": url, "version": _version(obj)}


def _next_review(request: HttpRequest, obj: Fulfilment) -> str:
    """The page of the oldest order in review, for who decides on it and has ended this one."""
    if obj.closed_at is None or not _operator(request).is_senior:
        return ""
    waiting = Fulfilment.objects.filter(status__in=OPEN).filter(
        status=FulfilmentStatus.PENDING_REVIEW
    )
    oldest = waiting.order_by("created_at", "pk").first()
    return url_of(oldest) if oldest else ""


def _failed_alone(obj: Fulfilment) -> str:
    """The person who claimed an order and failed it without a refund; empty for other orders."""
    if obj.status != FulfilmentStatus.FAILED or obj.refund_due_at or obj.refunded:
        return ""
    moves = FulfilmentEvent.objects.filter(fulfilment=obj).values_list("move", "actor")
    failed = {actor for move, actor in moves if move == Move.REJECT_UNREFUNDED}
    both = failed.intersection(actor for move, actor in moves if move == Move.CLAIM)
    return "".join(both)


def _form(move: Move) -> type[MoveForm]:
    return FORMS.get(move, MoveForm)


@dataclass(frozen=True)
class _Choice:
    """An order to move, at the version that the page showed; 0 if the request names none."""

    fulfilment: Fulfilment
    version: int

    @property
    def row(self) -> str:
        """The name of the form's field with the version."""
        return _row(self.fulfilment.pk)


def _row(pk: int) -> str:
    return f"version-{pk}"


def _version(fulfilment: Any) -> int:
    """The present version, as `get_queryset` read it."""
    version: int = fulfilment.version
    return version


def _read_version(text: str | None) -> int:
    """The version that a request names; 0, which no order has, if the text is not a version."""
    text = text or ""
    return int(text) if is_id(text) else 0


def _check_or_tell(request: HttpRequest, choice: _Choice, move: Move) -> bool:
    """Whether the move would be accepted now; tells the operator if it would not."""
    try:
        check_move(
            fulfilment=choice.fulfilment,
            version=choice.version,
            move=move,
            operator=_operator(request),
        )
    except MoveRefused as refused:
        _tell(request, choice.fulfilment, refused)
        return False
    return True


def _carry_out(
    request: HttpRequest,
    selected: list[_Choice],
    move: Move,
    *,
    reason: str = RejectReason.OTHER,
    note: str = "",
    message: str = "",
    tells: bool = True,
    **proof_fields: Any,
) -> int:
    """Moves each order separately; returns how many, and `tells` the operator. A refused order does
    not stop the others.

    `proof_fields` are those of a DeliverForm that describe the proof of one delivery.
    """
    proof = NewProof(**proof_fields)
    count = 0
    for choice in selected:
        order: dict[str, Any] = {
            "reference": choice.fulfilment.order_reference,
            "version": choice.version,
            "operator": _operator(request),
            "note": note,
        }
        try:
            if proof.is_empty:
                move_fulfilment(**order, move=move, reason=RejectReason(reason), message=message)
            else:
                deliver(**order, proof=proof)
            count += 1
        except InputProblem as problem:
            messages.error(request, f"{choice.fulfilment.order_reference}: {problem}")
        except MoveRefused as refused:
            _tell(request, choice.fulfilment, refused)
    if count and tells:
        messages.success(request, _done(move, count))
    return count


def _done(move: Move, count: int) -> str:
    """A sentence that says where the orders are now."""
    words = {
        Move.CLAIM: ngettext(
            "Claimed. The order is assigned to you.",
            "Claimed. %(count)s orders are assigned to you.",
            count,
        ),
        Move.RELEASE: ngettext(
            "Released. It is back in the queue.",
            "Released. %(count)s orders are back in the queue.",
            count,
        ),
        Move.COMPLETE: ngettext(
            "Delivered. The merchant sees the order as completed.",
            "Delivered. Merchants see %(count)s orders as completed.",
            count,
        ),
        Move.REVIEW: ngettext(
            "Sent to review. A senior operator decides.",
            "Sent to review. A senior operator decides on %(count)s orders.",
            count,
        ),
        Move.REJECT: ngettext(
            "Rejected. The price goes back to the merchant.",
            "Rejected. The prices of %(count)s orders go back to the merchants.",
            count,
        ),
        Move.REJECT_UNREFUNDED: ngettext(
            "Failed. Nothing is paid back.",
            "Failed. Nothing is paid back for %(count)s orders.",
            count,
        ),
    }
    return words[move] % {"count": count}


def _tell(request: HttpRequest, fulfilment: Fulfilment, refused: MoveRefused) -> None:
    level = messages.INFO if isinstance(refused, AlreadyDone) else messages.ERROR
    messages.add_message(request, level, f"{fulfilment.order_reference}: {refused}")
