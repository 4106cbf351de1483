"""Bookings that wait for a second person, and the limits above which a booking waits."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter
from unfold.decorators import action

from accounts.form_fields import posted
from cases.selectors import case_of_credit, left_to_credit
from core.api.errors import OrderRefused
from core.inputs import InputProblem, is_id
from core.json_output import money_text
from core.texts import english, inside_sentence, lazy
from operators.frame.base import (
    EMPTY,
    BackOfficeAdmin,
    ConditionFilter,
    ConfirmForm,
    RecordAdmin,
    amount,
    label,
    link_to,
    link_to_list,
    linked,
    page,
    shown_reference,
    staff_of,
    step_link,
    time_cell,
    url_of,
)
from operators.frame.long_lists import TimeFilter
from operators.frame.reader import is_reader, reader_has
from operators.history.timeline import TimelinePage
from operators.money.booking import APPROVE, MOVE_MONEY, describe_booked
from operators.sign_in.two_people import TwoPeopleForm, TwoPeoplePage
from orders.models import Order
from orders.remedies.bookings import approve
from wallets.approvals import reject_booking, waiting_approvals
from wallets.limits import day_limit
from wallets.models import ApprovalState, BookingApproval, BookingLimit, LedgerEntry
from wallets.services import AlreadyBooked, BadBooking

STATE_NAMES = {
    ApprovalState.WAITING: lazy("waiting"),
    ApprovalState.BOOKED: lazy("booked"),
    ApprovalState.REJECTED: lazy("rejected"),
    ApprovalState.WITHDRAWN: lazy("withdrawn"),
    ApprovalState.EXPIRED: lazy("expired"),
}

COLOURS = {
    ApprovalState.WAITING: "warning",
    ApprovalState.BOOKED: "success",
    ApprovalState.REJECTED: "danger",
    ApprovalState.WITHDRAWN: "info",
    ApprovalState.EXPIRED: "danger",
}


class StateFilter(ConditionFilter):
    title = lazy("state")
    parameter_name = "state"
    conditions = {state.value: Q(state=state) for state in ApprovalState}
    names = {state.value: capfirst(name) for state, name in STATE_NAMES.items()}


@admin.register(BookingApproval)
class BookingApprovalAdmin(TimelinePage, RecordAdmin):
    """Another person than the maker approves a booking, and it is booked."""

    list_display = (
        *("asked_at", "account", "kind_in_words", "signed_amount", "asked_by", "state_badge"),
        "next_step",
    )
    list_filter = (
        StateFilter,
        ("kind", ChoicesDropdownFilter),
        ("wallet", AutocompleteSelectFilter),
        ("asked_at", TimeFilter),
    )
    list_select_related = ("wallet__account", "asked_by", "decided_by")
    search_fields = ("booking_reference", "order_reference", "asked_by__username")
    search_help_text = lazy("Booking reference, order, or who asked")
    when_empty = lazy("No booking was above the limit of its maker.")
    maker = linked("asked_by", lazy("asked by"))
    fields = (
        *("state_badge", "account", "kind_in_words", "signed_amount", "balance", "balance_after"),
        *(
            "note",
            "reason",
            "booking",
            "order",
            "case",
            "reverses",
            "maker",
            "asked_at",
            "expires",
        ),
        *("decider", "decided_at", "ledger_entry"),
    )
    actions_detail = ("approve", "reject")

    @admin.display(description=lazy("decided by"))
    def decider(self, booking: BookingApproval) -> str:
        """The person who approved or rejected the booking, never its maker."""
        if booking.decided_by_id is None:
            waits = booking.state == ApprovalState.WAITING and booking.expires_at > timezone.now()
            return _("nobody yet") if waits else _("nobody")
        if booking.state == ApprovalState.WITHDRAWN:
            return _("nobody: %(person)s withdrew it") % {"person": booking.decided_by}
        return link_to(booking.decided_by)

    @admin.display(description=lazy("next step"))
    def next_step(self, booking: BookingApproval) -> str:
        """Links for a booking that waits, to people who may decide."""
        if booking.state != ApprovalState.WAITING or booking.expires_at <= timezone.now():
            return EMPTY
        reject = "admin:wallets_bookingapproval_reject"
        if is_reader(booking.asked_by_id):
            return step_link(reject, booking, _("Withdraw…"))
        if not reader_has(APPROVE):
            return EMPTY
        approve = step_link("admin:wallets_bookingapproval_approve", booking, _("Approve…"))
        return format_html("{} · {}", approve, step_link(reject, booking, _("Reject…")))

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        # As in LedgerEntryAdmin: a wallet's primary key is its account.
        return lookup == "wallet__account__exact" or super().lookup_allowed(lookup, value, request)

    @admin.display(description=lazy("account"))
    def account(self, booking: BookingApproval) -> str:
        return link_to(booking.wallet.account)

    @admin.display(description=lazy("amount"))
    def signed_amount(self, booking: BookingApproval) -> str:
        sign = "+" if booking.amount > 0 else ""
        return sign + amount(booking.amount, booking.wallet.account.currency)

    @admin.display(description=lazy("booking reference"))
    def booking(self, booking: BookingApproval) -> str:
        return shown_reference(booking.booking_reference)

    @admin.display(description=lazy("balance now"))
    def balance(self, booking: BookingApproval) -> str:
        return amount(booking.wallet.balance, booking.wallet.account.currency)

    @admin.display(description=lazy("balance after"))
    def balance_after(self, booking: BookingApproval) -> str:
        """The balance if the booking that waits is booked now."""
        if booking.state != ApprovalState.WAITING:
            return EMPTY
        return amount(booking.wallet.balance + booking.amount, booking.wallet.account.currency)

    @admin.display(description=lazy("order"))
    def order(self, booking: BookingApproval) -> str:
        if not booking.order_reference:
            return EMPTY
        return link_to_list(Order, booking.order_reference, q=booking.order_reference)

    @admin.display(description=lazy("case"))
    def case(self, booking: BookingApproval) -> str:
        return link_to(case_of_credit(booking))

    @admin.display(description=lazy("kind"), ordering="kind")
    def kind_in_words(self, booking: BookingApproval) -> str:
        kind = booking.get_kind_display()
        return kind if booking.reversed_entry is None else f"{kind}, {_('reversal')}"

    @admin.display(description=lazy("expires at"))
    def expires(self, booking: BookingApproval) -> str:
        return time_cell(booking.expires_at if booking.state == ApprovalState.WAITING else None)

    @admin.display(description=lazy("reverses"))
    def reverses(self, booking: BookingApproval) -> str:
        return link_to(
            None if booking.reversed_entry is None else LedgerEntry(pk=booking.reversed_entry)
        )

    @admin.display(description=lazy("ledger entry"))
    def ledger_entry(self, booking: BookingApproval) -> str:
        return link_to(booking.entry)

    @admin.display(description=lazy("state"))
    def state_badge(self, booking: BookingApproval) -> str:
        late = booking.state == ApprovalState.WAITING and booking.expires_at <= timezone.now()
        state = ApprovalState.EXPIRED if late else ApprovalState(booking.state)
        return label(str(STATE_NAMES[state]), COLOURS[state])

    def has_approve_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(APPROVE)

    def has_reject_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """People who may approve reject; makers withdraw what they asked for."""
        return staff_of(request).has_perm(APPROVE) or staff_of(request).has_perm(MOVE_MONEY)

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Offers the actions while the booking waits, and `approve` not to its maker."""
        key = unquote(str(object_id))
        booking = waiting_approvals().filter(pk=key).first() if is_id(key) else None
        if booking is None:
            return []
        own = booking.asked_by_id == staff_of(request).pk
        may_approve = self.has_approve_permission(request)
        offered = {"approve": may_approve and not own, "reject": may_approve or own}
        actions = super().get_actions_detail(request, object_id)
        return [
            replace(one, description=_("Withdraw…")) if own else one
            for one in actions
            if offered[one.method.original_function_name]
        ]

    @action(description=lazy("Approve…"), icon="done", permissions=["approve"], url_path="approve")
    def approve(self, request: HttpRequest, object_id: str) -> HttpResponse:
        booking = self._booking(request, object_id)
        if request.method == "POST":
            return _approve(request, booking)
        currency = booking.wallet.account.currency
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=booking,
            title=_("Approve a booking"),
            question=_question(booking),
            facts=[
                _asked(booking),
                _("Amount: %(amount)s") % {"amount": amount(booking.amount, currency)},
                _("Balance now: %(balance)s")
                % {"balance": amount(booking.wallet.balance, currency)},
                _("Balance after: %(balance)s")
                % {"balance": amount(booking.wallet.balance + booking.amount, currency)},
                _("Reason: %(reason)s") % {"reason": booking.note},
                *(
                    [_("For the merchant: %(reason)s") % {"reason": booking.reason}]
                    if booking.reason
                    else []
                ),
                *_about(booking),
            ],
            button=_("Approve and book"),
            danger=booking.amount < 0,
            back=url_of(booking),
        )

    @action(description=lazy("Reject…"), icon="close", permissions=["reject"], url_path="reject")
    def reject(self, request: HttpRequest, object_id: str) -> HttpResponse:
        booking = self._booking(request, object_id)
        own = booking.asked_by_id == staff_of(request).pk
        if not own and not self.has_approve_permission(request):
            raise PermissionDenied
        form = ConfirmForm(posted(request))
        if not form.is_bound or not form.is_valid():
            return page(
                self,
                request,
                "admin/confirm.html",
                obj=booking,
                title=_("Withdraw a booking") if own else _("Reject a booking"),
                form=form,
                question=(
                    _("Withdraw this %(kind)s for %(account)s?")
                    if own
                    else _("Reject this %(kind)s for %(account)s?")
                )
                % {
                    "kind": inside_sentence(booking.get_kind_display()),
                    "account": booking.wallet.account,
                },
                facts=[_("Nothing will be booked.")],
                button=_("Withdraw") if own else _("Reject"),
                danger=True,
                back=url_of(booking),
            )
        note = form.cleaned_data["note"]
        if reject_booking(booking=booking, actor=staff_of(request), note=note):
            done = _("The booking is withdrawn.") if own else _("The booking is rejected.")
            messages.success(request, done)
        else:
            messages.warning(request, _("This booking no longer waits for approval."))
        return HttpResponseRedirect(url_of(booking))

    def _booking(self, request: HttpRequest, object_id: str) -> BookingApproval:
        booking = self.get_object(request, unquote(object_id))
        if not isinstance(booking, BookingApproval):
            raise Http404
        return booking


