"""Operators who claim the next order at once get different orders, the oldest first."""

from collections import Counter
from functools import partial

import pytest
from django.db.models import QuerySet

from tests.concurrency.racing import holding_locks, in_background, race, wait_for_waiting
from tests.factories import buy_topup, make_merchant, make_operator, make_topup_product
from topups.fulfilment.fulfilments import Operator, claim_next
from topups.models import Fulfilment, FulfilmentEvent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

OPERATORS = 8


@pytest.mark.parametrize("orders", [OPERATORS - 2, OPERATORS, OPERATORS + 2])
def test_simultaneous_operators_get_different_orders(orders: int) -> None:
    bought, operators = buy(orders), [make_operator() for _ in range(OPERATORS)]

    got = ask_at_once(operators, oldest=bought[0])

    nothing = [None] * (OPERATORS - orders)
    assert Counter(got) == Counter([*bought[:OPERATORS], *nothing])
    for operator, reference in zip(operators, got, strict=True):
        if reference:
            assert Fulfilment.objects.get(order_reference=reference).claimed_by == operator.user
    claims = FulfilmentEvent.objects.filter(move="claim")
    assert claims.count() == min(orders, OPERATORS)


def test_control_without_the_guard_all_get_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the order is not locked while its version is checked."""
    monkeypatch.setattr(QuerySet, "select_for_update", lambda rows, **options: rows)
    bought, operators = buy(OPERATORS), [make_operator() for _ in range(OPERATORS)]

    assert ask_at_once(operators, oldest=bought[0]) == [bought[0]] * OPERATORS


def buy(number: int) -> list[str]:
    merchant, product = make_merchant(), make_topup_product()
    return [buy_topup(merchant, product) for _ in range(number)]


def ask_at_once(operators: list[Operator], *, oldest: str) -> list[str | None]:
    """What each operator got. All choose the oldest order before any of them can claim it."""
    statement = "SELECT FROM topups_fulfilment WHERE order_reference = %s FOR UPDATE"
    calls = [partial(_ask, operator) for operator in operators]
    with holding_locks(statement, oldest) as lock, in_background(lambda: race(calls)) as got:
        wait_for_waiting(len(operators))
        lock.rollback()
        return got.result()


def _ask(operator: Operator) -> str | None:
    claimed = claim_next(operator=operator)
    return claimed.order_reference if claimed else None
