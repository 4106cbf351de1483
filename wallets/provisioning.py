"""Creating accounts and booking deposits from the shell."""

from decimal import Decimal

from django.db import transaction

from accounts.models import Account
from config.api.errors import OrderRefused
from config.database.columns import MONEY_DECIMALS, NAME_LENGTH, NOTE_LENGTH
from config.inputs import InputProblem, clean_text, find_row
from wallets.models import LedgerEntry, Wallet
from wallets.services import BadAmount, adjust, deposit, open_wallet


@transaction.atomic
def create_account(
    *, name: str, currency: str, balance: Decimal, with_wallet: bool, actor: str
) -> Account:
    """Creates an account. `balance`, in units of the currency, is booked as a deposit.

    Raises InputProblem or ValidationError.
    """
    account = Account(name=clean_text(name, what="name", max_length=NAME_LENGTH), currency=currency)
    account.full_clean()
    account.save()
    if with_wallet:
        open_wallet(account=account)
    if balance or not balance.is_finite():
        if not with_wallet:
            raise InputProblem("An account without a wallet cannot have a balance.")
        book_deposit(account_id=account.pk, amount=balance, actor=actor, note="opening balance")
    return account


def book_deposit(*, account_id: int, amount: Decimal, actor: str, note: str = "") -> LedgerEntry:
    """Books a deposit, or an adjustment if the amount is negative. Raises InputProblem."""
    account = find_row(Account.objects.all(), account_id)
    if not Wallet.objects.filter(account=account).exists():
        raise InputProblem(f"Account {account.pk} has no wallet.")
    if note:
        note = clean_text(note, what="note", max_length=NOTE_LENGTH)
    _refuse_unbookable(amount)
    book = adjust if amount < 0 else deposit
    try:
        return book(account=account, amount=amount, actor=actor, note=note)
    except BadAmount as error:
        raise InputProblem(f"Nothing was booked: {error}.") from None
    except OrderRefused:
        raise InputProblem("The balance would fall below zero.") from None


def _refuse_unbookable(amount: Decimal) -> None:
    """Raises InputProblem for an amount at which decimal arithmetic would overflow or round."""
    if not amount.is_finite() or abs(amount.adjusted()) > 100:
        raise InputProblem("The amount is not a usable number.")
    if len(f"{amount:f}".partition(".")[2].rstrip("0")) > MONEY_DECIMALS:
        raise InputProblem(f"The amount has more than {MONEY_DECIMALS} decimals.")
