"""Transfers that merchants announce, and the bank details that they read."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action

from core.inputs import is_id
from core.texts import lazy
from operators.frame.base import (
    CURRENCY_HELP,
    EMPTY,
    BackOfficeAdmin,
    ConditionFilter,
    amount,
    label,
    link_to,
    linked,
    page,
    staff_of,
    url_of,
)
from operators.frame.long_lists import LongRecordAdmin, TimeFilter
from operators.money.booking import MOVE_MONEY
from operators.sign_in.second_person import digest_of
from operators.sign_in.two_people import TwoPeopleForm, TwoPeoplePage
from wallets.models import AnnouncedTransfer, BankDetails
from wallets.selectors import find_booking, reversal_of
from wallets.transfers import (
    announced_transfers,
    booking_to_approve,
    close_transfer,
    deposit_of,
    reference_again,
    with_approvals,
    with_reversals,
)


class StateFilter(ConditionFilter):
    title = lazy("state")
    parameter_name = "state"
    conditions = {
        "on-its-way": Q(closed_at=None, received=False, waits=False),
        "waits": Q(closed_at=None, received=False, waits=True),
        "received": Q(received=True),
        "closed": Q(closed_at__isnull=False, received=False),
    }
    names = {
        "on-its-way": lazy("On its way"),
        "waits": lazy("Waits for approval"),
        "received": lazy("Received"),
        "closed": lazy("Closed"),
    }


@admin.register(AnnouncedTransfer)
class AnnouncedTransferAdmin(LongRecordAdmin):
    """Finance confirms a transfer by booking its deposit.

    The state follows from the ledger, so no index has it, and its filter looks at the newest rows.
    """

    served = ("account__id__exact",)

    list_display = ("announced_at", "account", "money", "reference", "state")
    list_filter = (
        StateFilter,
        ("account", AutocompleteSelectFilter),
        ("announced_at", TimeFilter),
    )
    list_select_related = ("account", "announced_by", "closed_by")
    search_fields = ("reference", "account__name")
    search_help_text = lazy("Reference or account")
    when_empty = lazy("No merchant has announced a transfer.")
    of_account = linked("account")
    announcer = linked("announced_by", lazy("announced by"))
    closer = linked("closed_by", lazy("closed by"))
    fields = (
        *("state", "of_account", "money", "reference", "clash", "approval", "deposit"),
        *("announcer", "announced_at", "closer", "closed_at"),
    )
    actions_detail = ("confirm", "close")

    def get_queryset(self, request: HttpRequest) -> QuerySet[AnnouncedTransfer]:
        return with_reversals(with_approvals(announced_transfers())).order_by("-pk")

    @admin.display(description=lazy("amount"))
    def money(self, transfer: AnnouncedTransfer) -> str:
        return amount(transfer.amount, transfer.account.currency)

    @admin.display(description=lazy("state"))
    def state(self, transfer: Any) -> str:
        if transfer.reversed:
            return label(_("received, deposit reversed"), "warning")
        if transfer.received:
            return label(_("received"), "success")
        if transfer.closed_at:
            return label(_("closed"), "info")
        if transfer.waits:
            return label(_("waits for approval"), "info")
        return label(_("on its way"), "warning")

    @admin.display(description=lazy("reference booked for another account"))
    def clash(self, transfer: AnnouncedTransfer) -> str:
        entry = find_booking(transfer.reference)
        return link_to(None if entry is None or entry.wallet_id == transfer.account_id else entry)

    @admin.display(description=lazy("booking that waits for approval"))
    def approval(self, transfer: AnnouncedTransfer) -> str:
        return link_to(booking_to_approve(transfer))

    @admin.display(description=lazy("deposit"))
    def deposit(self, transfer: AnnouncedTransfer) -> str:
        """A link to the ledger entry, and to its reversal."""
        entry = deposit_of(transfer)
        if entry is None:
            return EMPTY
        reversal, parts = reversal_of(entry), [link_to(entry)]
        if reversal is not None:
            parts.append(format_html(_("Reversed by {}"), link_to(reversal)))
        return format_html_join(". ", "{}", ((part,) for part in parts))

    def has_confirm_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(MOVE_MONEY)

    has_close_permission = has_confirm_permission

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Offers the actions while the transfer is on its way and no booking of it waits, and to
        book it again after its deposit was reversed."""
        key = unquote(str(object_id))
        transfer: Any = self.get_queryset(request).filter(pk=key).first() if is_id(key) else None
        if transfer is None or transfer.closed_at or transfer.waits:
            return []
        if transfer.received and not (transfer.reversed and reference_again(transfer)):
            return []
        actions: list[Any] = super().get_actions_detail(request, object_id)
        if not transfer.reversed:
            return actions
        again = [one for one in actions if one.method.original_function_name == "confirm"]
        for one in again:
            one.description = _("Book again…")
        return again

    @action(
        description=lazy("Book the deposit…"),
        icon="payments",
        permissions=["confirm"],
        url_path="confirm",
    )
    def confirm(self, request: HttpRequest, object_id: str) -> HttpResponse:
        transfer = self._transfer(request, object_id)
        book = reverse("admin:accounts_account_book", args=[transfer.account_id])
        return HttpResponseRedirect(f"{book}?transfer={transfer.pk}")

    @action(
        description=lazy("It did not arrive…"),
        icon="close",
        permissions=["close"],
        url_path="close",
    )
    def close(self, request: HttpRequest, object_id: str) -> HttpResponse:
        transfer = self._transfer(request, object_id)
        if request.method != "POST":
            return page(
                self,
                request,
                "admin/confirm.html",
                obj=transfer,
                title=_("Close an announced transfer"),
                question=_("Close the transfer %(reference)s of %(account)s?")
                % {"reference": transfer.reference, "account": transfer.account},
                facts=[
                    _("The merchant reads that the transfer did not arrive. Nothing is booked.")
                ],
                button=_("Close"),
                danger=True,
                back=url_of(transfer),
            )
        if close_transfer(transfer=transfer, actor=staff_of(request)):
            messages.success(request, _("The transfer is closed."))
        else:
            messages.warning(request, _("This transfer was received or closed before."))
        return HttpResponseRedirect(url_of(transfer))

    def _transfer(self, request: HttpRequest, object_id: str) -> AnnouncedTransfer:
        transfer = self.get_object(request, unquote(object_id))
        if not isinstance(transfer, AnnouncedTransfer):
            raise Http404
        return transfer


