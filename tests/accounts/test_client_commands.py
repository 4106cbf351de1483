"""`create_client`, `set_client` and `set_account`: create, limit and switch off clients."""

import pytest
from django.core.exceptions import ValidationError

from accounts.addresses import MAX_NETWORKS
from accounts.form_fields import NetworksField
from accounts.models import ApiClient, ApiKey
from tests.commands import refusal, run
from tests.factories import Merchant, make_account
from tests.neighbour import ours

pytestmark = pytest.mark.django_db


def test_a_new_client_gets_a_key_that_works() -> None:
    account = make_account(balance="5.00")

    printed = run("create_client", "Shop", "--account", account.pk, "--rate-limit", 7)

    merchant = Merchant(ApiClient.objects.get(pk=printed["client_id"]))
    merchant.key = printed["api_key"]
    assert merchant.get("/ping").json()["data"]["rate_limit_per_minute"] == 7
    assert merchant.get("/balance").json()["data"]["balance"] == 5.0
    assert printed["api_key"] not in str(list(ours(ApiKey).values()))


def test_two_clients_of_an_account_have_different_names(merchant: Merchant) -> None:
    account, name = merchant.client.account_id, merchant.client.name

    assert refusal("create_client", name.upper(), "--account", account) == (
        "name: Another client of this account has this name. Choose another one."
    )
    run("create_client", name, "--account", make_account().pk)
    for _ in range(2):
        run("create_client", name)  # without an account
    run("set_client", merchant.client.pk, "--rate-limit", 7)


def test_a_client_without_an_account_can_only_read() -> None:
    printed = run("create_client", "Reader")

    merchant = Merchant(ApiClient.objects.get(pk=printed["client_id"]))
    assert merchant.get("/products").status_code == 200
    assert merchant.get("/balance").status_code == 409


def test_an_allowlist_is_applied_and_replaced(merchant: Merchant) -> None:
    client = merchant.client

    run("set_client", client.pk, "--allow", "203.0.113.0/24", "--allow", "2001:db8::/32")
    assert merchant.get("/ping").status_code == 403

    printed = run("set_client", client.pk, "--allow", "127.0.0.1")
    assert printed["allowed_networks"] == ["127.0.0.1"]
    assert merchant.get("/ping").status_code == 200


@pytest.mark.parametrize("mapped", ["::ffff:10.0.0.7", "::ffff:10.0.0.0/104", "::FFFF:a00:7"])
@pytest.mark.parametrize("command", ["create_client", "set_client"])
def test_an_ipv4_mapped_address_is_refused_as_in_the_forms(
    merchant: Merchant, command: str, mapped: str
) -> None:
    who = {"create_client": "Shop", "set_client": merchant.client.pk}[command]
    with pytest.raises(ValidationError) as by_form:
        NetworksField().clean(mapped)

    assert refusal(command, who, "--allow", mapped) == (
        f"allowed_networks: {by_form.value.messages[0]}"
    )
    assert "as an IPv4 address" in by_form.value.messages[0]
    assert ours(ApiClient).get() == merchant.client


def test_networks_are_normalized_as_in_the_forms(merchant: Merchant) -> None:
    words = ["10.1.2.3/8", "10.0.0.0/8", "192.0.2.7/32", " 2001:DB8::/32", "::0/0"]

    printed = run("set_client", merchant.client.pk, *(f"--allow={word}" for word in words))

    assert printed["allowed_networks"] == ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::/0"]
    assert printed["allowed_networks"] == NetworksField().clean("\n".join(words))


def test_an_allowlist_has_a_limit(merchant: Merchant) -> None:
    words = [f"--allow=10.0.{n}.0/24" for n in range(MAX_NETWORKS + 1)]

    assert str(MAX_NETWORKS) in refusal("set_client", merchant.client.pk, *words)
    run("set_client", merchant.client.pk, *words[1:])


def test_a_client_is_switched_off_and_on(merchant: Merchant) -> None:
    assert run("set_client", merchant.client.pk, "--disable")["enabled"] is False
    assert merchant.get("/ping").json()["error"]["code"] == "client_disabled"
    assert run("set_client", merchant.client.pk, "--disable")["enabled"] is False

    assert run("set_client", merchant.client.pk, "--enable")["enabled"] is True
    assert merchant.get("/ping").status_code == 200


def test_switching_an_account_off_disables_its_clients(merchant: Merchant) -> None:
    assert run("set_account", merchant.client.account_id, "--disable")["enabled"] is False
    assert merchant.get("/ping").json()["error"]["code"] == "client_disabled"

    run("set_account", merchant.client.account_id, "--enable")
    assert merchant.get("/ping").status_code == 200


def test_options_that_are_not_given_change_nothing(merchant: Merchant) -> None:
    run("set_client", merchant.client.pk, "--allow", "127.0.0.1", "--rate-limit", 9, "--disable")

    assert run("set_client", merchant.client.pk) == {
        "client_id": merchant.client.pk,
        "name": merchant.client.name,
        "account_id": merchant.client.account_id,
        "enabled": False,
        "rate_limit_per_minute": 9,
        "allowed_networks": ["127.0.0.1"],
    }


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--rate-limit", "0"], "rate_limit_per_minute: "),
        (["--rate-limit", "-1"], "rate_limit_per_minute: "),
        (["--rate-limit", str(2**31)], "rate_limit_per_minute: "),
        (["--rate-limit", "many"], "a whole number such as 12 is needed: many is not"),
        (["--allow", "foo", "--allow", "bar"], "'bar' is not an IP address or network."),
        (["--allow", "300.1.1.1"], "'300.1.1.1' is not an IP address or network."),
        (["--allow", "10.0.0.0/8", "--allow", "10.0.0.0/33"], "is not an IP address or network."),
        (["--allow", ""], "allowed_networks"),
        (["--account", "4711"], "There is no account 4711."),
        (["--account", str(2**70)], "There is no account"),
    ],
)
def test_a_bad_client_is_refused_in_one_line(words: list[str], line: str) -> None:
    assert line in refusal("create_client", "Shop", *words)
    assert not ours(ApiClient).exists()


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "a\nb", "a\x00b", "a\ud800b"])
def test_a_bad_name_is_refused(name: str) -> None:
    assert "name" in refusal("create_client", name)
    assert not ours(ApiClient).exists()


def test_a_refused_change_changes_nothing(merchant: Merchant) -> None:
    before = run("set_client", merchant.client.pk)

    refusal("set_client", merchant.client.pk, "--disable", "--rate-limit", 0)
    refusal("set_client", merchant.client.pk, "--disable", "--enable")

    assert run("set_client", merchant.client.pk) == before


@pytest.mark.parametrize("command", ["set_client", "set_account", "rotate_key"])
@pytest.mark.parametrize("row", ["0", "-1", "999999", str(2**64)])
def test_an_unknown_id_is_named_in_the_message(db: None, command: str, row: str) -> None:
    assert row in refusal(command, row)
