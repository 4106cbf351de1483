"""Creating accounts from the shell."""

from decimal import Decimal
from hashlib import sha256

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account
from audit.models import AuditAction
from audit.services import find_changes, record_action
from core.database.columns import NAME_LENGTH
from core.inputs import InputProblem, clean_text
from core.json_output import money_text
from wallets.booking_commands import book_deposit, refuse_unbookable
from wallets.models import LedgerEntry, Wallet
from wallets.services import open_wallet


@transaction.atomic
def create_account(
    *, name: str, currency: str, balance: Decimal, with_wallet: bool, actor: str
) -> Account:
    """Creates an account. `balance`, in units of the currency, is booked as a deposit.

    If an account of this name exists, it is returned and nothing is booked. Raises InputProblem if
    that account differs from what is asked for, and InputProblem or ValidationError for bad input.
    """
    name = clean_text(name, what=gettext_noop("name"), max_length=NAME_LENGTH)
    refuse_unbookable(balance)
    account = Account.objects.filter(name=name).order_by("pk").first()
    if account is not None:
        _refuse_another(account, currency=currency, balance=balance, with_wallet=with_wallet)
        return account
    account = Account(name=name, currency=currency)
    account.full_clean()
    account.save()
    record_action(
        actor=None,
        action=AuditAction.ACCOUNT_CREATED,
        on=account,
        reference=account.name,
        changes=find_changes(
            {}, {"name": account.name, "currency": currency, "wallet": with_wallet}
        ),
    )
    if with_wallet:
        open_wallet(account=account)
    if balance:
        if not with_wallet:
            raise InputProblem(_("An account without a wallet cannot have a balance."))
        book_deposit(
            account_id=account.pk,
            amount=balance,
            actor=actor,
            note="opening balance",
            booking_reference=_opening_reference(name),
        )
    return account


def _refuse_another(
    account: Account, *, currency: str, balance: Decimal, with_wallet: bool
) -> None:
    """Raises InputProblem unless the account is what the same command created before."""
    opening = LedgerEntry.objects.filter(
        wallet=account.pk, booking_reference=_opening_reference(account.name)
    ).first()
    opened_with = opening.amount if opening else Decimal(0)
    problem = ""
    if currency != account.currency:
        problem = _("its currency is %(currency)s") % {"currency": account.currency}
    elif Wallet.objects.filter(account=account).exists() != with_wallet:
        problem = _("it has no wallet") if with_wallet else _("it has a wallet")
    elif balance != opened_with:
        problem = _("its opening balance is %(opening)s. Book more with `deposit`") % {
            "opening": money_text(opened_with)
        }
    if problem:
        raise InputProblem(
            _("Nothing was changed: account %(account)s has this name, and %(problem)s.")
            % {"account": account.pk, "problem": problem}
        )


def _opening_reference(name: str) -> str:
    """The booking reference of an account's opening balance, from the account's name.

    If the same account is created twice at once, the ledger refuses the second opening balance.
    """
    return f"opening:{sha256(name.encode()).hexdigest()[:32]}"
