"""After five minutes one retry takes over an unfinished key, and the old attempt buys nothing.

Tests stop an attempt in the middle: `Attempt` runs the steps of `buy` one by one, and holding
the wallet stops a purchase at its last lock.
"""

from collections import Counter
from functools import partial

import pytest
from django.conf import settings

from core.api.errors import ApiError
from idempotency.services import Claim, claim_key, fingerprint
from orders.purchase import purchase_vouchers, release_on_refusal
from tests.concurrency.books import assert_books_balance, findings
from tests.concurrency.racing import (
    age_records,
    execute,
    holding_locks,
    holding_wallet,
    in_background,
    outcome,
    race,
    rows,
    scalar,
    spending,
    wait_for_waiting,
    weakened_sql,
    with_own_http,
)
from tests.factories import Merchant, make_merchant, make_product

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

PAST_THE_WINDOW = settings.IDEMPOTENCY_IN_PROGRESS_SECONDS + 1


class Attempt:
    """A purchase of one code under the key "one", stopped right after its claim."""

    def __init__(self, merchant: Merchant, product_id: int) -> None:
        body = {"product_id": product_id, "quantity": 1}
        claim = claim_key(
            client=merchant.client,
            key="one",
            fingerprint=fingerprint(endpoint="POST /orders", query=[], body=body),
        )
        assert isinstance(claim, Claim)
        self.claim = claim
        self.merchant = merchant
        self.product_id = product_id

    def finish(self) -> str:
        """Runs the purchase of this attempt. Returns `bought` or the error code."""
        try:
            with release_on_refusal(self.claim):
                purchase_vouchers(
                    client=self.merchant.client,
                    claim=self.claim,
                    product_id=self.product_id,
                    quantity=1,
                )
        except ApiError as error:
            return error.code
        return "bought"


def test_an_attempt_that_resumes_after_a_takeover_buys_nothing() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    retry = merchant.buy("one", product_id=product.pk, quantity=1)

    assert outcome(retry) == "bought"
    assert zombie.finish() == "request_in_progress"
    again = merchant.buy("one", product_id=product.pk, quantity=1)
    assert (outcome(again), again.content) == ("replayed", retry.content)
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_an_attempt_that_resumes_during_a_takeover_buys_nothing() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)
    successor = Attempt(merchant, product.pk)

    assert zombie.finish() == "request_in_progress"

    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "request_in_progress"
    assert scalar("SELECT count(*) FROM orders_order") == 0
    assert successor.finish() == "bought"
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_control_without_the_stamp_both_attempts_buy() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    with weakened_sql(
        "idempotency/sql/stamp.sql",
        (" AND attempt = p_attempt AND order_reference IS NULL", ""),
    ):
        assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "bought"
        assert zombie.finish() == "bought"

    assert scalar("SELECT count(*) FROM orders_order") == 2


def test_a_takeover_waits_for_a_running_purchase_and_reports_its_order() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    with holding_wallet(merchant) as wallet, in_background(zombie.finish) as slow:
        wait_for_waiting(1)
        retrying = partial(with_own_http(merchant).buy, "one", product_id=product.pk, quantity=1)
        with in_background(retrying) as retry:
            wait_for_waiting(2)
            wallet.rollback()
            assert slow.result() == "bought"
            answer = retry.result()

    assert outcome(answer) == "request_abandoned"
    reference = answer.json()["error"]["reference"]
    assert rows("SELECT reference FROM orders_order") == [(reference,)]
    assert len(merchant.get(f"/orders/{reference}").json()["data"]["codes"]) == 1
    assert_books_balance()


def test_a_takeover_continues_after_the_running_purchase_failed() -> None:
    merchant, product = make_merchant(balance="100.00"), make_product(price="9.99", codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    with spending(merchant, "99.00") as wallet, in_background(zombie.finish) as slow:
        wait_for_waiting(1)
        with in_background(partial(Attempt, merchant, product.pk)) as retry:
            wait_for_waiting(2)
            wallet.commit()
            assert slow.result() == "order_refused"
            successor = retry.result()

    # Takeover and release may run in any order; afterwards the retry is the only attempt.
    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "request_in_progress"
    execute(
        "INSERT INTO wallets_ledgerentry"
        " (wallet_id, kind, counterpart, amount, balance_after, actor, booking_reference)"
        " VALUES (%s, 'deposit', 'bank', 50, 0, 'test', 'more money')",
        merchant.client.account_id,
    )
    assert successor.finish() == "bought"
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_one_of_many_concurrent_retries_takes_over() -> None:
    merchant, product = make_merchant(), make_product(codes=20)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    def retry() -> str:
        return outcome(with_own_http(merchant).buy("one", product_id=product.pk, quantity=1))

    *answers, late = race([*[retry] * 16, zombie.finish])

    told = Counter(answers)
    assert told.keys() <= {"bought", "replayed", "request_in_progress", "request_abandoned"}
    assert (told["bought"] == 1) != (late == "bought")
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_control_without_the_attempt_check_every_retry_takes_over() -> None:
    merchant, product = make_merchant(), make_product(codes=20)
    Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)
    retry = partial(Attempt, merchant, product.pk)

    with weakened_sql(
        "idempotency/sql/claim.sql",
        (
            "         WHERE taken.id = held.id AND taken.attempt = held.attempt\n",
            "         WHERE taken.id = held.id AND pg_advisory_xact_lock_shared(7) IS NOT NULL\n",
        ),
    ):
        # All have looked at the record before one of them changes it.
        with (
            holding_locks("SELECT pg_advisory_xact_lock(7)") as other,
            in_background(lambda: race([retry] * 4)) as racing,
        ):
            wait_for_waiting(4)
            other.rollback()
        successors = racing.result()

    assert len({one.claim.attempt for one in successors}) == 4
    # The stamp still lets only the last of them buy.
    assert Counter(one.finish() for one in successors) == {"request_in_progress": 3, "bought": 1}
    assert findings() == {}


def test_an_attempt_buys_once() -> None:
    merchant, product = make_merchant(), make_product(codes=20)
    attempt = Attempt(merchant, product.pk)

    told = race([attempt.finish] * 8)

    assert Counter(told) == {"bought": 1, "request_in_progress": 7}
    assert_books_balance()


def test_a_claim_lost_in_a_crash_does_not_match_a_new_record() -> None:
    """A crash may lose both the claim and the value of the sequence (idempotency/sql/claim.sql)."""
    merchant, other, product = make_merchant(), make_merchant(), make_product(codes=20)
    lost = Attempt(merchant, product.pk)
    execute("DELETE FROM idempotency_idempotencyrecord")
    execute(
        "SELECT setval('idempotency_idempotencyrecord_id_seq', %s, false)", lost.claim.record_id
    )
    other_attempt = Attempt(other, product.pk)
    assert other_attempt.claim.record_id == lost.claim.record_id

    assert lost.finish() == "request_in_progress"

    assert other_attempt.finish() == "bought"
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()
