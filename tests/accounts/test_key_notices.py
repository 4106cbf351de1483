"""The members receive an email about each change of a key, whoever makes it."""

import io
from collections.abc import Callable

import pytest
from django.core import mail
from django.core.management import call_command
from django.db import transaction
from django.test import Client

from accounts.api_access import keys
from accounts.models import ApiClient
from merchants.email.sending import sweep_emails
from merchants.models import Email, Membership, Role
from tests.factories import Merchant, make_merchant
from tests.merchants.people import make_member
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Merchant:
    return make_merchant()


@pytest.fixture
def owner(shop: Merchant) -> Membership:
    make_member(make_merchant().client.account)  # somebody else's owner
    return make_member(shop.account)


def by_staff(page: str) -> Callable[[ApiClient], object]:
    def change(client: ApiClient) -> object:
        browser: Client = signed_in()
        return browser.post(url(client, page), {"overlap_hours": "3", "note": "hush"})

    return change


def by_shell(*words: str) -> Callable[[ApiClient], object]:
    def change(client: ApiClient) -> object:
        target = client.keys.earliest("pk").prefix if words[0] == "revoke_key" else client.pk
        return call_command(words[0], str(target), *words[1:], stdout=io.StringIO())

    return change


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        (by_staff("issue"), "Creation of an API key started"),
        (by_staff("rotate"), "Rotation of API keys started"),
        (by_shell("rotate_key"), "API keys rotated"),
        (by_shell("revoke_key"), "API key revoked"),
    ],
)
def test_each_member_receives_one_email(
    change: Callable[[ApiClient], object], subject: str, shop: Merchant, owner: Membership
) -> None:
    viewer = make_member(shop.account, Role.VIEWER)
    change(shop.client)

    sweep_emails()
    message, other = mail.outbox
    assert {*message.to, *other.to} == {owner.user.email, viewer.user.email}
    assert message.subject == f"{subject}: {shop.client.account}"
    assert shop.client.name in str(message.body)
    assert "hush" not in str(message.body)  # the note is for staff
    newest = shop.client.keys.latest("pk").prefix
    assert (f"Key: {newest}" in str(message.body)) == ("started" not in subject)


def test_the_email_is_part_of_the_change(shop: Merchant, owner: Membership) -> None:
    with transaction.atomic():
        keys.issue_key(client=shop.client, actor=make_staff())
        transaction.set_rollback(True)
    assert not ours(Email).exists()


def test_revoking_again_sends_no_second_email(shop: Merchant, owner: Membership) -> None:
    key = shop.client.keys.get()
    for _ in range(2):
        keys.revoke_key(key=key, actor=None)
    assert ours(Email).count() == 1


def test_a_key_of_a_client_without_an_account_sends_no_email() -> None:
    call_command("create_client", "Lone", stdout=io.StringIO())
    assert not ours(Email).exists()
