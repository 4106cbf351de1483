"""Staff credit an order: the ledger names it, and a failed top-up that is paid back is refunded."""

from decimal import Decimal
from typing import Any

import pytest

from operators.upkeep.reconcile import reconcile
from orders.remedies.credits import credit_order
from tests.commands import refusal, run
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
    new_booking_reference,
)
from tests.neighbour import ours
from topups.fulfilment.refunds import carry_out_refund, sweep_refunds
from topups.fulfilment.transitions import Move
from topups.models import Channel, Fulfilment, FulfilmentEvent
from wallets.models import LedgerEntry
from wallets.services import BadBooking

pytestmark = pytest.mark.django_db(transaction=True)

PRICE = Decimal("4.99")


def credit(reference: str, amount: object = PRICE, **changes: Any) -> LedgerEntry:
    return credit_order(
        **{
            "reference": reference,
            "amount": Decimal(str(amount)),
            "note": "We are sorry.",
            "actor": "admin:anna",
            "channel": Channel.ADMIN,
            "booking_reference": new_booking_reference(),
            **changes,
        }
    )


def bought(merchant: Merchant) -> str:
    return buy_topup(merchant, make_topup_product(price=str(PRICE)))


def fail_unrefunded(reference: str) -> None:
    senior = make_operator(senior=True)
    for move in (Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED):
        move_now(reference=reference, move=move, operator=senior)


def reject(reference: str) -> int:
    moved = move_now(reference=reference, move=Move.REJECT, operator=make_operator())
    return moved.pk


def refunded(merchant: Merchant, reference: str) -> bool:
    shown: bool = merchant.get(f"/orders/{reference}").json()["data"]["refunded"]
    return shown


def balance(merchant: Merchant) -> float:
    found: float = merchant.get("/balance").json()["data"]["balance"]
    return found


def healthy() -> bool:
    result = reconcile()
    assert result["findings"] == []
    return bool(result["ok"])


def test_a_full_credit_of_a_failed_topup_makes_it_refunded(merchant: Merchant) -> None:
    reference = bought(merchant)
    fail_unrefunded(reference)
    assert refunded(merchant, reference) is False

    entry = credit(reference)

    assert (entry.kind, entry.order_reference, entry.amount) == ("credit", reference, PRICE)
    assert (entry.note, entry.actor, entry.counterpart) == ("We are sorry.", "admin:anna", "sales")
    assert refunded(merchant, reference) is True
    assert balance(merchant) == 100
    event = ours(FulfilmentEvent).latest("pk")
    assert (event.move, event.actor, event.channel, event.note) == (
        "refund",
        "admin:anna",
        "admin",
        "We are sorry.",
    )
    assert healthy()


def test_partial_credits_make_it_refunded_when_they_are_the_whole_price(
    merchant: Merchant,
) -> None:
    reference = bought(merchant)
    fail_unrefunded(reference)

    told = []
    for amount in ("2", "2", "0.9899", "0.0001"):
        credit(reference, amount)
        told.append(refunded(merchant, reference))
        assert healthy()

    assert told == [False, False, False, True]
    with pytest.raises(BadBooking, match="more than it cost"):
        credit(reference, "0.0001")
    assert balance(merchant) == 100


def test_the_refund_of_a_rejection_pays_what_a_credit_has_left(merchant: Merchant) -> None:
    reference = bought(merchant)
    credit(reference, "2.00")

    assert carry_out_refund(reject(reference)) is True

    entries = LedgerEntry.objects.filter(order_reference=reference).order_by("pk")
    assert [(entry.kind, entry.amount) for entry in entries] == [
        ("purchase", -PRICE),
        ("credit", Decimal("2.00")),
        ("refund", Decimal("2.99")),
    ]
    assert refunded(merchant, reference) is True
    assert balance(merchant) == 100
    assert healthy()


def test_the_refund_of_a_rejection_pays_nothing_after_a_full_credit(merchant: Merchant) -> None:
    reference = bought(merchant)
    credit(reference)
    assert refunded(merchant, reference) is False  # it may still be delivered
    fulfilment = reject(reference)

    assert carry_out_refund(fulfilment) is True
    assert carry_out_refund(fulfilment) is False

    assert not ours(LedgerEntry).filter(kind="refund").exists()
    assert refunded(merchant, reference) is True
    assert balance(merchant) == 100
    assert healthy()


