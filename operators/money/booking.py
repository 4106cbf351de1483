"""Books deposits, payouts, adjustments and credits: a form, a confirmation, one booking.

The form's POST leads to the confirmation, which is a page of its own: its query carries the form,
signed for this person, so that nobody else's link asks for a booking. The browser's Back after a
booking opens that page again, and it leads on to the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.core import signing
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.form_fields import MoneyField, posted
from accounts.models import Account
from cases.selectors import left_to_credit, replacements_of
from core.api.errors import OrderRefused
from core.backoffice.staff import names_of_staff_who_may
from core.database.columns import (
    ACTOR_LENGTH,
    BOOKING_REFERENCE_LENGTH,
)
from core.inputs import InputProblem, is_id
from core.texts import inside_sentence, lazy, with_separators
from operators.frame.base import amount, link_to, page, staff_of, url_of
from orders.codes import names_a_code
from orders.models import Order
from orders.remedies.bookings import approval_reason, book_or_ask
from wallets.models import BookingApproval, EntryKind, LedgerEntry, Wallet
from wallets.selectors import find_booking, reversal_of
from wallets.services import AlreadyBooked, BadBooking
from wallets.transfers import announced_transfers, reference_again, with_reversals

MOVE_MONEY = "wallets.move_money"
APPROVE = "wallets.approve_booking"
SIGNED_FOR = timedelta(days=1)
ASK = lazy("Ask for approval")
CHANGE = "change"  # in the address: shows the form of a confirmation again


NEED_A_REFERENCE = {EntryKind.DEPOSIT, EntryKind.PAYOUT}
# For Alpine: marks the reference as required while the chosen kind needs one.
MARK_REFERENCE = (
    "const reference = $root.querySelector('[name=reference]');"
    f" reference.required = {[kind.value for kind in sorted(NEED_A_REFERENCE)]}"
    ".includes($el.value);"
    " reference.closest('.group').querySelector('label span').hidden = !reference.required"
)
THREE_DECIMALS = {"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"}


class ReasonField(forms.CharField):
    """The reason of a booking, which the merchant reads in the statement."""

    def __init__(self) -> None:
        super().__init__(
            label=lazy("For the merchant"),
            required=False,
            max_length=400,
            widget=UnfoldAdminTextInputWidget,
            help_text=lazy(
                "The merchant reads it in the statement. Leave it empty to say nothing."
            ),
        )


class MoneyForm(forms.Form):
    """An amount. `form_id` identifies this form, so sending the form twice books once.

    `present` is the sum that can be taken. An amount has the decimals of the currency, or as many
    as that sum: prices may have four.
    """

    amount = MoneyField(label=lazy("Amount"), widget=UnfoldAdminTextInputWidget)
    form_id = forms.UUIDField(widget=forms.HiddenInput, initial=uuid4)

    def __init__(self, *arguments: Any, present: Decimal, currency: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.present = present
        self.fields["amount"].widget.attrs |= {
            "suffix": currency,
            "class": f"{self.fields['amount'].widget.attrs['class']} pr-14",
        }
        self.decimals = max(3 if currency in THREE_DECIMALS else 2, _decimals(present))

    def clean_amount(self) -> Decimal:
        value: Decimal = self.cleaned_data["amount"]
        if _decimals(value) > self.decimals:
            raise forms.ValidationError(
                _("Enter at most %(decimals)s decimals.") % {"decimals": self.decimals}
            )
        return value

    def booking_reference(self) -> str:
        """The booking reference of a valid form."""
        return f"form:{self.cleaned_data['form_id']}"

    def taken(self) -> Decimal:
        """The amount that a valid form takes from the present sum."""
        value: Decimal = self.cleaned_data["amount"]
        return value


class BookingForm(MoneyForm):
    """A booking on a wallet."""

    kind = forms.ChoiceField(
        label=lazy("Kind"),
        choices=[
            (EntryKind.DEPOSIT, lazy("Deposit: the merchant paid money in")),
            (EntryKind.PAYOUT, lazy("Payout: we paid money out to the merchant")),
            (
                EntryKind.ADJUSTMENT,
                lazy("Adjustment: a correction that concerns no order, up or down"),
            ),
        ],
        widget=UnfoldAdminSelectWidget(attrs={"x-on:change": MARK_REFERENCE}),
        help_text=lazy("To pay back an order, open the order and choose Credit."),
    )
    reason = forms.CharField(
        label=lazy("Reason"),
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy(
            "Where the money came from, or why you correct the balance. Only staff read it."
        ),
    )
    for_merchant = ReasonField()
    reference = forms.CharField(
        label=lazy("Reference"),
        required=False,
        max_length=BOOKING_REFERENCE_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy(
            "The bank's reference of a deposit or payout. The ledger accepts it only once; case,"
            " spaces and punctuation make no difference."
        ),
    )
    field_order = ("kind", "amount", "reference", "reason", "for_merchant")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["amount"].help_text = _("Only an adjustment may be negative.")
        reference = self.fields["reference"]
        reference.required = self["kind"].value() != EntryKind.ADJUSTMENT
        reference.error_messages["required"] = _("Enter the bank's reference of the transfer.")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        value = cleaned.get("amount")
        if value is not None and (
            value == 0 or (cleaned.get("kind") != EntryKind.ADJUSTMENT and value < 0)
        ):
            self.add_error(
                "amount",
                _(
                    "Enter more than zero for a deposit or payout, or anything but zero for an"
                    " adjustment."
                ),
            )
        return cleaned

    def booking_reference(self) -> str:
        return self.cleaned_data["reference"] or super().booking_reference()

    def change(self) -> Decimal:
        """The sum that a valid form adds to the balance."""
        value: Decimal = self.cleaned_data["amount"]
        return -value if self.cleaned_data["kind"] == EntryKind.PAYOUT else value

    def taken(self) -> Decimal:
        return -self.change()


class CreditForm(MoneyForm):
    """A credit of an order."""

    note = forms.CharField(
        label=lazy("For the merchant"),
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("Why the order is credited. The merchant reads it in the statement."),
    )
    field_order = ("amount", "note")

    def clean_amount(self) -> Decimal:
        value = super().clean_amount()
        if value <= 0:
            raise forms.ValidationError(_("Enter more than zero."))
        return value


class ReversalForm(forms.Form):
    """Why an entry is reversed."""

    reason = forms.CharField(
        label=lazy("Reason"),
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("Only staff read it."),
    )
    for_merchant = ReasonField()

    def __init__(self, data: Any, *, kind: str) -> None:
        super().__init__(data)
        if kind == EntryKind.CREDIT:
            self.fields["reason"].help_text = _("The merchant reads it in the statement.")


def _decimals(value: Decimal) -> int:
    return max(0, -int(value.normalize().as_tuple().exponent))


def book(
    admin: Any, request: HttpRequest, wallet: Wallet, *, about: Account | Wallet
) -> HttpResponse:
    """Shows the form, then a confirmation with the balance before and after, then books.

    Leads back to the page of `about`.
    """
    currency = wallet.account.currency
    form = BookingForm(
        _form_data(request),
        present=wallet.balance,
        currency=currency,
        initial=_typed_before(request) or _initial_of_transfer(request, wallet),
    )
    balance = amount(wallet.balance, currency)
    too_much = _("The balance is %(balance)s, and it cannot become less than zero.") % {
        "balance": balance
    }
    if form.is_valid() and "confirmed" not in request.POST:
        _refuse_used_reference(form, wallet)
    if not _can_be_booked(request, form, otherwise=too_much):
        return page(
            admin,
            request,
            "admin/confirm.html",
            obj=about,
            title=_("Book money"),
            form=form,
            question=_("Book a deposit, a payout or an adjustment for %(account)s.")
            % {"account": wallet.account},
            facts=[_("The balance is %(balance)s.") % {"balance": balance}],
            button=_("Continue"),
            back=url_of(about),
        )
    data = form.cleaned_data
    booking = BookingApproval(
        wallet=wallet,
        kind=data["kind"],
        amount=form.change(),
        note=data["reason"],
        reason=data["for_merchant"] or None,
        booking_reference=form.booking_reference(),
        asked_by=staff_of(request),
    )
    if "confirmed" not in request.POST:
        if answer := _elsewhere(request, form, about, wallet=wallet, amount=form.change()):
            return answer
        waits = _wait(booking)
        return page(
            admin,
            request,
            "admin/book_confirm.html",
            obj=about,
            title=_("Book money"),
            data=data,
            question=_("Book this %(kind)s for %(account)s?")
            % {"kind": inside_sentence(EntryKind(data["kind"]).label), "account": wallet.account},
            facts=[
                _("Amount: %(amount)s") % {"amount": amount(form.change(), currency)},
                _("Balance now: %(balance)s") % {"balance": balance},
                _("Balance after: %(balance)s")
                % {"balance": amount(wallet.balance + form.change(), currency)},
                _("Reason: %(reason)s") % {"reason": data["reason"]},
                *(
                    [_("For the merchant: %(reason)s") % {"reason": booking.reason}]
                    if booking.reason
                    else []
                ),
                *(
                    [_("Reference: %(reference)s") % {"reference": data["reference"]}]
                    if data["reference"]
                    else []
                ),
                *waits,
            ],
            button=ASK
            if waits
            else _("Confirm %(kind)s") % {"kind": inside_sentence(EntryKind(data["kind"]).label)},
            danger=form.change() < 0,
            back=url_of(about),
            back_to_form=_form_again(request),
        )
    return _book_and_report(request, booking, about=about)


def replaced_codes(order: Order) -> list[str]:
    """A sentence for each code of an order that was replaced, with a link."""
    text = _("Code {code} was replaced by order {order}.")
    return [
        format_html(text, code=place, order=link_to(one))
        for place, one in replacements_of(order).items()
    ]


def credit(admin: Any, request: HttpRequest, order: Order) -> HttpResponse:
    """Shows the form, then a confirmation, then credits the order."""
    left = left_to_credit(order)
    form = CreditForm(
        _form_data(request),
        present=left,
        currency=order.currency,
        initial=_typed_before(request) or {"amount": request.GET.get("amount") or left},
    )
    too_much = _("Only %(left)s is left to credit.") % {"left": amount(left, order.currency)}
    facts = [
        _("The order cost %(price)s.") % {"price": amount(order.total_price, order.currency)},
        *replaced_codes(order),
        _("Left to credit: %(left)s.") % {"left": amount(left, order.currency)},
    ]
    is_ready = _can_be_booked(request, form, otherwise=too_much)
    # Before the confirmation, whose address has the note.
    if is_ready and names_a_code(form.cleaned_data["note"], order_id=order.pk):
        form.add_error("note", _("This note has a code of the order in it. Notes are kept."))
    if not is_ready or not form.is_valid():
        return page(
            admin,
            request,
            "admin/confirm.html",
            obj=order,
            title=_("Credit order"),
            form=form,
            question=_("Credit a part or all of the price of order %(reference)s.")
            % {"reference": order.reference},
            facts=facts,
            button=_("Continue"),
            back=url_of(order),
        )
    data = form.cleaned_data
    booking = BookingApproval(
        wallet=Wallet.objects.select_related("account").get(pk=order.client.account_id),
        kind=EntryKind.CREDIT,
        amount=data["amount"],
        order_reference=order.reference,
        note=data["note"],
        booking_reference=form.booking_reference(),
        asked_by=staff_of(request),
    )
    if "confirmed" not in request.POST:
        entry = {"order_reference": order.reference, "amount": data["amount"]}
        if answer := _elsewhere(request, form, order, **entry):
            return answer
        waits = _wait(booking)
        return page(
            admin,
            request,
            "admin/book_confirm.html",
            obj=order,
            title=_("Credit order"),
            data=data,
            question=_("Credit order %(reference)s?") % {"reference": order.reference},
            facts=[
                *facts,
                _("Credit: %(amount)s") % {"amount": amount(data["amount"], order.currency)},
                _("Note for the merchant: %(note)s") % {"note": data["note"]},
                *waits,
            ],
            button=ASK if waits else pgettext("button", "Credit"),
            back=url_of(order),
            back_to_form=_form_again(request),
        )
    return _book_and_report(request, booking, about=order)


def reverse(admin: Any, request: HttpRequest, entry: LedgerEntry) -> HttpResponse:
    """Asks why, then books the opposite of the entry."""
    account = entry.wallet.account
    booking = BookingApproval(
        wallet=entry.wallet,
        kind=entry.kind,
        amount=-entry.amount,
        order_reference=entry.order_reference,
        booking_reference=entry.reversal_reference,
        asked_by=staff_of(request),
    )
    form = ReversalForm(posted(request), kind=entry.kind)
    if form.is_valid():
        booking.note = form.cleaned_data["reason"]
        booking.reason = form.cleaned_data["for_merchant"] or None
        return _book_and_report(request, booking, about=entry)
    after = entry.wallet.balance - entry.amount
    waits = _wait(booking)
    return page(
        admin,
        request,
        "admin/confirm.html",
        obj=entry,
        title=_("Reverse an entry"),
        form=form,
        question=_("Reverse this %(kind)s of %(amount)s for %(account)s?")
        % {
            "kind": inside_sentence(entry.get_kind_display()),
            "amount": amount(entry.amount, account.currency),
            "account": account,
        },
        facts=[
            _("Balance now: %(balance)s")
            % {"balance": amount(entry.wallet.balance, account.currency)},
            _("Balance after: %(balance)s") % {"balance": amount(after, account.currency)},
            _(
                "The entry stays in the ledger, and its opposite is added. A reversal cannot be"
                " reversed."
            ),
            *waits,
        ],
        button=ASK if waits else _("Reverse"),
        danger=True,
        back=url_of(entry),
    )


def _wait(booking: BookingApproval) -> list[str]:
    """Says on the confirmation that the booking will wait, if it will."""
    reason = approval_reason(booking)
    if not reason:
        return []
    return [
        _("This is %(reason)s. Nothing is booked until another member of staff approves it.")
        % {"reason": reason}
    ]


def _can_be_booked(request: HttpRequest, form: MoneyForm, *, otherwise: str) -> bool:
    """Whether the form is valid and takes at most what is there; if it takes more, its error is
    `otherwise`.

    What a booking took is no longer there, so a form that was booked may take more. A confirmed
    form is for the service to refuse.
    """
    if (
        form.is_valid()
        and "confirmed" not in request.POST
        and form.taken() > form.present
        and find_booking(form.booking_reference()) is None
    ):
        form.add_error("amount", otherwise)
    return form.is_valid()


def _initial_of_transfer(request: HttpRequest, wallet: Wallet) -> dict[str, Any]:
    """The initial values of a form that confirms an announced transfer of the account."""
    key = request.GET.get("transfer", "")
    transfers = with_reversals(announced_transfers()).filter(account=wallet.pk, closed_at=None)
    transfer: Any = transfers.filter(pk=key).first() if is_id(key) else None
    if transfer is None:
        return {}
    reference = transfer.reference
    if transfer.received:
        reference = reference_again(transfer) if transfer.reversed else ""
    if not reference:
        return {}
    return {
        "kind": EntryKind.DEPOSIT,
        "amount": transfer.amount,
        "reference": reference,
        "reason": f"Transfer announced by {transfer.announced_by}"[:400],
    }


def _refuse_used_reference(form: BookingForm, wallet: Wallet) -> None:
    """Adds an error to a valid form whose reference belongs to another booking."""
    first = find_booking(form.booking_reference())
    if first is None:
        return
    text = _(
        "This reference was used before: %(reference)s, a %(kind)s of %(amount)s for %(account)s."
    )
    if reversal_of(first) is not None:
        text = _(
            "This reference was used before: %(reference)s, a %(kind)s of %(amount)s for"
            " %(account)s, which was reversed. The ledger accepts a reference once. Add a word to"
            " book the money again, such as “%(reference)s again”."
        )
    elif (first.wallet_id, first.amount) == (wallet.pk, form.change()):
        return
    form.add_error(
        "reference",
        text
        % {
            "reference": first.booking_reference,
            "kind": inside_sentence(first.get_kind_display()),
            "amount": amount(first.amount, first.wallet.account.currency),
            "account": first.wallet.account,
        },
    )


def _form_data(request: HttpRequest) -> Mapping[str, Any] | None:
    """The form's data: of a POST, or in the query of the confirmation."""
    if request.method == "POST" or CHANGE in request.GET:
        return posted(request)
    return _signed(request)


