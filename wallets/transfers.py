"""Bank transfers that merchants announce, and where they send them.

Nobody marks a transfer as received: it is, as soon as a deposit of the account has its reference.
The ledger accepts a reference once, so a transfer is booked once.
"""

from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import CharField, Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Cast, Concat
from django.db.models.lookups import Exact
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from core.database.columns import BOOKING_REFERENCE_LENGTH
from core.inputs import InputProblem, clean_text
from core.json_output import money_text
from wallets.approvals import waiting_approvals
from wallets.models import (
    REVERSAL_OF,
    AnnouncedTransfer,
    BankDetails,
    BookingApproval,
    BookingKey,
    EntryKind,
    LedgerEntry,
)
from wallets.selectors import booking_key, find_booking, newest_with

MAX_OPEN = 20  # of one account
# Currencies in which a bank sends no decimals, and those with three (ISO 4217).
NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"
AGAIN = " again"  # the end of the booking reference of a deposit that was reversed


def announced_transfers() -> QuerySet[AnnouncedTransfer]:
    """The announced transfers, with `received`: whether the deposit is booked; and `received_at`:
    when it was."""
    deposits = _deposits(OuterRef("account"), OuterRef("reference"))
    return AnnouncedTransfer.objects.annotate(
        received=Exists(deposits), received_at=Subquery(deposits.values("entry__created_at"))
    )


def find_transfers(reference: str, *, account: Account) -> QuerySet[AnnouncedTransfer]:
    """The announced transfers of the account with this text in their reference (`newest_with`)."""
    transfers = announced_transfers().select_related("closed_by")
    return newest_with(reference, transfers, "reference", of=Q(account=account))


def open_transfers() -> QuerySet[AnnouncedTransfer]:
    """The announced transfers that are on their way."""
    return _not_seen().filter(received=False)


def newly_received() -> QuerySet[AnnouncedTransfer]:
    """The transfers that were received since `seen_received` was last set. `open_transfers` looks
    up their deposits until it is."""
    return _not_seen().filter(received=True)


def _not_seen() -> QuerySet[Any]:
    """The transfers that are on their way, or were received lately."""
    return announced_transfers().filter(closed_at=None, seen_received=False)


def with_approvals(transfers: QuerySet[AnnouncedTransfer]) -> QuerySet[AnnouncedTransfer]:
    """Adds `waits`: whether the deposit waits for another member of staff."""
    waiting = _waiting_deposits(OuterRef("account"), OuterRef("reference"))
    return transfers.annotate(waits=Exists(waiting))


def with_reversals(transfers: QuerySet[AnnouncedTransfer]) -> QuerySet[AnnouncedTransfer]:
    """Adds `reversed`: whether the deposit was booked and reversed."""
    reference = Concat(Value(REVERSAL_OF), Cast(OuterRef("entry_id"), CharField()))
    reversal = LedgerEntry.objects.filter(booking_reference=reference)
    deposits = _deposits(OuterRef("account"), OuterRef("reference"))
    return transfers.annotate(reversed=Exists(deposits.filter(Exists(reversal))))


def deposit_of(transfer: AnnouncedTransfer) -> LedgerEntry | None:
    """The ledger entry of the deposit; None until it is booked. It may be reversed."""
    found = _deposits(transfer.account_id, Value(transfer.reference)).select_related("entry")
    key = found.first()
    return None if key is None else key.entry


def booking_to_approve(transfer: AnnouncedTransfer) -> BookingApproval | None:
    """The deposit of the transfer that waits for another member of staff."""
    return _waiting_deposits(transfer.account_id, Value(transfer.reference)).first()


def reference_again(transfer: AnnouncedTransfer) -> str:
    """The booking reference that books a reversed deposit again; empty if it is booked, or waits,
    or is that of another transfer.

    It is the same in each language: two people who read two languages book it once.
    """
    reference = f"{transfer.reference[: BOOKING_REFERENCE_LENGTH - len(AGAIN)]}{AGAIN}"
    waits = _waiting_deposits(transfer.account_id, Value(reference)).exists()
    same = Exact(booking_key(F("reference")), booking_key(Value(reference)))
    others = AnnouncedTransfer.objects.filter(same, account=transfer.account_id)
    return "" if waits or others.exists() or find_booking(reference) else reference


def _deposits(account: Any, reference: Any) -> QuerySet[BookingKey]:
    return BookingKey.objects.filter(
        key=booking_key(reference), entry__wallet=account, entry__kind=EntryKind.DEPOSIT
    )


def _waiting_deposits(account: Any, reference: Any) -> QuerySet[BookingApproval]:
    waiting = waiting_approvals().filter(wallet=account, kind=EntryKind.DEPOSIT)
    return waiting.filter(Exact(booking_key(F("booking_reference")), booking_key(reference)))


def bank_details_of(account: Account) -> str:
    """The bank details for transfers of the account; empty if none were entered."""
    details = BankDetails.objects.filter(currency=account.currency)
    return details.values_list("details", flat=True).first() or ""


def bank_decimals(currency: str) -> int:
    """The most decimals of an amount that a bank sends in this currency."""
    return 0 if currency in NO_DECIMALS else 3 if currency in THREE_DECIMALS else 2


@transaction.atomic
def announce_transfer(
    *, account: Account, amount: Decimal, reference: str, actor: User
) -> AnnouncedTransfer:
    """Raises InputProblem for a reference that the account has booked or announced already, or if
    MAX_OPEN transfers are on their way.

    A reference that is booked for another account is not refused: that would reveal the booking.
    Staff see the clash.
    """
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)  # serialises announcements
    reference = clean_text(
        reference, what=gettext_noop("reference"), max_length=BOOKING_REFERENCE_LENGTH
    )
    booked = find_booking(reference)
    if booked is not None and booked.wallet_id == account.pk:
        raise InputProblem(_("A payment with this reference is booked already."))
    on_their_way = open_transfers().filter(account=account)
    same = Exact(booking_key(F("reference")), booking_key(Value(reference)))
    if on_their_way.filter(same).exists():  # one deposit would end both
        raise InputProblem(_("A transfer with this reference is announced already."))
    if on_their_way.count() >= MAX_OPEN:
        raise InputProblem(
            _("At most %(max_open)s transfers can be on their way. Withdraw one first.")
            % {"max_open": MAX_OPEN}
        )
    transfer = AnnouncedTransfer.objects.create(
        account=account, amount=amount, reference=reference, announced_by=actor
    )
    _record(transfer, actor=actor, action=AuditAction.TRANSFER_ANNOUNCED)
    return transfer


@transaction.atomic
def close_transfer(*, transfer: AnnouncedTransfer, actor: User) -> bool:
    """Ends a transfer that did not arrive. Returns False if it was received or closed before."""
    closed = open_transfers().filter(pk=transfer.pk)
    if not closed.update(closed_by=actor, closed_at=timezone.now()):
        return False
    _record(transfer, actor=actor, action=AuditAction.TRANSFER_CLOSED)
    return True


def _record(transfer: AnnouncedTransfer, *, actor: User, action: AuditAction) -> None:
    record_action(
        actor=actor,
        action=action,
        on=transfer,
        reference=transfer.reference,
        changes={
            "account": (None, transfer.account.name),
            "amount": (None, f"{money_text(transfer.amount)} {transfer.account.currency}"),
        },
    )
