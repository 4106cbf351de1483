"""Lost purchases: what `hold_codes` found after a restore, and how each is settled."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html, linebreaks
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.form_fields import posted
from core.database.columns import NOTE_LENGTH
from core.texts import lazy
from operators.frame.base import (
    EMPTY,
    Colours,
    ConditionFilter,
    RecordAdmin,
    amount,
    link_to,
    list_url,
    page,
    site_page,
    staff_of,
    url_of,
)
from operators.money.booking import MOVE_MONEY, actor_of
from orders.models import LostPurchase, Settlement
from orders.recovery.settlements import (
    open_purchases,
    settle_lost_purchases,
    state_of,
    write_notice,
)

STATES = {
    "open": Q(settlement=None),
    "debited": Q(settlement__debit__isnull=False),
    "not-debited": Q(settlement__isnull=False, settlement__debit=None),
}

STATE_NAMES = {
    "open": lazy("open"),
    "debited": lazy("debited"),
    "not debited": lazy("not debited"),
}


class StateFilter(ConditionFilter):
    title = lazy("state")
    parameter_name = "state"
    conditions = STATES
    names = {
        "open": lazy("Open"),
        "debited": lazy("Debited"),
        "not-debited": lazy("Not debited"),
    }


class SettleForm(forms.Form):
    debits = forms.TypedChoiceField(
        label=lazy("Settle"),
        choices=[
            ("yes", lazy("Debit the price")),
            ("no", lazy("Debit nothing: the merchant keeps it")),
        ],
        coerce=lambda value: value == "yes",
        widget=UnfoldAdminSelectWidget,
    )
    note = forms.CharField(
        label=lazy("Note"),
        max_length=NOTE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("Why, or what you agreed. The merchant reads it in the statement."),
    )


@admin.register(LostPurchase)
class LostPurchaseAdmin(RecordAdmin):
    list_display = ("reference", "account", "price", "sold_at", "state")
    list_filter = (StateFilter, ("client__account", AutocompleteSelectFilter))
    list_select_related = ("client__account", "settlement")
    list_before_template = "admin/about_lost_purchases.html"
    search_fields = ("reference",)
    search_help_text = lazy("Whole reference")
    when_empty = lazy("No restore has lost a purchase.")
    fields = (
        *("reference", "account", "client", "price", "sold_at", "found_at", "hold"),
        *("state", "debit", "settled_by", "note", "notice"),
    )
    actions_list = ("settle_all",)
    actions_detail = ("settle",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[LostPurchase]:
        purchases: QuerySet[LostPurchase] = super().get_queryset(request)
        return purchases.select_related("settlement__debit", "client__account")

    @admin.display(description=lazy("account"))
    def account(self, lost: LostPurchase) -> str:
        return link_to(lost.client.account)

    @admin.display(description=lazy("price"))
    def price(self, lost: LostPurchase) -> str:
        return amount(lost.total_price, lost.currency)

    @display(
        description=lazy("state"),
        label=Colours(
            {
                STATE_NAMES["open"]: "warning",
                STATE_NAMES["debited"]: "success",
                STATE_NAMES["not debited"]: "info",
            }
        ),
    )
    def state(self, lost: LostPurchase) -> str:
        return str(STATE_NAMES[state_of(_settlement(lost))])

    @admin.display(description=lazy("debit"))
    def debit(self, lost: LostPurchase) -> str:
        settlement = _settlement(lost)
        return link_to(settlement.debit) if settlement else EMPTY

    @admin.display(description=lazy("settled by"))
    def settled_by(self, lost: LostPurchase) -> str:
        settlement = _settlement(lost)
        return settlement.settled_by if settlement else EMPTY

    @admin.display(description=lazy("note"))
    def note(self, lost: LostPurchase) -> str:
        settlement = _settlement(lost)
        return settlement.note if settlement else EMPTY

    @admin.display(description=lazy("text for the merchant"))
    def notice(self, lost: LostPurchase) -> str:
        account = lost.client.account
        text = write_notice(account) if account else ""
        html = mark_safe(linebreaks(text, autoescape=True))  # noqa: S308  escaped
        return format_html('<div lang="en">{}</div>', html) if text else EMPTY

    def has_settle_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        if not (self.has_view_permission(request) and staff_of(request).has_perm(MOVE_MONEY)):
            return False
        if object_id is None or request.method == "POST":
            return True
        lost = self.get_object(request, unquote(str(object_id)))
        return isinstance(lost, LostPurchase) and _settlement(lost) is None

    @action(description=lazy("Settle…"), icon="gavel", permissions=["settle"], url_path="settle")
    def settle(self, request: HttpRequest, object_id: str) -> HttpResponse:
        lost = self.get_object(request, unquote(object_id))
        if not isinstance(lost, LostPurchase):
            raise Http404
        form = SettleForm(posted(request))
        if form.is_valid():
            _settle(request, form, open_purchases().filter(pk=lost.pk))
            return HttpResponseRedirect(url_of(lost))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=lost,
            title=_("Settle lost purchase"),
            form=form,
            question=_("Settle %(reference)s of %(merchant)s?")
            % {"reference": lost.reference, "merchant": lost.client.account or lost.client},
            facts=[
                _("Price: %(price)s") % {"price": amount(lost.total_price, lost.currency)},
                *FACTS,
            ],
            button=_("Settle"),
            danger=True,
            back=url_of(lost),
        )

    @action(
        description=lazy("Settle all open ones…"),
        icon="gavel",
        permissions=["settle"],
        url_path="settle-all",
    )
    def settle_all(self, request: HttpRequest) -> HttpResponse:
        form = SettleForm(posted(request))
        if form.is_valid():
            _settle(request, form, open_purchases())
            return HttpResponseRedirect(list_url(LostPurchase))
        return site_page(
            request,
            "admin/confirm.html",
            opts=self.opts,
            title=_("Settle all open lost purchases"),
            form=form,
            question=_("Settle all %(count)s open lost purchases?")
            % {"count": open_purchases().count()},
            facts=FACTS,
            button=_("Settle all"),
            danger=True,
            back=list_url(LostPurchase),
        )


FACTS = [
    lazy(
        "A debit is an adjustment of the account's balance, booked once per lost purchase."
        " Purchases whose account has too little money stay open."
    ),
]


def _settlement(lost: LostPurchase) -> Settlement | None:
    return getattr(lost, "settlement", None)


def _settle(request: HttpRequest, form: SettleForm, purchases: QuerySet[LostPurchase]) -> None:
    answer = settle_lost_purchases(purchases, actor=actor_of(request), **form.cleaned_data)
    messages.success(request, _("Settled: %(settled)s.") % {"settled": answer["settled"]})
    for problem in list(answer["not_settled"].values())[:20]:
        messages.error(request, problem)
