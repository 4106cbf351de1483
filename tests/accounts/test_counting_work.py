"""Every request counts as one, for its client and for the client's account."""

import pytest
from pytest_django import Settings

from accounts.api_access.throttling import ACCOUNT_TIMES
from tests.factories import Merchant, make_account, make_client, make_product

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_page_with_many_codes_counts_as_one_request() -> None:
    merchant = Merchant(make_client(make_account(), rate_limit_per_minute=8))
    product = make_product(price="0.01", codes=600)
    for _ in range(6):
        assert merchant.buy(product_id=product.pk, quantity=100).status_code == 201

    pages = [merchant.get("/orders", per_page="100") for _ in range(3)]

    assert sum(len(order["codes"]) for order in pages[0].json()["data"]["items"]) == 600
    assert [page.status_code for page in pages] == [200, 200, 429]


def test_many_clients_of_an_account_share_a_limit(settings: Settings) -> None:
    settings.API_DEFAULT_RATE_LIMIT_PER_MINUTE = 2
    account = make_account()
    clients = [Merchant(make_client(account, rate_limit_per_minute=2)) for _ in range(7)]
    other = Merchant(make_client(make_account(), rate_limit_per_minute=2))

    answers = [client.get("/ping") for client in clients for _ in range(2)]

    statuses = [answer.status_code for answer in answers]
    assert statuses == [200] * 2 * ACCOUNT_TIMES + [429] * 4
    assert answers[-1].json()["error"]["code"] == "rate_limited"
    assert answers[-1].json()["error"]["retry_after_seconds"] > 0
    assert other.get("/ping").status_code == 200


def test_an_only_client_costs_one_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each count is a round trip. Clients that are switched off in turn share the limit, too."""
    counted: list[str] = []

    def note(*, group: str, key: object, limit: int) -> int:
        counted.append(group)
        return 0

    monkeypatch.setattr("accounts.api_access.throttling.seconds_to_wait", note)
    account = make_account()
    merchant = Merchant(make_client(account))
    merchant.get("/ping")
    assert counted == ["api"]

    make_client(account, enabled=False)
    merchant.get("/ping")
    assert counted[1:] == ["api", "api of an account"]


def test_an_account_has_the_limit_of_its_largest_client(settings: Settings) -> None:
    """`GET /ping` promises it."""
    settings.API_DEFAULT_RATE_LIMIT_PER_MINUTE = 1
    account = make_account()
    merchant = Merchant(make_client(account, rate_limit_per_minute=ACCOUNT_TIMES + 2))
    make_client(account)

    statuses = [merchant.get("/ping").status_code for _ in range(ACCOUNT_TIMES + 3)]

    assert statuses == [200] * (ACCOUNT_TIMES + 2) + [429]


def test_a_large_client_leaves_the_small_ones_of_its_account_their_limit(
    settings: Settings,
) -> None:
    settings.API_DEFAULT_RATE_LIMIT_PER_MINUTE = 1
    account = make_account()
    large = Merchant(make_client(account, rate_limit_per_minute=2 * ACCOUNT_TIMES))
    small = Merchant(make_client(account, rate_limit_per_minute=2))

    statuses = [large.get("/ping").status_code for _ in range(2 * ACCOUNT_TIMES)]

    assert statuses == [200] * 2 * ACCOUNT_TIMES
    assert [small.get("/ping").status_code for _ in range(3)] == [200, 200, 429]