def _question(booking: BookingApproval) -> str:
    """Whether to book what was asked for, or to reverse what was booked."""
    words = {
        "kind": inside_sentence(booking.get_kind_display()),
        "amount": amount(-booking.amount, booking.wallet.account.currency),
        "account": booking.wallet.account,
    }
    if booking.reversed_entry is not None:
        return _("Reverse this %(kind)s of %(amount)s for %(account)s?") % words
    return _("Book this %(kind)s for %(account)s?") % words


def _asked(booking: BookingApproval) -> str:
    """Names the person who asked, and the order, the entry or the record to compare it with."""
    words = {"person": booking.asked_by}
    if booking.reversed_entry is not None:
        text = _("{} asked for it. Compare it with {} before you approve.")
        return format_html(text, booking.asked_by, link_to(LedgerEntry(pk=booking.reversed_entry)))
    order = Order.objects.filter(reference=booking.order_reference).first()
    if order is None:
        text = _("%(person)s asked for it. Compare it with the bank's record before you approve.")
        return text % words
    left = amount(left_to_credit(order, case_of_credit(booking)), order.currency)
    text = _("{person} asked for it. {order} cost {price}, of which {left} is left to credit.")
    return format_html(
        text,
        person=booking.asked_by,
        order=link_to(order),
        price=amount(order.total_price, order.currency),
        left=left,
    )


