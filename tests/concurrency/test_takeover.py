"""After the window one retry takes an unfinished key over, and the attempt before buys nothing.

An attempt is stopped in the middle by taking its steps one by one, as the view takes them
(`Attempt`), or by holding its wallet, which every purchase needs last.
"""

from collections import Counter
from functools import partial

import pytest
from django.conf import settings

from config.api.errors import ApiError
from idempotency.services import Claim, claim_key, fingerprint, released_on_refusal
from orders.purchase import purchase_vouchers
from tests.concurrency.books import assert_books_balance, findings
from tests.concurrency.racing import (
    age_records,
    execute,
    held_wallet,
    in_background,
    of_own,
    outcome,
    race,
    rows,
    scalar,
    spending,
    wait_for_waiting,
    without,
)
from tests.factories import Merchant, make_merchant, make_product

pytestmark = pytest.mark.django_db(transaction=True)

PAST_THE_WINDOW = settings.IDEMPOTENCY_IN_PROGRESS_SECONDS + 1


class Attempt:
    """One request for one code under the key "one", which stopped right after its claim."""

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

    def go_on(self) -> str:
        """What the view does next; the outcome as a merchant would learn it."""
        try:
            with released_on_refusal(self.claim):
                purchase_vouchers(
                    client=self.merchant.client,
                    claim=self.claim,
                    product_id=self.product_id,
                    quantity=1,
                )
        except ApiError as error:
            return error.code
        return "bought"


def test_an_attempt_that_wakes_up_after_a_takeover_buys_nothing() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    retry = merchant.buy("one", product_id=product.pk, quantity=1)

    assert outcome(retry) == "bought"
    assert zombie.go_on() == "request_in_progress"
    again = merchant.buy("one", product_id=product.pk, quantity=1)
    assert (outcome(again), again.content) == ("replayed", retry.content)
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_an_attempt_that_wakes_up_during_a_takeover_leaves_the_key_to_it() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)
    successor = Attempt(merchant, product.pk)

    assert zombie.go_on() == "request_in_progress"

    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "request_in_progress"
    assert scalar("SELECT count(*) FROM orders_order") == 0
    assert successor.go_on() == "bought"
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_control_without_the_fence_both_attempts_buy() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    with without(
        "idempotency/sql/stamp.sql",
        (" AND attempt = p_attempt AND order_reference IS NULL", ""),
    ):
        assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "bought"
        assert zombie.go_on() == "bought"

    assert scalar("SELECT count(*) FROM orders_order") == 2


def test_a_takeover_waits_for_a_purchase_in_the_middle_and_reports_its_order() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    with held_wallet(merchant) as wallet, in_background(zombie.go_on) as slow:
        wait_for_waiting(1)
        retrying = partial(of_own(merchant).buy, "one", product_id=product.pk, quantity=1)
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


def test_a_takeover_that_waited_for_a_purchase_which_failed_goes_on_alone() -> None:
    merchant, product = make_merchant(balance="100.00"), make_product(price="9.99", codes=5)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    with spending(merchant, "99.00") as wallet, in_background(zombie.go_on) as slow:
        wait_for_waiting(1)
        with in_background(partial(Attempt, merchant, product.pk)) as retry:
            wait_for_waiting(2)
            wallet.commit()
            assert slow.result() == "order_refused"
            successor = retry.result()

    # Whichever came first, the takeover or the release: there is one attempt, and it is the retry.
    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "request_in_progress"
    execute(
        "INSERT INTO wallets_ledgerentry"
        " (wallet_id, kind, counterpart, amount, balance_after, actor)"
        " VALUES (%s, 'deposit', 'bank', 50, 0, 'test')",
        merchant.client.account_id,
    )
    assert successor.go_on() == "bought"
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_of_many_retries_at_once_one_takes_over() -> None:
    merchant, product = make_merchant(), make_product(codes=20)
    zombie = Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)

    def retry() -> str:
        return outcome(of_own(merchant).buy("one", product_id=product.pk, quantity=1))

    *answers, late = race([*[retry] * 16, zombie.go_on])

    told = Counter(answers)
    assert told.keys() <= {"bought", "replayed", "request_in_progress", "request_abandoned"}
    assert (told["bought"] == 1) != (late == "bought")
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_control_a_takeover_that_does_not_look_at_the_attempt_is_had_by_many() -> None:
    merchant, product = make_merchant(), make_product(codes=20)
    Attempt(merchant, product.pk)
    age_records(PAST_THE_WINDOW)
    retry = partial(Attempt, merchant, product.pk)

    with without(
        "idempotency/sql/claim.sql",
        (
            "         WHERE taken.id = held.id AND taken.attempt = held.attempt\n",
            "         WHERE taken.id = held.id AND pg_sleep(0.2) IS NOT NULL\n",
        ),
    ):
        successors = race([retry] * 4)

    assert len({one.claim.attempt for one in successors}) == 4
    # And yet the fence lets only the last of them buy.
    assert Counter(one.go_on() for one in successors) == {"request_in_progress": 3, "bought": 1}
    assert findings() == {}


def test_an_attempt_carries_out_one_purchase() -> None:
    merchant, product = make_merchant(), make_product(codes=20)
    attempt = Attempt(merchant, product.pk)

    told = race([attempt.go_on] * 8)

    assert Counter(told) == {"bought": 1, "request_in_progress": 7}
    assert_books_balance()


def test_a_claim_that_a_crash_lost_does_not_fit_the_record_that_got_its_id() -> None:
    """Neither the claim nor its step of the sequence was waited for; see claim.sql."""
    merchant, other, product = make_merchant(), make_merchant(), make_product(codes=20)
    lost = Attempt(merchant, product.pk)
    execute("DELETE FROM idempotency_idempotencyrecord")
    execute(
        "SELECT setval('idempotency_idempotencyrecord_id_seq', %s, false)", lost.claim.record_id
    )
    other_attempt = Attempt(other, product.pk)
    assert other_attempt.claim.record_id == lost.claim.record_id

    assert lost.go_on() == "request_in_progress"

    assert other_attempt.go_on() == "bought"
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()
