"""Messages say what is wrong, and what to do."""

import pytest

from accounts.models import Account
from tests.answers import CheckedClient
from tests.factories import Merchant, make_merchant

pytestmark = pytest.mark.django_db


def message(header: str) -> str:
    answer = CheckedClient().get("/api/v1/ping", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_token"
    text: str = answer.json()["error"]["message"]
    return text


@pytest.mark.parametrize("header", ["{key}", "Token {key}", "Bearer{key}", "Basic {key}", " "])
def test_a_key_without_bearer_is_told_so(header: str, merchant: Merchant) -> None:
    assert "Write `Bearer` and a space before the key" in message(header.format(key=merchant.key))


def test_an_unknown_key_is_not_told_about_bearer() -> None:
    assert "Write `Bearer`" not in message("Bearer vt_nobody_secret")


def test_a_disabled_client_and_a_disabled_account_are_told_apart() -> None:
    def refused(merchant: Merchant) -> str:
        answer = merchant.get("/ping")
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "client_disabled"
        text: str = answer.json()["error"]["message"]
        return text

    client, account = make_merchant(), make_merchant()
    client.client.enabled = False
    client.client.save()
    Account.objects.filter(clients=account.client).update(enabled=False)
    assert "This client of your account is disabled" in refused(client)
    assert refused(account) == "This account is disabled."
