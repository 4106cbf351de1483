"""The merchant reads the reason of a booking, and never its note. Both stay as they were booked."""

from decimal import Decimal

import pytest
from django.db import DatabaseError, transaction

from operators.upkeep.reconcile import reconcile
from orders.remedies.bookings import approve, book_or_ask
from orders.remedies.credits import credit_order
from tests.commands import run
from tests.concurrency.racing import execute
from tests.factories import buy_topup, make_account, make_merchant, new_booking_reference
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_approval, make_staff, signed_in, url
from topups.models import Channel
from wallets.approvals import reject_booking
from wallets.evidence.roots import read_entries
from wallets.models import BookingApproval, LedgerEntry
from wallets.services import adjust, deposit, reverse

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

CHAIN = "each entry continues the hash chain of its wallet"


def make_booking() -> LedgerEntry:
    return deposit(
        account=make_account(balance="0"),
        amount=Decimal(5),
        actor="admin:anna",
        booking_reference=new_booking_reference(),
        note="typed twice by Ben",
        reason="Bank transfer of 3 March",
    )


def test_the_statement_shows_the_reason_and_not_the_note() -> None:
    entry = make_booking()
    reverse(entry=entry, actor="admin:anna", note="Ben again", reason="Was booked twice")
    owner = browser_of(make_member(entry.wallet.account).user)

    for path in ("", "statement.csv", "statement.json"):
        answer = owner.get(f"/merchant/wallet/{path}")
        text = (b"".join(answer) if answer.streaming else answer.content).decode()
        assert "Bank transfer of 3 March" in text
        assert "Was booked twice" in text
        assert "Ben" not in text


def test_staff_write_both_on_the_form() -> None:
    account = make_account(balance="0")
    staff = signed_in(make_staff("wallets.view_ledgerentry", "wallets.move_money"))
    form = {
        "kind": "deposit",
        "amount": "5",
        "reference": "bank 12",
        "reason": "for us",
        "for_merchant": "for them",
        "form_id": "9d6a2b1e-97a2-4a6f-b4a7-0b3f0f6b5f01",
    }

    confirmation = staff.post(url(account.wallet, "book"), form, follow=True)
    assert "For the merchant: for them" in confirmation.content.decode()
    staff.post(url(account.wallet, "book"), {**form, "confirmed": "1"})

    entry = LedgerEntry.objects.get(wallet=account.pk)
    assert (entry.note, entry.reason, entry.merchant_note) == ("for us", "for them", "for them")


def test_the_chain_covers_reasons_and_keeps_the_hash_of_entries_without_one() -> None:
    entry = make_booking()
    account = entry.wallet.account
    reference = new_booking_reference()
    adjust(
        account=account, amount=Decimal(1), actor="a", booking_reference=reference, note="no reason"
    )
    before = None
    for link in read_entries(account.pk):
        assert link.chained(before) == link.chain
        before = link.chain
    assert reconcile()["findings"] == []
    assert run("verify_ledger")["findings"] == []

    execute(
        "ALTER TABLE wallets_ledgerentry DISABLE TRIGGER wallets_ledger_is_append_only;"
        "UPDATE wallets_ledgerentry SET reason = 'x' WHERE reason IS NOT NULL;"
        "ALTER TABLE wallets_ledgerentry ENABLE TRIGGER wallets_ledger_is_append_only"
    )

    assert {one["check"] for one in reconcile()["findings"]} == {CHAIN}


def test_a_booking_that_waits_keeps_its_reason() -> None:
    booking = make_approval(make_account(balance="0"))

    with pytest.raises(DatabaseError, match="is kept"):
        BookingApproval.objects.filter(pk=booking.pk).update(reason="another one")


def test_an_approved_booking_has_its_reason() -> None:
    booking = make_approval(make_account(balance="0"), reason="for them")

    entry = approve(booking=booking, actor=make_staff())

    assert entry is not None
    assert entry.reason == "for them"


def test_the_reversal_of_a_topups_credit_has_its_reason() -> None:
    merchant, person = make_merchant(), make_staff()
    entry = credit_order(
        reference=buy_topup(merchant),
        amount=Decimal(1),
        note="Sorry",
        actor="admin:anna",
        channel=Channel.ADMIN,
        booking_reference=new_booking_reference(),
    )

    reversal = book_or_ask(
        booking=BookingApproval(
            wallet_id=entry.wallet_id,
            kind=entry.kind,
            amount=-entry.amount,
            order_reference=entry.order_reference,
            booking_reference=entry.reversal_reference,
            asked_by=person,
            note="wrong order",
            reason="Credited by mistake",
        )
    )

    assert isinstance(reversal, LedgerEntry)
    assert (reversal.note, reversal.reason) == ("wrong order", "Credited by mistake")


def test_what_was_asked_for_and_what_was_decided_is_kept() -> None:
    account, other = make_account(), make_account()
    booking = make_approval(account)
    values = {
        "wallet_id": other.pk,
        "kind": "'adjustment'",
        "amount": "amount + 1",
        "order_reference": f"'{'0' * 26}'",
        "note": "'other'",
        "booking_reference": f"'{new_booking_reference()}'",
        "asked_by_id": make_staff().pk,
        "asked_at": "asked_at - interval '1 second'",
        "expires_at": "expires_at + interval '1 second'",
    }

    def is_kept(column: str, value: object) -> bool:
        try:
            with transaction.atomic():
                execute(f"UPDATE wallets_bookingapproval SET {column} = {value}")
        except DatabaseError as error:
            return "what was decided is kept" in str(error)
        return False

    assert [column for column, value in values.items() if not is_kept(column, value)] == []
    reject_booking(booking=booking, actor=make_staff(), note="Not yours")
    assert is_kept("state", "'waiting', decided_at = NULL, decided_by_id = NULL")
    assert is_kept("decided_at", "now()")
