"""What the programs of an account use does not change after the account left for another cell,
which has a copy: a revoked key would go on working there (accounts/moving.py)."""

from collections.abc import Callable
from typing import Any

import pytest

from accounts.keys import find_client, issue_key
from accounts.models import ApiClient, ApiKey
from accounts.moving import AccountLeft, has_left, mark_left
from catalogue.models import ReferenceLink, Shelf
from catalogue.reference_links import replace_references, unlink_reference
from merchants.api_access import clients
from merchants.models import Role
from tests.commands import refusal, run
from tests.concurrency.racing import execute, holding_locks, in_background, wait_for_waiting
from tests.factories import link, make_client, make_product
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import form_of, signed_in, url

MOVING = "moving to another cell"


class Left:
    """An account that left, with a client, its key, and a reference."""

    def __init__(self) -> None:
        self.member = make_member(role=Role.OWNER)
        self.account = self.member.account
        self.client = make_client(self.account, allowed_networks=["10.0.0.0/8"])
        self.secret = issue_key(client=self.client, actor=None)
        self.key = ApiKey.objects.get(client=self.client)
        self.product = make_product(codes=1)
        self.link = link(self.account, "card", Shelf.objects.get(product=self.product))
        self.before = self.rows()
        mark_left(self.account)

    def rows(self) -> list[Any]:
        """What must not change."""
        return [
            list(ApiClient.objects.filter(account=self.account).values()),
            list(ApiKey.objects.filter(client__account=self.account).values()),
            list(ReferenceLink.objects.filter(account=self.account).values()),
        ]


@pytest.fixture
def left(db: None) -> Left:
    return Left()


def test_commands_refuse(left: Left) -> None:
    client, account = left.client.pk, left.account.pk
    for words in (
        ["rotate_key", client],
        ["revoke_key", left.key.prefix],
        ["create_client", "New", "--account", account],
        ["set_client", client, "--disable"],
        ["set_client", client, "--allow", "127.0.0.1"],
        ["link_reference", account, "other", left.product.pk],
    ):
        assert MOVING in refusal(*words), words
    assert left.rows() == left.before
    assert find_client(left.secret) == left.client
    run("set_account", account, "--disable")  # which the move asks for


def test_services_refuse(left: Left) -> None:
    user, client = left.member.user, left.client
    shelf = left.link.shelf_id
    calls: list[Callable[[], object]] = [
        lambda: clients.add_client(account=left.account, name="x", actor=user),
        lambda: clients.rename_client(client=client, name="x", actor=user),
        lambda: clients.switch_client(client=client, enabled=False, actor=user),
        lambda: clients.change_allowlist(
            client=client, networks=[], before=client.allowed_networks, actor=user
        ),
        lambda: clients.issue_key(client=client, actor=user),
        lambda: clients.rotate_key(client=client, overlap_hours=0, actor=user),
        lambda: clients.revoke_key(key=left.key, actor=user),
        lambda: unlink_reference(account_id=left.account.pk, product_id=left.product.pk),
        lambda: replace_references(account_id=left.account.pk, references={shelf: "x"}),
    ]
    for call in calls:
        with pytest.raises(AccountLeft):
            call()
    assert left.rows() == left.before


def test_pages_of_merchants_say_it(left: Left) -> None:
    browser, client = browser_of(left.member), f"/merchant/clients/{left.client.pk}"
    for address, form in {
        "/merchant/clients/new/": {"name": "x"},
        f"{client}/rename/": {"name": "x"},
        f"{client}/switch/": {"enabled": "off"},
        f"{client}/keys/issue/": {},
        f"{client}/keys/rotate/": {"overlap_hours": "0"},
        f"{client}/keys/{left.key.pk}/revoke/": {},
        f"{client}/allowlist/": {"networks": "127.0.0.1"},
        "/merchant/references/name/": {"product": str(left.product.pk), "reference": "x"},
    }.items():
        answer = browser.post(address, form, follow=True)
        assert MOVING in answer.content.decode(), address
        assert answer.status_code in (200, 409), address
    assert left.rows() == left.before


def test_pages_of_staff_say_it(left: Left) -> None:
    browser = signed_in()
    client, reference = url(left.client), url(left.link)
    actions = client.removesuffix("change/")
    for address, form in {
        f"{actions}issue-key/": {},
        f"{actions}rotate-key/": {"overlap_hours": "0"},
        f"{actions}keys/{left.key.pk}/revoke/": {},
        f"{actions}switch-off/": {"reason": "x"},
        client: {**form_of(browser, client), "rate_limit_per_minute": "7"},
        reference: {**form_of(browser, reference), "reference": "x"},
        url(left.link, "delete"): {"post": "yes"},
    }.items():
        answer = browser.post(address, form, follow=True)
        assert (answer.status_code, MOVING in answer.content.decode()) == (409, True), address
    assert left.rows() == left.before


@pytest.mark.django_db(transaction=True)
def test_a_change_is_in_the_file_or_refused() -> None:
    """A change that began before the account left is committed before the account has left, and
    one that waited for it is refused."""
    account = make_member().account
    lock = "SELECT FROM accounts_account WHERE id = %s FOR NO KEY UPDATE"
    with (
        holding_locks(lock, account.pk) as change,
        in_background(lambda: mark_left(account)),
    ):
        wait_for_waiting()
        assert not has_left(account.pk)
        change.rollback()
    assert has_left(account.pk)

    execute("UPDATE accounts_account SET left_at = NULL")
    client = make_client(account)
    update = "UPDATE accounts_account SET left_at = now() WHERE id = %s"
    with (
        holding_locks(update, account.pk) as leaver,
        in_background(lambda: refusal("rotate_key", client.pk)) as refused,
    ):
        wait_for_waiting()
        leaver.commit()
        assert MOVING in refused.result()
