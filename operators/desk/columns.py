"""The list of the desk: its columns, and its filter by state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import DropdownFilter
from unfold.decorators import display

from audit.actor import who_and_where
from core.database.columns import NOTE_LENGTH
from core.texts import lazy
from operators.frame.base import EMPTY, amount, label, link_to_list, staff_of
from operators.frame.desk_summary import STATES, URGENCIES, age_in_words, urgency
from operators.telegram.models import Announcement, AnnouncementState
from topups.fulfilment.transitions import OPEN
from topups.models import Fulfilment, FulfilmentEvent, FulfilmentStatus
from wallets.models import LedgerEntry

COLOURS = {
    FulfilmentStatus.PENDING: "info",
    FulfilmentStatus.PROCESSING: "warning",
    FulfilmentStatus.PENDING_REVIEW: "danger",
    FulfilmentStatus.COMPLETED: "success",
    FulfilmentStatus.FAILED: "danger",
}


class WorkFilter(DropdownFilter):
    """Filters by state and claim. Without a choice it shows open orders; a search finds all."""

    title = lazy("orders")
    parameter_name = "work"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        states = [(status.value, str(status.label)) for status in STATES]
        return [
            ("mine", _("My claims")),
            ("open", _("Open")),
            *states,
            ("refund_due", _("Refund due")),
            ("all", _("All, including ended")),
        ]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Fulfilment]
    ) -> QuerySet[Fulfilment]:
        match self.value():
            case "all":
                return queryset
            case "mine":
                return queryset.filter(claimed_by=staff_of(request))
            case "refund_due":
                return queryset.filter(refund_due_at__isnull=False, refunded_at=None)
            case state if state in STATES:
                return queryset.filter(status=state)
            case None if request.GET.get(SEARCH_VAR):
                return queryset
        return queryset.filter(status__in=OPEN)


class DeskColumns:
    """The columns of the queue, and the fields of an order's page."""

    @display(description=lazy("age"), label={**URGENCIES, "": None})
    def age(self, fulfilment: Fulfilment) -> tuple[str, str]:
        age = (fulfilment.closed_at or timezone.now()) - fulfilment.created_at
        return (urgency(age) if fulfilment.closed_at is None else "", age_in_words(age))

    @admin.display(description=lazy("top-up product"))
    def goods(self, fulfilment: Fulfilment) -> str:
        return fulfilment.product.name

    @admin.display(description=lazy("player ID"))
    def player(self, fulfilment: Fulfilment) -> str:
        return _to_copy(fulfilment.player_id, _("Player ID"))

    @admin.display(description=lazy("order reference"))
    def reference_to_copy(self, fulfilment: Fulfilment) -> str:
        return _to_copy(fulfilment.order_reference, _("Order reference"))

    @admin.display(description=lazy("player ID"))
    def player_to_copy(self, fulfilment: Fulfilment) -> str:
        return format_html(
            '<span class="desk-large">{} <span class="soft">{}</span></span>',
            self.player(fulfilment),
            _("Click to copy"),
        )

    @admin.display(description=lazy("the merchant reads"))
    def merchant_text(self, fulfilment: Fulfilment) -> str:
        return text_for_merchant(fulfilment) or EMPTY

    @admin.display(description=lazy("other fields"))
    def texts(self, fulfilment: Fulfilment) -> str:
        rows = fulfilment.labelled_fields
        return format_html_join("", "<div>{}: <strong>{}</strong></div>", rows) or EMPTY

    @display(description=lazy("state"), label=COLOURS)
    def state(self, fulfilment: Fulfilment) -> tuple[str, str]:
        label = str(FulfilmentStatus(fulfilment.status).label)
        row = _announcement(fulfilment)
        if row and row.state == AnnouncementState.GIVEN_UP and fulfilment.status in OPEN:
            label = _("%(state)s, not in Telegram") % {"state": label}
        return fulfilment.status, label

    # The same for an order's own page, where the theme does not draw labels.

    @admin.display(description=lazy("age"))
    def wait(self, fulfilment: Fulfilment) -> str:
        level, words = self.age(fulfilment)
        return label(words, URGENCIES.get(level, ""))

    @admin.display(description=lazy("operator"))
    def claim(self, fulfilment: Fulfilment) -> str:
        return sent_to_review(fulfilment, most=100) or str(fulfilment.claimed_by or EMPTY)

    @admin.display(description=lazy("claimed by"))
    def holder(self, fulfilment: Fulfilment) -> str:
        if fulfilment.status != FulfilmentStatus.PROCESSING or fulfilment.claimed_at is None:
            return str(fulfilment.claimed_by or EMPTY)
        end = fulfilment.claimed_at + timedelta(minutes=settings.DESK_CLAIM_MINUTES)
        return _("%(name)s. If the order is not finished by %(time)s, it goes to review.") % {
            "name": fulfilment.claimed_by,
            "time": f"{timezone.localtime(end):%H:%M} {timezone.get_current_timezone_name()}",
        }

    @admin.display(description=lazy("announcement"))
    def telegram(self, fulfilment: Fulfilment) -> str:
        row = _announcement(fulfilment)
        if row is None:
            return EMPTY
        label = AnnouncementState(row.state).label
        return f"{label}: {row.last_error}" if row.last_error else str(label)

    @admin.display(description=lazy("price"))
    def price(self, fulfilment: Fulfilment) -> str:
        return amount(fulfilment.amount, fulfilment.currency)

    @admin.display(description=lazy("refund"))
    def refund(self, fulfilment: Fulfilment) -> str:
        if fulfilment.refunded:
            text = _("%(sum)s refunded") % {"sum": self.price(fulfilment)}
            return link_to_list(LedgerEntry, text, q=fulfilment.order_reference)
        return _("due") if fulfilment.refund_due_at else EMPTY


def _to_copy(text: str, name: str) -> SafeString:
    """A text that a click copies."""
    return format_html(
        '<input class="desk-copy" type="text" readonly size="{}" value="{}"'
        ' aria-label="{}" title="{}"'
        ' x-data="{{copied: false}}" x-bind:class="copied && \'desk-copied\'"'
        ' x-on:click="$el.select(); (navigator.clipboard'
        " ? navigator.clipboard.writeText($el.value)"
        " : Promise.resolve(document.execCommand('copy'))).then(() => copied = true)\">",
        max(len(text), 4),
        text,
        name,
        _("Click to copy"),
    )


def sent_to_review(fulfilment: Fulfilment, most: int = NOTE_LENGTH) -> str:
    """The sender of an order in review, and the reason in at most `most` characters; empty if it is
    not in review. It is read with its `reviews`."""
    if fulfilment.status != FulfilmentStatus.PENDING_REVIEW:
        return ""
    event: FulfilmentEvent = fulfilment.reviews[-1]  # type: ignore[attr-defined]
    who, _where = who_and_where(event.actor)
    return ": ".join(filter(None, (who, Truncator(event.note).chars(most))))


def text_for_merchant(fulfilment: Fulfilment) -> str:
    """The reason of a failure and the message, as the merchant reads them; empty without one."""
    return " ".join(filter(None, (str(fulfilment.why_it_failed), fulfilment.message)))


def state_label(status: FulfilmentStatus, more: str = "") -> str:
    """The badge of a state, with `more` about it."""
    return label(", ".join(filter(None, (str(status.label), more))), COLOURS[status])


def _announcement(fulfilment: Fulfilment) -> Announcement | None:
    return getattr(fulfilment, "announcement", None)
