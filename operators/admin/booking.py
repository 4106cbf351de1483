"""Books deposits and adjustments: a form, a confirmation with the new balance, one booking."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.form_fields import posted
from config.api.errors import OrderRefused
from config.database.columns import ACTOR_LENGTH, MONEY_DECIMALS, MONEY_DIGITS
from operators.admin.base import amount, page, staff_of, url_of
from wallets.models import EntryKind, LedgerEntry, Wallet
from wallets.services import AlreadyBooked, BadAmount, adjust, deposit

MOVE_MONEY = "wallets.move_money"


class BookingForm(forms.Form):
    """What to book. `booking` identifies this form, so sending the form twice books once."""

    kind = forms.ChoiceField(
        choices=[
            (EntryKind.DEPOSIT, "Deposit: the merchant paid money in"),
            (EntryKind.ADJUSTMENT, "Adjustment: a correction, up or down"),
        ],
        widget=UnfoldAdminSelectWidget,
    )
    amount = forms.DecimalField(
        max_digits=MONEY_DIGITS,
        decimal_places=MONEY_DECIMALS,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="An adjustment may be negative.",
    )
    reason = forms.CharField(
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text="The bank reference, or why you correct the balance. The ledger keeps it.",
    )
    booking = forms.UUIDField(widget=forms.HiddenInput, initial=uuid4)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        value = cleaned.get("amount")
        if value is not None and (
            value == 0 or (cleaned.get("kind") == EntryKind.DEPOSIT and value < 0)
        ):
            self.add_error(
                "amount",
                "Enter more than zero for a deposit, or anything but zero for an adjustment.",
            )
        return cleaned


def book(admin: Any, request: HttpRequest, wallet: Wallet) -> HttpResponse:
    """Shows the form, then a confirmation with the balance before and after, then books."""
    form = BookingForm(posted(request))
    if not form.is_valid():
        return _ask(admin, request, wallet, form)
    if "confirmed" not in request.POST:
        return _confirm(admin, request, wallet, form.cleaned_data)
    try:
        entry = _post(request, wallet, form.cleaned_data)
    except (AlreadyBooked, IntegrityError):
        messages.warning(request, "This form was booked already. Nothing was booked now.")
    except BadAmount as error:
        messages.error(request, f"Nothing was booked: {error}.")
    except OrderRefused as refused:
        messages.error(request, f"Nothing was booked: {refused.message}")
    else:
        after = amount(entry.balance_after, wallet.account.currency)
        messages.success(request, f"Booked. The balance is now {after}.")
    return HttpResponseRedirect(url_of(wallet))


def _post(request: HttpRequest, wallet: Wallet, asked: dict[str, Any]) -> LedgerEntry:
    carry_out = deposit if asked["kind"] == EntryKind.DEPOSIT else adjust
    return carry_out(
        account=wallet.account,
        amount=asked["amount"],
        actor=f"admin:{staff_of(request).get_username()}"[:ACTOR_LENGTH],
        note=asked["reason"],
        booking=asked["booking"],
    )


def _ask(admin: Any, request: HttpRequest, wallet: Wallet, form: BookingForm) -> HttpResponse:
    return page(
        admin,
        request,
        "admin/confirm.html",
        obj=wallet,
        title="Book money",
        form=form,
        question=f"Book a deposit or an adjustment for {wallet.account}.",
        facts=[f"The balance is {amount(wallet.balance, wallet.account.currency)}."],
        button="Continue",
        back=url_of(wallet),
    )


def _confirm(
    admin: Any, request: HttpRequest, wallet: Wallet, asked: dict[str, Any]
) -> HttpResponse:
    currency = wallet.account.currency
    after: Decimal = wallet.balance + asked["amount"]
    return page(
        admin,
        request,
        "admin/book_confirm.html",
        obj=wallet,
        title="Book money",
        asked=asked,
        question=f"Book this {EntryKind(asked['kind']).label.lower()} for {wallet.account}?",
        facts=[
            f"Amount: {amount(asked['amount'], currency)}",
            f"Balance now: {amount(wallet.balance, currency)}",
            f"Balance after: {amount(after, currency)}",
            f"Reason: {asked['reason']}",
        ],
        button="Book",
        danger=asked["amount"] < 0,
        back=url_of(wallet),
    )
