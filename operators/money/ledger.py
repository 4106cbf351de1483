"""Wallets and the ledger. Staff never edit a balance; a booking adds a ledger entry."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    ChoicesDropdownFilter,
)
from unfold.decorators import action

from accounts.models import Account, ApiClient
from audit.actor import in_words
from core.inputs import is_id
from core.texts import lazy
from merchants.frame.exports import slug_of
from merchants.money.month_file import MONTH_TYPES, write_month
from merchants.money.months import closed_months, find_month
from operators.frame.base import (
    EMPTY,
    RecordAdmin,
    amount,
    label,
    link_to,
    link_to_list,
    shown_reference,
    step_link,
    time_cell,
    url_of,
)
from operators.frame.exports import send_to_staff
from operators.frame.long_lists import LOOKED_AT, LongRecordAdmin, PeriodFilter, has_few_orders
from operators.frame.reader import may_view, reader_has
from operators.money.booking import MOVE_MONEY, book, reverse
from operators.money.closes import STATEMENT, statement_links
from orders.models import Order
from orders.selectors import REFERENCE_PATTERN
from wallets.approvals import waiting_approvals, waiting_booking
from wallets.models import BookingApproval, EntryKind, LedgerEntry, Wallet
from wallets.selectors import find_booking, find_bookings, reversal_of

MAX_ACCOUNTS_FOUND = 100
KIND_COLOURS = {
    EntryKind.DEPOSIT: "success",
    EntryKind.REFUND: "success",
    EntryKind.CREDIT: "success",
    EntryKind.PAYOUT: "warning",
    EntryKind.ADJUSTMENT: "warning",
    EntryKind.PURCHASE: "info",
    EntryKind.REPLACEMENT: "info",
}


def accounts_named(term: str) -> list[int]:
    """The accounts whose name contains the text."""
    named = Account.objects.filter(name__icontains=term).order_by("pk")
    return list(named.values_list("pk", flat=True)[:MAX_ACCOUNTS_FOUND])


@admin.register(Wallet)
class WalletAdmin(RecordAdmin):
    list_display = ("account", "money", "movements")
    list_display_links = ("account",)
    list_filter = ("account__currency", "account__enabled")
    search_fields = ("account__name",)
    search_help_text = lazy("Name of the account")
    ordering = ("-account_id",)
    fields = ("account", "money", "movements", "statements")
    actions_detail = ("book",)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.statement_view)
        address = "<int:pk>/statement/<str:month>/<slug:format>/"
        return [path(address, view, name=STATEMENT.removeprefix("admin:")), *super().get_urls()]

    def statement_view(
        self, request: HttpRequest, pk: int, month: str, format: str
    ) -> HttpResponseBase:
        """The statement of a closed month, as the merchant downloads it."""
        if not self.has_export_permission(request) or not may_view(request, LedgerEntry):
            raise PermissionDenied
        wallet = get_object_or_404(Wallet.objects.select_related("account"), pk=pk)
        found = find_month(wallet.account, month)
        if found is None or format not in MONTH_TYPES:
            raise Http404
        return send_to_staff(
            request,
            write_month(wallet.account, found, format),
            name=f"statement-{slug_of(wallet.account)}-{found.name}.{format}",
            content_type=MONTH_TYPES[format],
        )

    def has_book_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm(MOVE_MONEY))

    @action(description=lazy("Book money…"), icon="payments", permissions=["book"], url_path="book")
    def book(self, request: HttpRequest, object_id: str) -> HttpResponse:
        wallet = self.get_object(request, unquote(object_id))
        if not isinstance(wallet, Wallet):
            raise Http404
        return book(self, request, wallet, about=wallet)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Wallet]:
        wallets: QuerySet[Wallet] = super().get_queryset(request)
        return wallets.select_related("account")

    @admin.display(description=lazy("balance"))
    def money(self, wallet: Wallet) -> str:
        return amount(wallet.balance, wallet.account.currency)

    @admin.display(description=lazy("ledger"))
    def movements(self, wallet: Wallet) -> str:
        return link_to_list(LedgerEntry, _("Ledger entries"), wallet__account__exact=wallet.pk)

    @admin.display(description=lazy("monthly statements"))
    def statements(self, wallet: Wallet) -> str:
        months = closed_months(wallet.account)
        lines = ((month.name, statement_links(wallet.pk, month.name)) for month in months)
        return format_html_join("", "<p>{}: {}</p>", lines) or _("No month is closed yet.")


@admin.register(LedgerEntry)
class LedgerEntryAdmin(LongRecordAdmin):
    list_display = (
        "created_at",
        "account",
        "type",
        "signed_amount",
        "balance",
        "order",
        "by",
        "next_step",
    )
    list_filter = (
        ("kind", ChoicesDropdownFilter),
        ("wallet", AutocompleteSelectFilter),
        ("created_at", PeriodFilter),
    )
    list_select_related = ("wallet__account",)
    served = ("kind__exact", "wallet__account__exact")
    search_fields = ("order_reference",)
    search_help_text = lazy("Beginning of a reference, or account")
    fields = (
        "created_at",
        "account",
        "type",
        "signed_amount",
        "balance",
        "against",
        "order",
        "by",
        "approver",
        "booking",
        "note",
        "reason",
        "reversal",
    )
    actions_detail = ("reverse",)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list, whose entries know their clients, their approvals, and whether they were
        reversed."""
        shown = super().get_changelist_instance(request)
        shown.result_list = entries = list(shown.result_list)
        clients = ApiClient.objects.in_bulk({_client_of(entry) for entry in entries} - {None})
        references = {entry.reversal_reference for entry in entries}
        reversals = LedgerEntry.objects.filter(booking_reference__in=references)
        reversed_ones = set(reversals.values_list("booking_reference", flat=True))
        asked = waiting_approvals().filter(booking_reference__in=references)
        waiting_ones = set(asked.values_list("booking_reference", flat=True))
        approvals = BookingApproval.objects.filter(entry__in=entries).select_related("decided_by")
        approvers = {one.entry_id: one.decided_by for one in approvals}
        for entry in entries:
            entry.approver = approvers.get(entry.pk)
            entry.client = clients.get(_client_of(entry))
            entry.is_reversed = entry.reversal_reference in reversed_ones
            entry.reversal_waits = entry.reversal_reference in waiting_ones
        return shown

    @admin.display(description=lazy("next step"))
    def next_step(self, entry: LedgerEntry) -> str:
        """A link for an entry that can be reversed, to people who may; else a badge if it is or has
        a reversal, or if its reversal waits."""
        if entry.reversed_entry is not None:
            return label(_("reversal"), "warning")
        if entry.is_reversed:  # type: ignore[attr-defined]  # set by the list
            return label(_("reversed"), "warning")
        if entry.reversal_waits:  # type: ignore[attr-defined]  # set by the list
            return label(_("reversal waits"), "warning")
        if not entry.can_be_reversed or not reader_has(MOVE_MONEY):
            return EMPTY
        return step_link("admin:wallets_ledgerentry_reverse", entry, _("Reverse…"))

    def has_reverse_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm(MOVE_MONEY))

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Offers the action for a booking that was not reversed and is no reversal, unless its
        reversal waits."""
        entry = self.get_object(request, unquote(str(object_id)))
        if not isinstance(entry, LedgerEntry) or not entry.can_be_reversed or reversal_of(entry):
            return []
        if waiting_booking(entry.reversal_reference):
            return []
        actions: list[Any] = super().get_actions_detail(request, object_id)
        return actions

    @action(
        description=lazy("Reverse this entry…"),
        icon="undo",
        permissions=["reverse"],
        url_path="reverse",
    )
    def reverse(self, request: HttpRequest, object_id: str) -> HttpResponse:
        entry = self.get_object(request, unquote(object_id))
        if not isinstance(entry, LedgerEntry) or not entry.can_be_reversed:
            raise Http404
        if reversal_of(entry):
            messages.info(request, _("This entry was already reversed."))
            return HttpResponseRedirect(url_of(entry))
        if waiting_booking(entry.reversal_reference):
            messages.info(request, _("The reversal of this entry waits for approval already."))
            return HttpResponseRedirect(url_of(entry))
        return reverse(self, request, entry)

    @admin.display(description=lazy("approved by"))
    def approver(self, entry: LedgerEntry) -> str:
        approval = BookingApproval.objects.select_related("decided_by").filter(entry=entry).first()
        return link_to(approval, str(approval.decided_by)) if approval else EMPTY

    @admin.display(description=lazy("reversal"))
    def reversal(self, entry: LedgerEntry) -> str:
        if entry.reversed_entry is not None:
            first = LedgerEntry(pk=entry.reversed_entry)
            return format_html(_("Reverses {}"), link_to(first))
        later = reversal_of(entry)
        if later:
            return format_html(_("Reversed by {}"), link_to(later))
        asked = waiting_booking(entry.reversal_reference)
        if asked is None:
            return EMPTY
        return format_html(
            _("{person} asked for a reversal on {time}. It waits for approval: {approval}."),
            person=asked.asked_by,
            time=time_cell(asked.asked_at),
            approval=link_to(asked),
        )

    export_columns = {
        "id": lambda entry: entry.pk,
        "time": lambda entry: entry.created_at,
        "account": lambda entry: entry.wallet.account,
        "kind": lambda entry: entry.kind,
        "amount": lambda entry: entry.amount,
        "balance_after": lambda entry: entry.balance_after,
        "currency": lambda entry: entry.wallet.account.currency,
        "order_reference": lambda entry: entry.order_reference,
        "booking_reference": lambda entry: entry.booking_reference,
        "note": lambda entry: entry.note,
        "for_the_merchant": lambda entry: entry.reason,
        "by": lambda entry: entry.actor,
    }

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        # The wallet filter uses this lookup because a wallet's primary key is its account. Django
        # allows it by itself only if the primary key is a plain number.
        if lookup == "wallet__account__exact":
            return True
        return bool(super().lookup_allowed(lookup, value, request))

    def search(
        self, queryset: QuerySet[LedgerEntry], term: str, request: HttpRequest
    ) -> tuple[QuerySet[LedgerEntry], bool]:
        if not term:
            return queryset, False
        if REFERENCE_PATTERN.fullmatch(term.upper()):
            return queryset.filter(order_reference=term.upper()), False
        bookings = find_bookings(term)
        if find_booking(term):
            return queryset.filter(pk__in=bookings), False
        accounts = accounts_named(term)
        if has_few_orders(ApiClient.objects.filter(account__in=accounts)):
            entries = LedgerEntry.objects.filter(wallet__in=accounts)
            ids = entries.order_by("-wallet", "-id").values_list("pk", flat=True)
            return queryset.filter(pk__in=[*bookings, *ids[: 2 * LOOKED_AT]]), False
        return queryset.filter(wallet__in=accounts), False

    def reads_too_much(self, request: HttpRequest, filters: set[str], term: str) -> bool:
        if not term or REFERENCE_PATTERN.fullmatch(term.upper()):
            return super().reads_too_much(request, filters, term)
        if find_booking(term):
            return False
        return not has_few_orders(ApiClient.objects.filter(account__in=accounts_named(term)))

    @admin.display(description=lazy("account"))
    def account(self, entry: LedgerEntry) -> str:
        return link_to(entry.wallet.account)

    @admin.display(description=lazy("kind"))
    def type(self, entry: LedgerEntry) -> str:
        kind = EntryKind(entry.kind)
        return label(kind.label, KIND_COLOURS[kind])

    @admin.display(description=lazy("amount"))
    def signed_amount(self, entry: LedgerEntry) -> str:
        sign = "+" if entry.amount > 0 else ""
        return sign + amount(entry.amount, entry.wallet.account.currency)

    @admin.display(description=lazy("balance after"))
    def balance(self, entry: LedgerEntry) -> str:
        return amount(entry.balance_after, entry.wallet.account.currency)

    @admin.display(description=lazy("booked against"))
    def against(self, entry: LedgerEntry) -> str:
        return entry.get_counterpart_display()

    @admin.display(description=lazy("by"))
    def by(self, entry: LedgerEntry) -> str:
        key = _client_of(entry)
        if key is None:
            who, approver = in_words(entry.actor), getattr(entry, "approver", None)  # in the list
            words = {"person": who, "approver": approver}
            return _("%(person)s, approved by %(approver)s") % words if approver else who
        if hasattr(entry, "client"):  # in the list
            client = entry.client
        else:
            client = ApiClient.objects.filter(pk=key).first()
        return link_to(client) if client else in_words(entry.actor)

    @admin.display(description=lazy("booking reference"))
    def booking(self, entry: LedgerEntry) -> str:
        return shown_reference(entry.booking_reference)

    @admin.display(description=lazy("order"))
    def order(self, entry: LedgerEntry) -> str:
        if not entry.order_reference:
            return EMPTY
        return link_to_list(Order, entry.order_reference, q=entry.order_reference)


def _client_of(entry: LedgerEntry) -> int | None:
    """The id of the client that bought; None if a person or a task made the entry."""
    kind, _colon, key = entry.actor.partition(":")
    return int(key) if kind == "client" and is_id(key) else None
