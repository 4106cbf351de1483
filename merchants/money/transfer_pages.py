"""Announcing a bank transfer, and withdrawing it."""

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.form_fields import PositiveMoneyField, posted
from accounts.models import Account
from core.database.columns import BOOKING_REFERENCE_LENGTH
from core.files.table_files import Word
from core.formats import local_amount, local_number
from core.inputs import InputProblem
from core.texts import gettext_noop, lazy, with_separators
from merchants.frame.exports import File, back_to, file_view, table_file
from merchants.frame.pages import confirm
from merchants.models import Role
from merchants.people.access import Member, member_page
from wallets.transfers import (
    announce_transfer,
    announced_transfers,
    bank_decimals,
    close_transfer,
)

# The rupiah and others of its kind need ten digits. The sum on the overview stays readable.
LARGEST = Decimal(10) ** 10


class TransferForm(forms.Form):
    """The amount and the reference of a bank transfer."""

    amount = PositiveMoneyField()
    reference = forms.CharField(
        label=lazy("Reference"),
        max_length=BOOKING_REFERENCE_LENGTH,
        help_text=lazy(
            "As your bank shows it to us, such as the number of the transfer. Case, spaces"
            " and punctuation make no difference."
        ),
    )

    def __init__(self, *arguments: Any, currency: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.currency = currency
        self.fields["amount"].label = _("Amount in %(currency)s") % {"currency": currency}

    def clean_amount(self) -> Decimal:
        amount: Decimal = self.cleaned_data["amount"]
        if amount >= LARGEST:
            raise forms.ValidationError(
                _("A transfer must be less than %(largest)s %(currency)s. Check the amount.")
                % {"largest": local_number(LARGEST), "currency": self.currency}
            )
        decimals = bank_decimals(self.currency)
        if amount != round(amount, decimals):
            raise forms.ValidationError(
                _(
                    "Banks send %(currency)s with at most %(decimals)s decimals. Enter the amount"
                    " that you sent, such as %(example)s."
                )
                % {
                    "currency": self.currency,
                    "decimals": decimals,
                    "example": with_separators(f"{1500.5:.{decimals}f}"),
                }
            )
        return amount


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER)
def announce(request: HttpRequest, member: Member) -> HttpResponse:
    """Says that a transfer is on its way."""
    account = member.account
    form = TransferForm(posted(request), currency=account.currency)
    if form.is_valid():
        try:
            announce_transfer(account=account, actor=member.user, **form.cleaned_data)
        except InputProblem as problem:
            form.add_error("reference", str(problem))
        else:
            messages.success(request, _("The transfer is announced. We book it when it arrives."))
            return _redirect_to_wallet()
    return confirm(
        request,
        member,
        title=_("Announce a transfer"),
        question=_("Which transfer have you sent?"),
        facts=[
            _(
                "Announcing a transfer adds no money. Our staff book it once our bank has it. The"
                " owners then get an email."
            )
        ],
        form=form,
        button=_("Announce the transfer"),
        back=reverse("merchants:wallet"),
    )


@file_view(back_to("merchants:wallet"))
def export(request: HttpRequest, account: Account, format: str) -> File:
    """All announced transfers of the account as a file."""
    transfers = announced_transfers().filter(account=account).order_by("-pk")
    return table_file(
        "transfers",
        format,
        columns=("announced", "reference", "amount", "currency", "state"),
        rows=(
            [one.announced_at, one.reference, one.amount, account.currency, _state(one)]
            for one in transfers.select_related("closed_by")
        ),
        mark=False,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER)
def withdraw(request: HttpRequest, member: Member, transfer_id: int) -> HttpResponse:
    """Withdraws a transfer that was not sent."""
    transfer = get_object_or_404(
        announced_transfers().filter(account=member.account), pk=transfer_id
    )
    if request.method == "POST":
        if close_transfer(transfer=transfer, actor=member.user):
            messages.success(request, _("The transfer is withdrawn."))
        else:
            messages.warning(request, _("This transfer was received or closed before."))
        return _redirect_to_wallet()
    return confirm(
        request,
        member,
        title=_("Withdraw a transfer"),
        question=_("Withdraw the transfer %(reference)s of %(amount)s %(currency)s?")
        % {
            "reference": transfer.reference,
            "amount": local_amount(transfer.amount),
            "currency": member.account.currency,
        },
        facts=[_("If you have sent it, we still book it when it arrives.")],
        button=_("Withdraw"),
        danger=True,
        back=reverse("merchants:wallet"),
    )


def _state(transfer: Any) -> Word:
    """The state in the words of the page."""
    if transfer.received:
        return Word(gettext_noop("received"))
    if transfer.closed_by is None:
        return Word(gettext_noop("on its way"))
    if transfer.closed_by.is_staff:
        return Word(gettext_noop("did not arrive"))
    return Word(gettext_noop("withdrawn"))


def _redirect_to_wallet() -> HttpResponse:
    return HttpResponseRedirect(reverse("merchants:wallet"))