def test_a_full_credit_before_the_refund_is_carried_out_leaves_nothing_to_refund(
    merchant: Merchant,
) -> None:
    reference = bought(merchant)
    reject(reference)

    credit(reference)

    assert refunded(merchant, reference) is True
    assert sweep_refunds() == 0
    assert balance(merchant) == 100
    assert healthy()


def test_an_order_credited_in_full_becomes_refunded_when_it_fails_without_a_refund(
    merchant: Merchant,
) -> None:
    reference = bought(merchant)
    credit(reference)

    fail_unrefunded(reference)

    assert refunded(merchant, reference) is True
    moves = FulfilmentEvent.objects.filter(fulfilment__order_reference=reference)
    assert list(moves.order_by("pk").values_list("move", flat=True))[-2:] == [
        "reject_unrefunded",
        "refund",
    ]
    assert healthy()


def test_a_credit_of_a_delivered_topup_is_no_refund(merchant: Merchant) -> None:
    reference = bought(merchant)
    move_now(reference=reference, move=Move.COMPLETE, operator=make_operator())

    credit(reference)

    assert refunded(merchant, reference) is False
    assert ours(Fulfilment).get().refunded_at is None
    assert healthy()


def test_nothing_is_left_to_credit_after_a_refund(merchant: Merchant) -> None:
    reference = bought(merchant)
    carry_out_refund(reject(reference))

    with pytest.raises(BadBooking, match="more than it cost"):
        credit(reference, "0.0001")


def test_a_voucher_order_is_credited_up_to_its_price(merchant: Merchant) -> None:
    product = make_product(price="9.99", codes=2)
    reference = merchant.buy(product_id=product.pk, quantity=2).json()["data"]["reference"]

    credit(reference, "10")
    with pytest.raises(BadBooking, match="more than it cost"):
        credit(reference, "9.9801")
    credit(reference, "9.98")

    assert balance(merchant) == 100
    assert merchant.get(f"/orders/{reference}").json()["data"]["status"] == "completed"
    assert healthy()


def test_a_credit_goes_to_the_wallet_that_paid(merchant: Merchant) -> None:
    neighbour = make_merchant(balance="100.00")
    reference = bought(neighbour)

    credit(reference)

    assert (balance(merchant), balance(neighbour)) == (100, 100)
    assert LedgerEntry.objects.get(kind="credit").wallet_id == neighbour.client.account_id


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"amount": Decimal(0)}, "more than zero"),
        ({"amount": Decimal(-1)}, "more than zero"),
        ({"amount": Decimal("0.00001")}, "decimals"),
        ({"amount": Decimal("4.9901")}, "more than it cost"),
        ({"note": ""}, "note is empty"),
        ({"note": "a\nb"}, "note contains"),
        ({"booking_reference": " "}, "booking reference is empty"),
        ({"reference": "NOSUCHORDER"}, "no order"),
    ],
)
def test_a_bad_credit_books_nothing(merchant: Merchant, changes: dict[str, Any], why: str) -> None:
    reference = bought(merchant)

    with pytest.raises(BadBooking, match=why):
        credit(**{"reference": reference, **changes})

    assert not ours(LedgerEntry).filter(kind="credit").exists()


def test_the_command_credits_once_per_reference(merchant: Merchant) -> None:
    reference = bought(merchant)
    fail_unrefunded(reference)
    words = "credit_order", reference, "4.99", "--note", "Sorry", "--reference", "case 12"

    first = run(*words)
    again = run(*words)

    assert (first["kind"], first["amount"], first["already_booked"]) == ("credit", PRICE, False)
    assert again == {**first, "already_booked": True}
    assert ours(FulfilmentEvent).latest("pk").channel == "command"
    assert "used before" in refusal(*words[:2], "1", *words[3:])
    assert refusal(*words[:-1], "case 13") == (
        "Nothing was booked: refunds, credits and replacements of this order would be more"
        " than it cost."
    )
    assert "no order" in refusal("credit_order", "X", *words[2:-1], "case 14")
    assert "note is empty" in refusal("credit_order", reference, "1", "--reference", "case 15")