def _form_again(request: HttpRequest) -> str:
    """The address of the form with what was typed before this confirmation."""
    return f"{request.path}?{urlencode({'asked': request.GET['asked'], CHANGE: 1})}"


def _typed_before(request: HttpRequest) -> dict[str, str]:
    """The values typed before the confirmation that the reader left to change them."""
    typed = (_signed(request) or {}) if CHANGE in request.GET else {}
    if "amount" in typed:
        typed["amount"] = with_separators(typed["amount"])
    return typed


def _signed(request: HttpRequest) -> dict[str, str] | None:
    """The form in the query of a confirmation; None without one that was signed for the reader."""
    if "asked" not in request.GET:
        return None
    try:
        data: dict[str, str] = signing.loads(
            request.GET["asked"], salt=_salt(request), max_age=SIGNED_FOR
        )
    except signing.BadSignature:  # of another person, of another page, or too old
        return None
    return data


def _salt(request: HttpRequest) -> str:
    return f"operators.booking {staff_of(request).pk} {request.path}"


def _elsewhere(
    request: HttpRequest, form: MoneyForm, about: Model, **entry: Any
) -> HttpResponse | None:
    """Leads a POST to the confirmation, and the confirmation of a made booking to its result.

    `entry` is what the booking's ledger entry would contain. None: ask for the confirmation.
    """
    if request.method == "POST":
        data = {name: str(value) for name, value in form.cleaned_data.items()}
        signed = signing.dumps(data, salt=_salt(request))
        return HttpResponseRedirect(f"{request.path}?{urlencode({'asked': signed})}")
    reference = form.booking_reference()
    if LedgerEntry.objects.filter(booking_reference=reference, **entry).exists():
        messages.info(request, _("This booking was already made. Nothing was booked again."))
        return HttpResponseRedirect(url_of(about))
    return None


