"""Property test: any sequence of purchases with two keys behaves like a simple model."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from idempotency.cleanup import cleanup_records
from tests.contract.situations import (
    WINDOW,
    Shop,
    age_records,
    data,
    error,
    make_shop,
    money,
    orders_cannot_be_written,
    refusal,
    unreadable_codes,
)
from tests.generating import HealthCheck, settings, st

KEYS = st.sampled_from(["a", "b"])
QUANTITIES = st.sampled_from([1, 2])
TIMES = st.sampled_from([timedelta(minutes=1), WINDOW, timedelta(days=1), timedelta(days=7)])
PRICE, CODES = 1, 12


@dataclass
class KeyModel:
    """The model of one key: its request, its outcome and its age.

    `age` counts from the first request, `since_start` from the last attempt.
    """

    quantity: int
    answer: bytes | None = None
    bought: bool = False
    age: timedelta = timedelta()
    since_start: timedelta = timedelta()


class Purchases(RuleBasedStateMachine):
    """Buys, loses responses, fails, waits and cleans up; compares each response with the model."""

    def __init__(self) -> None:
        super().__init__()
        call_command("flush", interactive=False, verbosity=0)
        self.shop: Shop = make_shop(price=str(PRICE), codes=CODES)
        self.start = money()
        self.keys: dict[str, KeyModel] = {}
        self.sold = 0
        self.orders = 0

    @rule(key=KEYS, quantity=QUANTITIES)
    def buy(self, key: str, quantity: int) -> None:
        answer = self.shop.buy(key, quantity=quantity)
        if self.record_decides(key, quantity, answer):
            return
        if self.sold + quantity > CODES:
            assert refusal(answer)[2] == "insufficient_stock"
            self.keys.pop(key, None)
            return
        assert answer.status_code == 201
        assert "Idempotent-Replay" not in answer
        assert len(data(answer)["codes"]) == quantity
        self.claim(key, quantity)
        self.keys[key].answer = answer.content
        self.sell(key, quantity)

    @rule(key=KEYS, quantity=QUANTITIES)
    def buy_and_lose_the_response(self, key: str, quantity: int) -> None:
        with unreadable_codes(self.shop.product):
            answer = self.shop.buy(key, quantity=quantity)
        if self.record_decides(key, quantity, answer) or self.sold + quantity > CODES:
            if refusal_of(answer) == "insufficient_stock":
                self.keys.pop(key, None)
            return
        assert answer.status_code == 500
        self.claim(key, quantity)
        self.sell(key, quantity)

    @rule(key=KEYS, quantity=QUANTITIES)
    def fail_before_the_commit(self, key: str, quantity: int) -> None:
        with orders_cannot_be_written():
            answer = self.shop.buy(key, quantity=quantity)
        if self.record_decides(key, quantity, answer) or self.sold + quantity > CODES:
            if refusal_of(answer) == "insufficient_stock":
                self.keys.pop(key, None)
            return
        assert answer.status_code == 500
        self.claim(key, quantity)

    @rule(
        time=st.sampled_from([timedelta(minutes=1), WINDOW, timedelta(days=1), timedelta(days=7)])
    )
    def wait(self, time: timedelta) -> None:
        age_records(time)
        for known in self.keys.values():
            known.age += time
            known.since_start += time

    @rule()
    def clean_up(self) -> None:
        due = [
            key
            for key, known in self.keys.items()
            if known.age >= timedelta(days=7 if known.answer else 1)
            and (known.answer or known.since_start >= WINDOW)
        ]
        assert cleanup_records() == len(due)
        for key in due:
            del self.keys[key]

    @invariant()
    def money_and_codes_match_the_model(self) -> None:
        now = money()
        assert now.balance == self.start.balance - self.sold * PRICE
        assert now.stock == now.unsold == CODES - self.sold
        assert now.orders == self.orders
        assert now.records == len(self.keys)

    def record_decides(self, key: str, quantity: int, answer: Any) -> bool:
        """Whether the key's record decides the response, which must be that of the model."""
        known = self.keys.get(key)
        if known is None:
            return False
        if known.quantity != quantity:
            assert refusal(answer)[1] == "idempotency_key_reused"
        elif known.answer is not None:
            assert (answer.content, answer["Idempotent-Replay"]) == (known.answer, "true")
        elif known.since_start < WINDOW:
            assert refusal(answer)[1] == "request_in_progress"
        elif known.bought:
            assert refusal(answer)[1] == "request_abandoned"
            assert self.shop.merchant.get(f"/orders/{error(answer)['reference']}")
        else:
            return False
        return True

    def claim(self, key: str, quantity: int) -> None:
        known = self.keys.setdefault(key, KeyModel(quantity))
        known.since_start = timedelta()

    def sell(self, key: str, quantity: int) -> None:
        self.keys[key].bought = True
        self.sold += quantity
        self.orders += 1


def refusal_of(answer: Any) -> str | None:
    return refusal(answer)[2] if answer.status_code == 409 else None


@pytest.mark.django_db(transaction=True)
def test_keys_behave_like_the_model() -> None:
    run_state_machine_as_test(
        Purchases,
        settings=settings(
            max_examples=25,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=True,
        ),
    )
