"""Contract, "Limits": each limit is accepted, and one more is refused."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from core.api.pagination import MAX_PAGE
from tests.contract.rows import LIMITS, table
from tests.contract.situations import (
    WINDOW,
    age_records,
    data,
    fail_before_commit,
    make_shop,
    refusal,
)
from tests.factories import make_client, make_merchant

pytestmark = pytest.mark.django_db(transaction=True)


def requests_per_minute() -> None:
    merchant = make_merchant(rate_limit_per_minute=3)
    assert data(merchant.get("/ping"))["rate_limit_per_minute"] == 3
    statuses = [merchant.get("/ping").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    another = make_merchant(rate_limit_per_minute=3)
    assert another.get("/ping").status_code == 200  # each client has its own count


def per_page() -> None:
    merchant = make_merchant()
    for path, default in (("/products", 50), ("/orders", 25)):
        for asked, used in (
            (None, default),
            ("1", 1),
            ("100", 100),
            ("101", 100),
            ("0", 1),
            ("-5", 1),
            ("x", default),
            ("", default),
            ("1.5", default),
            ("9" * 5000, 100),
            ("-" + "9" * 5000, 1),
            ("+" + "9" * 5000, 100),
            ("0" * 5000 + "7", 7),
            ("\u0669" * 5000, 100),
            ("1_0", default),
        ):
            query = {} if asked is None else {"per_page": asked}
            page = data(merchant.get(path, **query))["pagination"]
            assert page["per_page"] == used, (path, asked)


def page() -> None:
    merchant = make_merchant()
    for path in ("/products", "/orders"):
        for asked, used in (
            ("1", 1),
            ("0", 1),
            ("-1", 1),
            ("x", 1),
            ("", 1),
            ("7", 7),
            ("9" * 20, MAX_PAGE),
            ("9" * 5000, MAX_PAGE),
            ("-" + "9" * 5000, 1),
        ):
            found = data(merchant.get(path, page=asked))
            assert found["pagination"]["page"] == used, (path, asked)
            assert (found["items"], found["pagination"]["last_page"]) == ([], 1)


def voucher_quantity() -> None:
    shop = make_shop(price="0.10", codes=101)
    assert refusal(shop.buy(quantity=0))[:2] == (422, "validation_failed")
    assert refusal(shop.buy(quantity=101))[:2] == (422, "validation_failed")
    assert len(data(shop.buy(quantity=100))["codes"]) == 100
    assert len(data(shop.buy(quantity=1))["codes"]) == 1


def key_length() -> None:
    shop = make_shop()
    assert shop.buy("k").status_code == shop.buy("k" * 128).status_code == 201
    assert refusal(shop.buy("k" * 129))[:2] == (400, "idempotency_key_too_long")


def reference_length() -> None:
    shop = make_shop()
    for length, status in ((64, 404), (65, 422)):
        answer = shop.buy(product_id=..., merchant_reference="\u00e9" * length)
        assert answer.status_code == status


def window() -> None:
    assert timedelta(seconds=settings.IDEMPOTENCY_IN_PROGRESS_SECONDS) == WINDOW
    shop = make_shop()
    fail_before_commit(shop, "one")
    age_records(WINDOW - timedelta(seconds=5))
    assert refusal(shop.buy("one"))[1] == "request_in_progress"
    age_records(timedelta(seconds=5))
    assert shop.buy("one").status_code == 201


CASES: dict[str, Callable[[], Any]] = {
    "requests per minute": requests_per_minute,
    "per_page": per_page,
    "page": page,
    "voucher quantity": voucher_quantity,
    "Idempotency-Key length": key_length,
    "merchant_reference length": reference_length,
    "in-progress window": window,
    # test_idempotency_records.py tests the behaviour at these limits.
    "retention of successes": lambda: _days(settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS, 7),
    "retention of unfinished records": lambda: _days(settings.IDEMPOTENCY_KEEP_UNFINISHED_DAYS, 1),
}


def _days(setting: int, days: int) -> None:
    assert setting == days


@table(LIMITS, CASES)
def test_each_limit(case: Callable[[], Any]) -> None:
    case()


def test_a_new_client_has_the_default_rate_limit() -> None:
    assert make_client().rate_limit_per_minute == settings.API_DEFAULT_RATE_LIMIT_PER_MINUTE