class BankDetailsForm(TwoPeopleForm):
    """Bank details. Two people save the same ones, because merchants send their money there."""

    unsaved = lazy(
        "Not saved yet: merchants would send their money there. Ask another"
        " administrator to save the same details within a day."
    )

    def needs_two(self) -> str:
        if not self.has_changed():
            return ""
        details = _lines(self.cleaned_data["details"])
        stored = BankDetails.objects.filter(pk=self.instance.pk).first()
        # Of both texts, which are longer than a request. A request ends when the row has changed.
        digest = digest_of(stored and stored.details, details)
        words = details[:400].replace("\n", " / ")
        return f"bank details for {self.instance.currency}: {words}, {digest}"


def _lines(text: str) -> str:
    """The text without the spaces around its lines, which nobody sees."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


@admin.register(BankDetails)
class BankDetailsAdmin(TwoPeoplePage, BackOfficeAdmin):
    """The bank details on the wallet page of merchants, one row for each currency."""

    list_display = ("currency", "details")
    ordering = ("currency",)
    fields = ("currency", "details")
    help_texts = {
        "currency": CURRENCY_HELP,
        "details": lazy(
            "Merchants with a wallet in this currency read it: account holder, bank, IBAN,"
            " BIC, and what to write as the reference."
        ),
    }
    when_empty = lazy("No bank details yet. The wallet page asks merchants to contact support.")
    form = BankDetailsForm

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Two people change the details. Only a superuser, who acts alone, deletes them."""
        return bool(getattr(request.user, "is_superuser", False))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("currency",) if obj else ()