def _book_and_report(
    request: HttpRequest, booking: BookingApproval, *, about: Model
) -> HttpResponse:
    """Books or asks for approval, and leads back to the page of `about` with the result."""
    try:
        made = book_or_ask(booking=booking)
    except AlreadyBooked:
        messages.warning(request, _("This was booked already. Nothing was booked now."))
    except BadBooking as error:
        messages.error(request, _("Nothing was booked: %(error)s.") % {"error": error})
    except OrderRefused as refused:
        messages.error(
            request, _("Nothing was booked: %(message)s") % {"message": _(refused.message)}
        )
    except InputProblem as problem:
        messages.error(request, _("Nothing was booked. %(problem)s") % {"problem": problem})
    else:
        if isinstance(made, BookingApproval):
            people = names_of_staff_who_may(APPROVE, staff_of(request).get_username())
            messages.warning(
                request,
                _("Nothing is booked yet: this is above your limit. Another person must approve it")
                + (f": {people}." if people else "."),
            )
            return HttpResponseRedirect(url_of(made))
        messages.success(request, describe_booked(made, booking.wallet.account))
    return HttpResponseRedirect(url_of(about))


def describe_booked(entry: LedgerEntry, account: Account) -> str:
    """A sentence that says what was booked or reversed, for whom, and the balance."""
    text = _("%(kind)s of %(amount)s booked for %(account)s. The balance is now %(balance)s.")
    booked = entry.amount
    if entry.reversed_entry is not None:
        text = _("%(kind)s of %(amount)s reversed for %(account)s. The balance is now %(balance)s.")
        booked = -entry.amount
    return text % {
        "kind": entry.get_kind_display(),
        "amount": amount(booked, account.currency),
        "account": account,
        "balance": amount(entry.balance_after, account.currency),
    }


def actor_of(request: HttpRequest) -> str:
    """The signed-in person, as the ledger names them."""
    return f"admin:{staff_of(request).get_username()}"[:ACTOR_LENGTH]