def _about(booking: BookingApproval) -> list[str]:
    """The case and the bank's reference, as far as the booking has them."""
    case, reference = case_of_credit(booking), shown_reference(booking.booking_reference)
    lines: list[str] = [format_html(_("From {}"), link_to(case))] if case else []
    if reference != EMPTY:
        lines.append(_("Reference: %(reference)s") % {"reference": reference})
    return lines


def _approve(request: HttpRequest, booking: BookingApproval) -> HttpResponse:
    try:
        entry = approve(booking=booking, actor=staff_of(request))
    except AlreadyBooked:
        messages.error(request, _("This was booked already. Reject it here."))
    except BadBooking as error:
        messages.error(request, _("Nothing was booked: %(error)s.") % {"error": error})
    except OrderRefused as refused:
        messages.error(
            request, _("Nothing was booked: %(message)s") % {"message": _(refused.message)}
        )
    except InputProblem as problem:
        messages.error(request, str(problem))
    else:
        if entry is None:
            messages.warning(request, _("This booking no longer waits for approval."))
        else:
            messages.success(request, describe_booked(entry, booking.wallet.account))
    return HttpResponseRedirect(url_of(booking))


def _text(value: Any) -> str:
    """A value for the request: the same, however a person writes an amount."""
    return money_text(value) if isinstance(value, Decimal) else english(value)


