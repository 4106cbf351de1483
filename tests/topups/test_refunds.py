"""A failed top-up credits the wallet exactly once, even if its task is lost or repeated."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import IntegrityError, connection

from tests.commands import run
from tests.concurrency.racing import execute, holding_wallet
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_operator,
    make_topup_product,
    move_now,
)
from topups.fulfilment import refunds
from topups.fulfilment.refunds import carry_out_refund, sweep_refunds
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import Fulfilment, TopUpProduct
from wallets.models import LedgerEntry
from wallets.services import open_wallet, refund

THREADS = 8


def failed_topup(merchant: Merchant) -> Fulfilment:
    reference = buy_topup(merchant, make_topup_product(price="4.99"))
    return move_now(reference=reference, move=Move.REJECT, operator=make_operator())


def refunds_of(fulfilment: Fulfilment) -> int:
    return LedgerEntry.objects.filter(
        kind="refund", order_reference=fulfilment.order_reference
    ).count()


def test_a_refund_is_due_before_it_is_done(merchant: Merchant) -> None:
    fulfilment = failed_topup(merchant)

    order = merchant.get(f"/orders/{fulfilment.order_reference}").json()["data"]
    assert (order["status"], order["refunded"]) == ("failed", False)
    assert fulfilment.refund_due_at is not None

    assert carry_out_refund(fulfilment.pk) is True

    order = merchant.get(f"/orders/{fulfilment.order_reference}").json()["data"]
    assert order["refunded"] is True
    assert merchant.get("/balance").json()["data"]["balance"] == 100


def test_repeated_task_does_not_credit_again(merchant: Merchant) -> None:
    fulfilment = failed_topup(merchant)

    assert [carry_out_refund(fulfilment.pk) for _ in range(3)] == [True, False, False]
    assert refunds_of(fulfilment) == 1


def test_a_refund_credits_what_was_paid_and_not_the_present_price(merchant: Merchant) -> None:
    fulfilment = failed_topup(merchant)
    TopUpProduct.objects.filter(pk=fulfilment.product_id).update(price=Decimal("1.23"))

    carry_out_refund(fulfilment.pk)

    entry = LedgerEntry.objects.get(kind="refund", order_reference=fulfilment.order_reference)
    assert (entry.amount, entry.balance_after) == (Decimal("4.99"), Decimal("100.00"))


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.CLAIM])
def test_only_failed_orders_are_refunded(merchant: Merchant, move: Move) -> None:
    reference = buy_topup(merchant)
    moved = move_now(reference=reference, move=move, operator=make_operator())

    assert carry_out_refund(moved.pk) is False
    assert sweep_refunds() == 0


def test_a_senior_can_fail_a_reviewed_order_without_refund(merchant: Merchant) -> None:
    senior = make_operator(senior=True)
    reference = buy_topup(merchant)
    for move in (Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED):
        moved = move_now(reference=reference, move=move, operator=senior)

    assert moved.status == "failed"
    assert sweep_refunds() == 0
    assert merchant.get(f"/orders/{reference}").json()["data"]["refunded"] is False


def test_sweep_refunds_orders_whose_task_was_lost(merchant: Merchant) -> None:
    lost = [failed_topup(merchant) for _ in range(3)]

    assert sweep_refunds() == 3
    assert sweep_refunds() == 0
    assert [refunds_of(fulfilment) for fulfilment in lost] == [1, 1, 1]


def test_the_ledger_refuses_a_second_refund(merchant: Merchant) -> None:
    fulfilment = failed_topup(merchant)
    carry_out_refund(fulfilment.pk)

    with pytest.raises(IntegrityError):
        refund(
            account=fulfilment.account,
            amount=fulfilment.amount,
            order_reference=fulfilment.order_reference,
            actor="test",
        )


def at_once(work: Callable[[], object]) -> None:
    """Runs `work` in every thread at the same moment."""
    barrier = threading.Barrier(THREADS)

    def run() -> None:
        barrier.wait()
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(run) for _ in range(THREADS)]:
            future.result()


@pytest.mark.django_db(transaction=True)
def test_simultaneous_workers_credit_once() -> None:
    fulfilment = failed_topup(make_merchant())
    done: list[bool] = []

    at_once(lambda: done.append(carry_out_refund(fulfilment.pk)))

    assert sorted(done) == [False] * (THREADS - 1) + [True]
    assert refunds_of(fulfilment) == 1


@pytest.mark.django_db(transaction=True)
def test_control_without_the_lock_the_ledger_refuses_the_second_credit() -> None:
    """Shows that the race is real: unlocked workers do reach the ledger, and it refuses them."""
    fulfilment = failed_topup(make_merchant())
    refused: list[bool] = []

    def unlocked() -> None:
        try:
            refund(
                account=fulfilment.account,
                amount=fulfilment.amount,
                order_reference=fulfilment.order_reference,
                actor="test",
            )
        except IntegrityError:
            refused.append(True)

    at_once(unlocked)

    assert len(refused) == THREADS - 1
    assert refunds_of(fulfilment) == 1


def lose_wallet_of(merchant: Merchant) -> None:
    """Damage that no refund gets past; only a superuser can do it."""
    execute("SET session_replication_role = replica")
    execute("DELETE FROM wallets_wallet WHERE account_id = %s", merchant.client.account_id)
    execute("SET session_replication_role = origin")


@pytest.mark.django_db(transaction=True)
def test_failing_refund_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    damaged, healthy = make_merchant(), make_merchant()
    fulfilments = [
        failed_topup(merchant)
        for merchant in (healthy, damaged, healthy, damaged, damaged, healthy)
    ]
    stuck = {row.order_reference for row in fulfilments if row.account != healthy.client.account}
    lose_wallet_of(damaged)

    assert run("sweep_refunds") == {"refunded": 3, "still_due": 3}

    failures = [
        record.msg for record in caplog.records if record.name == "topups.fulfilment.refunds"
    ]
    assert {failure["order"] for failure in failures} == stuck  # type: ignore[index]
    assert {failure["event"] for failure in failures} == {"refund_failed"}  # type: ignore[index]
    assert healthy.get("/balance").json()["data"]["balance"] == 100

    open_wallet(account=damaged.account)
    assert run("sweep_refunds") == {"refunded": 3, "still_due": 0}


@pytest.mark.django_db(transaction=True)
def test_refund_waiting_for_a_wallet_does_not_stop_the_others() -> None:
    busy, healthy = make_merchant(), make_merchant()
    waiting, done = failed_topup(busy), failed_topup(healthy)

    with holding_wallet(busy):
        before = time.monotonic()
        assert sweep_refunds() == 1
        assert time.monotonic() - before < 10

    assert [refunds_of(waiting), refunds_of(done)] == [0, 1]
    assert sweep_refunds() == 1


@pytest.mark.django_db(transaction=True)
def test_sweep_stops_at_its_limits_and_the_next_one_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merchant = make_merchant()
    for _ in range(3):
        failed_topup(merchant)

    monkeypatch.setattr(refunds, "SECONDS", 0)
    assert sweep_refunds() == 0
    monkeypatch.setattr(refunds, "SECONDS", 15)
    monkeypatch.setattr(refunds, "BATCH", 2)
    assert [sweep_refunds(), sweep_refunds(), sweep_refunds()] == [2, 1, 0]


@pytest.mark.django_db
def test_a_refund_leaves_the_version_that_people_saw() -> None:
    fulfilment = failed_topup(make_merchant())
    seen = version_of(fulfilment)
    assert carry_out_refund(fulfilment.pk)
    assert version_of(fulfilment) == seen
