"""Many operators ask for the next order at once: each gets one of their own, the oldest first."""

from collections import Counter
from functools import partial

import pytest

from tests.concurrency.racing import race
from tests.factories import buy_topup, make_merchant, make_operator, make_topup_product
from topups.fulfilments import Operator, claim_next
from topups.models import Fulfilment, FulfilmentEvent

pytestmark = pytest.mark.django_db(transaction=True)

ORDERS, OPERATORS = 6, 8


def test_nobody_gets_anothers_order_and_none_is_left() -> None:
    merchant, product = make_merchant(), make_topup_product()
    bought = [buy_topup(merchant, product) for _ in range(ORDERS)]
    operators = [make_operator() for _ in range(OPERATORS)]

    def ask(operator: Operator) -> str | None:
        claimed = claim_next(operator=operator)
        return claimed.order_reference if claimed else None

    got = race([partial(ask, operator) for operator in operators])

    assert Counter(got) == Counter([*bought, *[None] * (OPERATORS - ORDERS)])
    for operator, reference in zip(operators, got, strict=True):
        if reference:
            assert Fulfilment.objects.get(order_reference=reference).claimed_by == operator.user
    assert FulfilmentEvent.objects.filter(move="claim").count() == ORDERS