class LimitForm(TwoPeopleForm):
    """A limit. One person lowers it; every other change needs a second one."""

    unsaved = lazy(
        "Not saved yet: it could let people book more alone. Ask another"
        " administrator to save the same limit within a day."
    )

    def needs_two(self) -> str:
        stored = BookingLimit.objects.filter(pk=self.instance.pk).first()
        if stored and self._is_lower(stored):
            return ""
        names = ("group", "kind", "currency", "amount", "per_day")
        values = " ".join(_text(self.cleaned_data[name]) for name in names)
        # With the stored values: a request ends when another one has changed them.
        before = " ".join(_text(getattr(stored, name)) for name in names) if stored else "nothing"
        return f"limit {self.instance.pk or 'new'}: {values} instead of {before}"

    def _is_lower(self, stored: BookingLimit) -> bool:
        """Whether only amounts change, and none to a larger one."""
        cleaned = self.cleaned_data
        if any(getattr(stored, name) != cleaned[name] for name in ("group", "kind", "currency")):
            return False
        return cleaned["amount"] <= stored.amount and day_limit(
            cleaned["amount"], cleaned["per_day"]
        ) <= day_limit(stored.amount, stored.per_day)


@admin.register(BookingLimit)
class BookingLimitAdmin(TwoPeoplePage, BackOfficeAdmin):
    """The booking limits of roles. A booking above the limit of its maker waits for approval."""

    change_form_before_template = "admin/about_booking_limits.html"
    list_before_template = "admin/about_booking_limits.html"

    list_display = ("role", "kind", "currency_text", "most", "sum_of_a_day")
    list_display_links = ("role", "kind")
    list_filter = (("kind", ChoicesDropdownFilter),)
    list_select_related = ("group",)
    ordering = ("group__name", "kind", "currency")
    readonly_fields = ("role",)
    help_texts = {
        "currency": lazy(
            "Three capital letters, such as USD. Leave it empty for all currencies without a limit"
            " of their own."
        ),
        "amount": lazy("A larger booking waits until another member of staff approves it."),
        "per_day": lazy(
            "The largest sum of the bookings that a person makes alone in a day (UTC)."
            " Empty: ten times the amount."
        ),
    }
    when_empty = lazy("No role has a limit of its own.")
    form = LimitForm

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Without a limit of its own, a role has a larger one."""
        return bool(getattr(request.user, "is_superuser", False))

    def get_fields(self, request: HttpRequest, obj: BookingLimit | None = None) -> tuple[str, ...]:
        """A page for viewing names the role as text: Django would link to the page of the role."""
        edits = self.has_change_permission(request, obj) or self.has_add_permission(request)
        return ("group" if edits else "role", "kind", "currency", "amount", "per_day")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """Pages call a group of Django a role."""
        if db_field.name == "group":
            options["label"] = _("Role")
        return super().formfield_for_foreignkey(db_field, request, **options)

    @admin.display(description=lazy("role"), ordering="group__name")
    def role(self, limit: BookingLimit) -> str:
        return str(limit.group)

    @admin.display(description=lazy("amount"), ordering="amount")
    def most(self, limit: BookingLimit) -> str:
        return amount(limit.amount)

    @admin.display(description=lazy("sum of a day"))
    def sum_of_a_day(self, limit: BookingLimit) -> str:
        return _("ten times the amount") if limit.per_day is None else amount(limit.per_day)

    @admin.display(description=lazy("currency"))
    def currency_text(self, limit: BookingLimit) -> str:
        return limit.currency or _("all others")
