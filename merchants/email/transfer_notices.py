"""Emails the owners when a transfer that they announced was booked. A sweep finds it, so no booking
waits for it."""

from django.db import transaction

from core.formats import amount_fact
from merchants.email.outbox import email_owners
from merchants.models import EmailKind
from wallets.models import AnnouncedTransfer
from wallets.selectors import reversal_of
from wallets.transfers import deposit_of, newly_received

BATCH = 500  # of one run


def sweep_transfers() -> int:
    """Writes the emails that are due; returns about how many transfers."""
    due = newly_received().order_by("pk").values_list("pk", flat=True)[:BATCH]
    return sum(_notify(pk) for pk in due)


@transaction.atomic
def _notify(transfer_id: int) -> bool:
    """Writes the emails of a transfer, unless its deposit was reversed. Returns False if another
    sweep has written them."""
    if not newly_received().filter(pk=transfer_id).update(seen_received=True):
        return False
    transfer = AnnouncedTransfer.objects.select_related("account").get(pk=transfer_id)
    booked = deposit_of(transfer)
    if booked is None or reversal_of(booked):
        return True
    facts = {
        "account": transfer.account.name,
        "reference": transfer.reference,
        "amount": amount_fact(booked.amount, transfer.account.currency),
    }
    email_owners(account=transfer.account, kind=EmailKind.TRANSFER, facts=facts)
    return True
