"""The owners receive one email when a transfer that they announced was booked."""

from decimal import Decimal

import pytest
from django.core import mail

from accounts.models import Account
from merchants.email.sending import sweep_emails
from merchants.email.transfer_notices import sweep_transfers
from merchants.models import Email, EmailKind, Membership, Role
from tests.factories import make_account
from tests.merchants.people import make_member
from wallets.models import AnnouncedTransfer, LedgerEntry
from wallets.services import deposit, reverse
from wallets.transfers import announce_transfer, close_transfer

pytestmark = pytest.mark.django_db


def announce(owner: Membership, reference: str) -> AnnouncedTransfer:
    return announce_transfer(
        account=owner.account, amount=Decimal(250), reference=reference, actor=owner.user
    )


def book(account: Account, reference: str) -> None:
    deposit(account=account, amount=Decimal("249.5"), booking_reference=reference, actor="test")


def receivers() -> list[str]:
    emails = Email.objects.filter(kind=EmailKind.TRANSFER)
    return list(emails.order_by("pk").values_list("to", flat=True))


def test_each_owner_receives_one_email_with_the_booked_amount() -> None:
    owner = make_member(make_account(balance="0"))
    second = make_member(owner.account)
    make_member(owner.account, Role.VIEWER)
    blocked, stranger = make_member(owner.account), make_member()
    blocked.user.is_active = False
    blocked.user.save()
    announce(owner, "TR-99 b")
    announce(owner, "TR-100")
    assert (sweep_transfers(), receivers()) == (0, [])

    book(owner.account, "tr99B")
    assert [sweep_transfers(), sweep_transfers()] == [1, 0]
    assert receivers() == [owner.user.email, second.user.email]
    assert stranger.user.email not in receivers()

    sweep_emails()
    message = mail.outbox[0]
    assert message.subject == "Transfer booked: TR-99 b"
    assert f"We booked 249.50 USD to the wallet of {owner.account}." in message.body


def test_a_withdrawn_or_unannounced_transfer_is_not_reported() -> None:
    owner = make_member(make_account(balance="0"))
    close_transfer(transfer=announce(owner, "TR-1"), actor=owner.user)
    for reference in ("TR-1", "TR-2"):
        book(owner.account, reference)
    assert (sweep_transfers(), receivers()) == (0, [])


def test_a_deposit_that_was_reversed_is_not_reported() -> None:
    owner = make_member(make_account(balance="0"))
    announce(owner, "TR-1")
    book(owner.account, "TR-1")
    reverse(entry=LedgerEntry.objects.get(booking_reference="TR-1"), actor="test", note="wrong")
    assert [sweep_transfers(), sweep_transfers()] == [1, 0]
    assert receivers() == []
