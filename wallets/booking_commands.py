"""Shared by the commands that book money: arguments, and one entry per booking reference."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account
from core.api.errors import OrderRefused, RefusalReason
from core.database.columns import MONEY_DECIMALS, NOTE_LENGTH
from core.inputs import InputProblem, clean_text, find_row
from core.texts import lazy
from wallets.models import LedgerEntry
from wallets.services import AlreadyBooked, BadBooking, adjust, deposit, pay_out

REFUSED = {
    RefusalReason.INSUFFICIENT_BALANCE: lazy("The balance would fall below zero."),
    RefusalReason.CLIENT_WITHOUT_WALLET: lazy("This account has no wallet."),
}


def add_booking_arguments(
    parser: CommandParser, *, note: str = "the reason, kept in the ledger"
) -> None:
    """Adds `--reference` and `--note`. `note` says what the note is for."""
    parser.add_argument(
        "--reference",
        required=True,
        metavar="TEXT",
        help="identifies the booking, such as the bank's reference; the ledger accepts it once",
    )
    parser.add_argument("--note", default="", metavar="TEXT", help=note)


def book_deposit(
    *, account_id: int, amount: Decimal, booking_reference: str, actor: str, note: str = ""
) -> dict[str, Any]:
    """Books a deposit, or an adjustment if the amount is negative. Returns what `book_once` does.

    `amount` is in units of the account's currency. Raises InputProblem.
    """
    account = find_row(Account.objects.all(), account_id)
    refuse_unbookable(amount)
    book = adjust if amount < 0 else deposit
    return book_once(
        lambda: book(
            account=account,
            amount=amount,
            actor=actor,
            note=clean_note(note),
            booking_reference=booking_reference,
        )
    )


def book_payout(
    *, account_id: int, amount: Decimal, booking_reference: str, actor: str, note: str = ""
) -> dict[str, Any]:
    """Books a payout; `amount` is positive. Returns what `book_once` does. Raises InputProblem."""
    account = find_row(Account.objects.all(), account_id)
    refuse_unbookable(amount)
    return book_once(
        lambda: pay_out(
            account=account,
            amount=amount,
            actor=actor,
            note=clean_note(note),
            booking_reference=booking_reference,
        )
    )


def book_once(book: Callable[[], LedgerEntry]) -> dict[str, Any]:
    """Books, and returns what a command prints of the entry. A repeated booking returns the first
    one, with `already_booked`. Raises InputProblem."""
    try:
        return _show(book(), already_booked=False)
    except AlreadyBooked as repeated:
        return _show(repeated.entry, already_booked=True)
    except BadBooking as error:
        raise InputProblem(_("Nothing was booked: %(error)s.") % {"error": error}) from None
    except OrderRefused as refused:
        raise InputProblem(
            _("Nothing was booked. %(refused)s") % {"refused": REFUSED[refused.reason]}
        ) from None


def clean_note(note: str) -> str:
    """The note, which may be empty. Raises InputProblem."""
    return clean_text(note, what=gettext_noop("note"), max_length=NOTE_LENGTH) if note else ""


def refuse_unbookable(amount: Decimal) -> None:
    """Raises InputProblem for an amount at which decimal arithmetic would overflow or round."""
    if not amount.is_finite() or abs(amount.adjusted()) > 100:
        raise InputProblem(_("The amount is not a usable number."))
    if len(f"{amount:f}".partition(".")[2].rstrip("0")) > MONEY_DECIMALS:
        raise InputProblem(
            _("The amount has more than %(money_decimals)s decimals.")
            % {"money_decimals": MONEY_DECIMALS}
        )


def _show(entry: LedgerEntry, *, already_booked: bool) -> dict[str, Any]:
    return {
        "account_id": entry.wallet_id,
        "entry_id": entry.pk,
        "kind": entry.kind,
        "amount": entry.amount,
        "balance_after": entry.balance_after,
        "booking_reference": entry.booking_reference,
        "already_booked": already_booked,
    }
