"""Each booking and its audit entry are one transaction; purchases and refunds write no entry."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db import DatabaseError

from audit.models import AuditAction, AuditEntry
from core.api.errors import OrderRefused
from orders.remedies.credits import credit_order
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_operator,
    make_product,
    move_now,
    new_booking_reference,
)
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from topups.models import Channel, Fulfilment
from wallets import services
from wallets.models import LedgerEntry, Wallet
from wallets.services import AlreadyBooked, BadBooking

BOOKINGS: dict[str, tuple[Callable[..., LedgerEntry], str, AuditAction, str]] = {
    "deposit": (services.deposit, "30", AuditAction.DEPOSIT_BOOKED, "30.00 EUR"),
    "pay_out": (services.pay_out, "30", AuditAction.PAYOUT_BOOKED, "-30.00 EUR"),
    "adjust": (services.adjust, "-0.0001", AuditAction.ADJUSTMENT_BOOKED, "-0.0001 EUR"),
}


def booked() -> list[AuditEntry]:
    actions = services.BOOKING_ACTIONS
    return list(AuditEntry.objects.filter(action__in=actions).order_by("pk"))


def credit(reference: str, amount: str = "1") -> LedgerEntry:
    return credit_order(
        reference=reference,
        amount=Decimal(amount),
        note="late",
        actor="shell:anna",
        channel=Channel.COMMAND,
        booking_reference=new_booking_reference(),
    )


@pytest.mark.django_db
@pytest.mark.parametrize("name", BOOKINGS)
def test_a_booking_writes_one_entry_also_if_it_is_repeated(name: str) -> None:
    account = make_account(balance="100", currency="EUR")
    book, amount, action, shown = BOOKINGS[name]
    before = len(booked())
    booking: dict[str, Any] = {
        "account": account,
        "amount": Decimal(amount),
        "actor": "shell:anna",
        "booking_reference": "bank 4711",
        "note": "why",
    }
    entry = book(**booking)
    with pytest.raises(AlreadyBooked):
        book(**booking)

    (recorded,) = booked()[before:]
    assert (recorded.action, recorded.reference, recorded.note) == (action, "bank 4711", "why")
    assert (recorded.object_type, recorded.object_id) == ("accounts.account", str(account.pk))
    assert (recorded.actor, recorded.actor_name) == (None, "shell:anna")
    after = f"{entry.balance_after:.4f}".removesuffix("00")
    assert recorded.changes == {
        "account": [None, account.name],
        "amount": [None, shown],
        "balance": ["100.00 EUR", f"{after} EUR"],
        "booking_reference": [None, "bank 4711"],
    }


@pytest.mark.django_db
def test_a_credit_is_found_by_its_order(merchant: Merchant) -> None:
    reference = buy_topup(merchant)
    entry = credit(reference)

    (recorded,) = AuditEntry.objects.filter(action=AuditAction.CREDIT_BOOKED)
    assert (recorded.reference, recorded.note) == (reference, "late")
    assert recorded.object_id == str(merchant.client.account_id)
    assert recorded.changes["booking_reference"] == [None, entry.booking_reference]


@pytest.mark.django_db
def test_what_nobody_decided_is_not_recorded(merchant: Merchant) -> None:
    before = AuditEntry.objects.count()
    product = make_product(codes=1)
    prices = AuditEntry.objects.count()
    merchant.buy(product_id=product.pk, quantity=1)
    reference = buy_topup(merchant)
    assert before <= prices == AuditEntry.objects.count()

    operator = make_operator()
    for move in (Move.CLAIM, Move.REJECT):
        move_now(reference=reference, move=move, operator=operator)
    before = AuditEntry.objects.count()
    carry_out_refund(Fulfilment.objects.get(order_reference=reference).pk)
    assert LedgerEntry.objects.filter(order_reference=reference, kind="refund").exists()
    assert AuditEntry.objects.count() == before


@pytest.mark.django_db
def test_a_refused_booking_is_not_recorded(merchant: Merchant) -> None:
    account, reference = make_account(balance="1"), buy_topup(merchant)
    before = booked()

    with pytest.raises(OrderRefused):
        services.pay_out(
            account=account, amount=Decimal(2), actor="shell:anna", booking_reference="too much"
        )
    with pytest.raises(BadBooking):
        credit(reference, "1000")
    assert booked() == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", [*BOOKINGS, "credit"])
def test_a_booking_without_its_entry_is_rolled_back(
    name: str, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, account = buy_topup(merchant), merchant.client.account
    assert account is not None
    monkeypatch.setattr("wallets.services.record_action", refuse)
    wallet, entries = Wallet.objects.get(account=account), LedgerEntry.objects.count()

    def book() -> None:
        if name == "credit":
            credit(reference)
            return
        BOOKINGS[name][0](
            account=account,
            amount=Decimal(1),
            actor="shell:anna",
            booking_reference="bank",
            note="",
        )

    with pytest.raises(DatabaseError):
        book()

    assert LedgerEntry.objects.count() == entries
    assert Wallet.objects.get(account=account).balance == wallet.balance


def refuse(**entry: Any) -> None:
    raise DatabaseError("the audit trail cannot be written")
