"""Staff edit accounts and clients, and no mistake of theirs can break the API."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Account, ApiClient
from audit.models import AuditEntry
from tests.factories import Merchant, make_account, make_client
from tests.neighbour import ours
from tests.operators.back_office import form_of, make_staff, signed_in, url, without_frame
from wallets.models import Wallet

NEW_ACCOUNT = reverse("admin:accounts_account_add")
NEW_CLIENT = reverse("admin:accounts_apiclient_add")


def save(browser: Client, obj: Any, **changes: Any) -> Any:
    data = {**form_of(browser, url(obj)), **changes}
    data = {name: value for name, value in data.items() if value is not None}
    return browser.post(url(obj), data)


def errors(answer: Any) -> Any:
    return answer.context["adminform"].form.errors


def test_an_account_opens_with_an_empty_wallet(browser: Client) -> None:
    data = {"name": "Shop", "currency": "EUR", "enabled": "on", "open_wallet": "on"}

    assert browser.post(NEW_ACCOUNT, data).status_code == 302
    wallet = ours(Wallet).get()
    assert (wallet.account.name, wallet.account.currency) == ("Shop", "EUR")
    assert wallet.balance == 0


def test_an_account_can_get_its_wallet_later(browser: Client) -> None:
    browser.post(NEW_ACCOUNT, {"name": "Shop", "currency": "EUR", "enabled": "on"})
    account = ours(Account).get()
    assert not ours(Wallet).exists()

    assert save(browser, account, open_wallet="on").status_code == 302
    assert ours(Wallet).get().account == account


@pytest.mark.parametrize("currency", ["", "u\u017fd", "US", "USDT", "U$D", "USD\n", "usd"])
def test_a_currency_is_three_letters(browser: Client, currency: str) -> None:
    answer = browser.post(NEW_ACCOUNT, {"name": "Shop", "currency": currency, "enabled": "on"})

    if currency.strip() in ("USD", "usd"):
        assert ours(Account).count() == 1
    else:
        assert "currency" in errors(answer)
    assert set(ours(Account).values_list("currency", flat=True)) <= {"USD"}


def test_the_currency_cannot_be_changed(browser: Client) -> None:
    account = make_account(currency="USD")

    assert save(browser, account, currency="EUR", name="Renamed").status_code == 302
    account.refresh_from_db()
    assert (account.name, account.currency) == ("Renamed", "USD")


def test_switching_a_client_off_asks_and_works_at_once(browser: Client, merchant: Merchant) -> None:
    """tests/operators/merchants/test_account_hub.py does the same for an account."""
    off, on = url(merchant.client, "switch_off"), url(merchant.client, "switch_on")
    question = browser.get(off).content.decode()
    assert "Keys that stop working at once: 1." in question
    assert on not in browser.get(url(merchant.client)).content.decode()
    browser.post(off, {"reason": " "})
    assert merchant.get("/ping").status_code == 200

    browser.post(off, {"reason": "leaked"})
    assert merchant.get("/ping").json()["error"]["code"] == "client_disabled"
    entry = AuditEntry.objects.latest("pk")
    assert (entry.note, entry.changes) == ("leaked", {"enabled": [True, False]})
    assert off not in browser.get(url(merchant.client)).content.decode()

    browser.post(on, {"reason": "replaced"})
    assert merchant.get("/ping").status_code == 200


def test_the_form_of_a_client_does_not_switch_it(browser: Client, merchant: Merchant) -> None:
    assert save(browser, merchant.client, enabled=None, name="Renamed").status_code == 302
    merchant.client.refresh_from_db()
    assert (merchant.client.name, merchant.client.enabled) == ("Renamed", True)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("", []),
        ("  \r\n\r\n", []),
        ("203.0.113.7", ["203.0.113.7"]),
        ("203.0.113.7/32", ["203.0.113.7"]),
        ("10.1.2.3/8\r\n 2001:DB8::1/32 ,\n10.0.0.0/8", ["10.0.0.0/8", "2001:db8::/32"]),
        ("0.0.0.0/0", ["0.0.0.0/0"]),
    ],
)
def test_networks_are_stored_in_standard_form(
    browser: Client, merchant: Merchant, typed: str, kept: list[str]
) -> None:
    assert save(browser, merchant.client, allowed_networks=typed).status_code == 302

    merchant.client.refresh_from_db()
    assert merchant.client.allowed_networks == kept
    assert merchant.get("/ping").status_code in (200, 403)
    assert form_of(browser, url(merchant.client))["allowed_networks"] == "\n".join(kept)


def test_a_mistyped_network_is_refused(browser: Client, merchant: Merchant) -> None:
    form = form_of(browser, url(merchant.client))
    with without_frame(""):  # only the errors are read
        for typed in (
            "example.com",
            "10.0.0.0/33",
            "10.0.0.1 10.0.0.2",
            "300.1.1.1",
            "::ffff:10.0.0.1",
            "10.0.0.1\nx",
            "1" * 5000,
            "\u0661\u0660.0.0.1",
            "10.0.0.1\x00",
            "\n".join(f"10.0.{n}.0/24" for n in range(201)),
        ):
            answer = browser.post(url(merchant.client), form | {"allowed_networks": typed})
            assert "allowed_networks" in errors(answer), ascii(typed)
    merchant.client.refresh_from_db()
    assert merchant.client.allowed_networks == []
    assert merchant.get("/ping").status_code == 200


def test_a_rate_limit_is_above_zero(browser: Client, merchant: Merchant) -> None:
    form = form_of(browser, url(merchant.client))
    with without_frame(""):  # only the errors are read
        for limit in ("", "0", "-1", "x", "1.5", "9999999999"):
            answer = browser.post(url(merchant.client), form | {"rate_limit_per_minute": limit})
            assert "rate_limit_per_minute" in errors(answer), limit


def test_two_clients_of_an_account_have_different_names(browser: Client) -> None:
    account = make_account()
    shop, other = make_client(account, name="Shop"), make_client(account)
    alone = make_client(name="shop")

    with without_frame(""):  # only the errors are read
        form = form_of(browser, url(other))
        assert "name" in errors(browser.post(url(other), form | {"name": "SHOP"}))
        form = form_of(browser, url(alone)) | {"account": account.pk}
        assert "name" in errors(browser.post(url(alone), form))
        form = form_of(browser, NEW_CLIENT) | {"name": "shop", "account": account.pk}
        assert "name" in errors(browser.post(NEW_CLIENT, form))
    assert save(browser, shop, rate_limit_per_minute="7").status_code == 302
    assert save(browser, make_client(make_account()), name="Shop").status_code == 302


def test_a_client_may_lack_an_account_but_keeps_its_first_one(browser: Client) -> None:
    first, second = make_account(), make_account()
    browser.post(NEW_CLIENT, {**form_of(browser, NEW_CLIENT), "name": "App"})
    client = ours(ApiClient).get()
    assert client.account is None

    save(browser, client, account=first.pk)
    save(browser, client, account=second.pk)

    client.refresh_from_db()
    assert client.account == first


@pytest.mark.parametrize("page", ["account", "client"])
def test_accounts_and_clients_cannot_be_deleted(
    browser: Client, merchant: Merchant, page: str
) -> None:
    target: Any = merchant.client if page == "client" else merchant.client.account

    assert browser.post(url(target, "delete"), {"post": "yes"}).status_code == 403
    assert "/delete/" not in browser.get(url(target)).content.decode()


def test_opening_a_wallet_needs_the_permission(db: None) -> None:
    browser = signed_in(make_staff("accounts.add_account", "accounts.view_account"))
    data = {"name": "Shop", "currency": "EUR", "enabled": "on", "open_wallet": "on"}

    browser.post(NEW_ACCOUNT, data)

    assert ours(Account).exists()
    assert not ours(Wallet).exists()
