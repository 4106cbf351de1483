"""Contract, "Authentication": every endpoint with every kind of caller."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounts.api_access.keys import revoke_key, rotate_key
from accounts.models import Account, ApiClient, ApiKey
from core.api.openapi import SERVER_ERRORS
from tests.answers import CheckedClient, operations, served_document
from tests.contract.rows import ENDPOINTS, IDENTITIES, TOP_UP_ENDPOINTS, table
from tests.contract.situations import Shop, data, error, make_shop, money, refusal
from tests.factories import Merchant, make_account, make_client, make_merchant, make_product

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Caller:
    """A caller with this Authorization header and address."""

    authorization: str | None
    address: str = "127.0.0.1"

    def call(self, endpoint: str, path: str) -> Any:
        method = endpoint.partition(" ")[0]
        headers = {"Idempotency-Key": "one"} if method == "POST" else {}
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        return CheckedClient(REMOTE_ADDR=self.address).generic(
            method, f"/api/v1{path}", "{}", "application/json", headers=headers
        )


def _bearer(merchant: Merchant) -> str:
    return f"Bearer {merchant.key}"


def _wrong_secret(key: str) -> str:
    """A key with an existing prefix and a wrong secret."""
    return f"Bearer {key.rpartition('_')[0]}_{'0' * 64}"


def _expired() -> Caller:
    merchant = make_merchant()
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    return Caller(_bearer(merchant))


def _revoked() -> Caller:
    merchant = make_merchant()
    assert revoke_key(key=merchant.client.keys.get(), actor=None)
    return Caller(_bearer(merchant))


def _disabled_account() -> Caller:
    merchant = make_merchant()
    Account.objects.update(enabled=False)
    return Caller(_bearer(merchant))


def _rate_limited() -> Caller:
    merchant = make_merchant(rate_limit_per_minute=1)
    merchant.get("/ping")
    return Caller(_bearer(merchant))


def _not_allowed(network: str, address: str) -> Caller:
    return Caller(_bearer(make_merchant(allowed_networks=[network])), address)


CALLERS: dict[str, Callable[[], Caller]] = {
    "no header": lambda: Caller(None),
    "other scheme": lambda: Caller(f"Basic {make_merchant().key}"),
    "other scheme: Token": lambda: Caller(f"Token {make_merchant().key}"),
    "other scheme: none at all": lambda: Caller(make_merchant().key),
    "empty token": lambda: Caller("Bearer "),
    "empty token: no space": lambda: Caller("Bearer"),
    "empty token: empty header": lambda: Caller(""),
    "junk token": lambda: Caller("Bearer \u00fc\x01'; DROP TABLE"),
    "junk token: two keys": lambda: Caller(f"Bearer {make_merchant().key} {make_merchant().key}"),
    "unknown key": lambda: Caller(f"Bearer vk_{'0' * 12}_{'0' * 64}"),
    "wrong secret": lambda: Caller(f"Bearer {make_merchant().key[:-1]}g"),
    "wrong secret: of the right form": lambda: Caller(_wrong_secret(make_merchant().key)),
    "expired key": _expired,
    "revoked key": _revoked,
    "disabled client": lambda: Caller(_bearer(make_merchant(enabled=False))),
    "disabled account": _disabled_account,
    "IPv4 not on the allowlist": lambda: _not_allowed("192.0.2.0/24", "192.0.3.1"),
    "IPv6 not on the allowlist": lambda: _not_allowed("2001:db8::/64", "2001:db8:0:1::1"),
    "IPv6 not on the allowlist: a v4 list": lambda: _not_allowed("0.0.0.0/0", "2001:db8::1"),
    "rate limited": _rate_limited,
}


def _paths() -> list[tuple[str, str]]:
    return [
        (f"{method} {path}", path.replace("{product}", "1").replace("{reference}", "X"))
        for method, path, _ in operations(served_document())
    ]


def test_the_document_has_every_endpoint_with_its_statuses() -> None:
    """Statuses of 4xx whose only body is a message are not of the API. Each operation has 5XX."""
    documented = {
        f"{method} {path}": {
            int(status)
            for status, response in operation["responses"].items()
            if status != SERVER_ERRORS
            and not response["content"]["application/json"]["schema"]["$ref"].endswith("/Message")
        }
        for method, path, operation in operations(served_document())
    }
    everywhere = {401, 403, 429}
    assert documented.keys() - TOP_UP_ENDPOINTS.keys() == ENDPOINTS.keys()
    for endpoint, statuses in documented.items():
        expected = {**ENDPOINTS, **TOP_UP_ENDPOINTS}[endpoint] | everywhere
        assert statuses == expected, endpoint
    for method, path, operation in operations(served_document()):
        assert SERVER_ERRORS in operation["responses"], f"{method} {path}"


@table(IDENTITIES, {name: (name.partition(":")[0], make) for name, make in CALLERS.items()})
def test_every_endpoint_refuses_the_caller(case: tuple[str, Callable[[], Caller]]) -> None:
    identity, make = case
    caller = make()
    before = money()
    for endpoint, path in _paths():
        answer = caller.call(endpoint, path)
        assert refusal(answer)[:2] == IDENTITIES[identity], endpoint
    assert money() == before


@pytest.mark.parametrize("authorization", [None, "Bearer junk"])
def test_a_401_names_the_scheme(authorization: str | None) -> None:
    assert Caller(authorization).call("GET /ping", "/ping")["WWW-Authenticate"] == "Bearer"


def test_all_invalid_keys_get_the_same_response() -> None:
    """The response must not reveal whether a key ever existed. It may say that the header has
    another scheme, whatever key follows."""
    invalid = [name for name, answer in IDENTITIES.items() if answer[1] == "invalid_token"]
    callers = [make() for name, make in CALLERS.items() if name.partition(":")[0] in invalid]
    callers.append(Caller("Token vk_000000000000_unknown"))
    bearer = [each for each in callers if str(each.authorization).startswith("Bearer")]
    other_scheme = [each for each in callers if each not in bearer]
    for group in (other_scheme, bearer):
        assert len({each.call("GET /ping", "/ping").content for each in group}) == 1


@pytest.mark.parametrize(
    ("networks", "address"),
    [
        (["192.0.2.0/24"], "192.0.2.200"),
        (["192.0.2.7"], "192.0.2.7"),
        (["192.0.2.7"], "::ffff:192.0.2.7"),
        (["2001:db8::/64", "192.0.2.7"], "2001:db8::9"),
        ([], "203.0.113.1"),
    ],
)
def test_an_address_on_the_allowlist_may_call(networks: list[str], address: str) -> None:
    caller = Caller(_bearer(make_merchant(allowed_networks=networks)), address)
    assert caller.call("GET /ping", "/ping").status_code == 200


def test_x_forwarded_for_does_not_bypass_the_allowlist() -> None:
    merchant = make_merchant(allowed_networks=["192.0.2.7"])
    headers = {"Authorization": _bearer(merchant), "X-Forwarded-For": "192.0.2.7"}
    answer = CheckedClient().get("/api/v1/ping", headers=headers)
    assert refusal(answer)[:2] == (403, "ip_not_allowed")


@pytest.mark.parametrize(
    ("forwarded", "status"),
    [
        ("192.0.2.7", 200),
        ("192.0.2.7, 10.0.0.5", 200),
        ("203.0.113.1, 192.0.2.7", 200),
        ("192.0.2.7, 203.0.113.1", 403),
        ("192.0.2.7, 203.0.113.1, 10.0.0.5", 403),
        ("10.0.0.5", 403),
        ("", 403),
    ],
)
def test_behind_a_trusted_proxy_the_nearest_untrusted_hop_counts(
    forwarded: str, status: int, settings: Settings
) -> None:
    """A caller can write any hops before the one that the proxy adds."""
    settings.TRUSTED_PROXIES = ["127.0.0.1", "10.0.0.0/8"]
    merchant = make_merchant(allowed_networks=["192.0.2.7"])
    headers = {"Authorization": _bearer(merchant), "X-Forwarded-For": forwarded}
    assert CheckedClient().get("/api/v1/ping", headers=headers).status_code == status


def test_both_keys_read_the_same_orders_during_rotation() -> None:
    shop = make_shop()
    reference = data(shop.buy())["reference"]
    new = rotate_key(client=shop.merchant.client, overlap_hours=1, actor=None)
    assert shop.merchant.get(f"/orders/{reference}").status_code == 200
    shop.merchant.key = new
    assert shop.merchant.get(f"/orders/{reference}").status_code == 200


def test_the_scheme_may_be_written_in_any_case() -> None:
    caller = Caller(f"bEARER {make_merchant().key}")
    assert caller.call("GET /ping", "/ping").status_code == 200


@pytest.mark.parametrize("account", ["none", "without wallet"])
def test_a_client_without_a_wallet_reads_everything_but_the_balance(account: str) -> None:
    owner = None if account == "none" else make_account(wallet=False)
    shop = Shop(Merchant(make_client(owner)), make_product(codes=1))
    assert refusal(shop.merchant.get("/balance"))[:2] == (409, "client_without_wallet")
    assert refusal(shop.buy()) == (409, "order_refused", "client_without_wallet")
    for path in ("/ping", "/products", f"/products/{shop.product.pk}", "/orders"):
        assert shop.merchant.get(path).status_code == 200, path


def test_the_rate_limit_counts_each_client_separately() -> None:
    account = make_account()
    limited, sibling = (make_client(account, rate_limit_per_minute=2) for _ in range(2))
    merchants = [Merchant(limited), Merchant(limited), Merchant(sibling)]
    statuses = [merchant.get("/ping").status_code for merchant in merchants for _ in range(2)]
    assert statuses == [200, 200, 429, 429, 200, 200]


def test_a_refused_request_does_not_count_for_the_rate_limit() -> None:
    merchant = make_merchant(rate_limit_per_minute=1)
    ApiClient.objects.update(enabled=False)
    for _ in range(3):
        merchant.get("/ping")
    ApiClient.objects.update(enabled=True)
    assert merchant.get("/ping").status_code == 200


def test_a_foreign_order_is_unknown_to_clients_who_have_orders() -> None:
    """Each client numbers its orders from 1: a stranger's order has the same number."""
    shop = make_shop(codes=3)
    strangers = [Merchant(make_client(shop.merchant.client.account)), make_merchant()]
    foreign = data(shop.buy())["reference"]
    for stranger in strangers:
        own = data(Shop(stranger, shop.product).buy())["reference"]
        assert refusal(stranger.get(f"/orders/{foreign}"))[:2] == (404, "order_not_found")
        assert data(stranger.get(f"/orders/{own}"))["reference"] == own
        assert [order["reference"] for order in data(stranger.get("/orders"))["items"]] == [own]


def test_a_foreign_order_looks_like_an_unknown_order() -> None:
    """Also for two clients of one account."""
    shop = make_shop()
    foreign = data(shop.buy())["reference"]
    sibling = Merchant(make_client(shop.merchant.client.account))
    unknown = "0" * len(foreign)
    answers = [sibling.get(f"/orders/{reference}") for reference in (foreign, unknown, "X")]
    assert {answer.content for answer in answers} == {answers[0].content}
    assert refusal(answers[0])[:2] == (404, "order_not_found")
    headers = [
        {name: value for name, value in answer.headers.items() if name != "X-Request-Id"}
        for answer in answers
    ]
    assert headers[0] == headers[1] == headers[2]
    assert data(sibling.get("/orders"))["items"] == []
    assert "reference" not in error(answers[0])
