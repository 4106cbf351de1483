"""A rejection's refund and a manual credit at once never pay back more than the order cost."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal
from functools import partial

import pytest
from django.db.models import QuerySet

from operators.upkeep.reconcile import reconcile
from orders.remedies.credits import credit_order
from tests.concurrency.racing import (
    execute,
    holding_wallet,
    race,
    scalar,
    start,
    wait_for_waiting,
    weakened_sql,
)
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
from topups.fulfilment.refunds import carry_out_refund, sweep_refunds
from topups.fulfilment.transitions import Move
from topups.models import Channel, Fulfilment
from wallets.services import BadBooking

pytestmark = pytest.mark.django_db(transaction=True)

PRICE = Decimal("4.99")
GUARD = ("IF total > 0 THEN", "IF false THEN")


def rejected(merchant: Merchant) -> Fulfilment:
    reference = buy_topup(merchant, make_topup_product(price=str(PRICE)))
    return move_now(reference=reference, move=Move.REJECT, operator=make_operator())


def credit(reference: str, amount: Decimal = PRICE) -> str:
    try:
        credit_order(
            reference=reference,
            amount=amount,
            note="Sorry",
            actor="admin:anna",
            channel=Channel.ADMIN,
            booking_reference=new_booking_reference(),
        )
    except BadBooking:
        return "refused"
    return "credited"


def refund(fulfilment: Fulfilment) -> str:
    try:
        return "refunded" if carry_out_refund(fulfilment.pk) else "nothing due"
    except BadBooking:
        return "refused"


def paid_back(reference: str) -> Decimal:
    total: Decimal = scalar(
        "SELECT coalesce(sum(amount), 0) FROM wallets_ledgerentry"
        " WHERE order_reference = %s AND kind <> 'purchase'",
        reference,
    )
    return total


def both_before_they_pay(merchant: Merchant, fulfilment: Fulfilment, waiting: int) -> set[str]:
    """Starts both and lets `waiting` of them reach a lock before the wallet is free."""
    with ThreadPoolExecutor(2) as pool:
        with holding_wallet(merchant):
            told = [
                start(pool, refund, fulfilment),
                start(pool, credit, fulfilment.order_reference),
            ]
            wait_for_waiting(waiting)
        return {one.result() for one in told}


@pytest.mark.parametrize("amount", [PRICE, Decimal("2.00")])
def test_refund_and_credit_at_once_pay_back_the_price_once(amount: Decimal) -> None:
    merchant = make_merchant()
    for _ in range(10):
        fulfilment = rejected(merchant)

        race(
            [
                partial(refund, fulfilment),
                partial(credit, fulfilment.order_reference, amount),
                partial(refund, fulfilment),
            ]
        )
        sweep_refunds()

        assert paid_back(fulfilment.order_reference) == PRICE
    assert reconcile()["findings"] == []


def test_the_second_payment_waits_for_the_first_and_sees_it() -> None:
    merchant = make_merchant()
    fulfilment = rejected(merchant)

    told = both_before_they_pay(merchant, fulfilment, waiting=2)

    assert told in ({"credited", "nothing due"}, {"refused", "refunded"})
    assert paid_back(fulfilment.order_reference) == PRICE
    assert reconcile()["findings"] == []


def test_without_the_row_lock_the_ledger_refuses_the_second_payment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merchant = make_merchant()
    fulfilment = rejected(merchant)
    monkeypatch.setattr(QuerySet, "select_for_update", lambda rows, **options: rows)

    told = both_before_they_pay(merchant, fulfilment, waiting=2)

    assert told in ({"credited", "refused"}, {"refused", "refunded"})
    assert paid_back(fulfilment.order_reference) == PRICE


def test_control_without_row_lock_and_ledger_guard_the_price_is_paid_back_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merchant = make_merchant()
    fulfilment = rejected(merchant)
    monkeypatch.setattr(QuerySet, "select_for_update", lambda rows, **options: rows)
    execute("ALTER TABLE topups_fulfilment DISABLE TRIGGER topups_ended_stays_ended")
    with ExitStack() as stack:
        stack.enter_context(weakened_sql("wallets/sql/paid_back.sql", GUARD))
        try:
            both_before_they_pay(merchant, fulfilment, waiting=2)
        finally:
            execute("ALTER TABLE topups_fulfilment ENABLE TRIGGER topups_ended_stays_ended")

    assert paid_back(fulfilment.order_reference) == 2 * PRICE
    found = {finding["check"] for finding in reconcile()["findings"]}
    assert "refunds and credits of an order are at most what its wallet paid for it" in found


def voucher_order(merchant: Merchant) -> str:
    product = make_product(price=str(PRICE), codes=1)
    reference: str = merchant.buy(product_id=product.pk, quantity=1).json()["data"]["reference"]
    return reference


def test_simultaneous_credits_of_a_voucher_order_pay_its_price_once() -> None:
    reference = voucher_order(make_merchant())

    told = race([partial(credit, reference)] * 6)

    assert sorted(told) == ["credited"] + ["refused"] * 5
    assert paid_back(reference) == PRICE


def test_control_without_the_ledger_guard_a_voucher_order_is_credited_twice() -> None:
    reference = voucher_order(make_merchant())

    with weakened_sql("wallets/sql/paid_back.sql", GUARD):
        race([partial(credit, reference)] * 2)

    assert paid_back(reference) == 2 * PRICE
