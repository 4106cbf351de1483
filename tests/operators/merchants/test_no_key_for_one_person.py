"""No member of staff alone holds a key of a merchant, and the members hear of each step."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiClient, ApiKey
from core.backoffice.staff_roles import StaffRole
from merchants.email.sending import sweep_emails
from merchants.models import Invitation, Membership, Role
from tests.audited import recorded
from tests.commands import run
from tests.factories import Merchant, make_account, make_client
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours
from tests.operators.back_office import browser_with, form_of, text_of, url
from tests.operators.merchants.test_admin_keys import KEY

pytestmark = pytest.mark.django_db

NEW = "puppet@shop.example"


@pytest.fixture
def manager() -> Client:
    return browser_with(StaffRole.MERCHANT_MANAGER)


@pytest.fixture
def owner(merchant: Merchant) -> Membership:
    return make_member(merchant.account)


def subjects_to(user: User) -> list[str]:
    sweep_emails()
    return [one.subject.partition(":")[0] for one in mail.outbox if one.to == [user.email]]


def invite(browser: Client, account_id: int, role: Role = Role.OWNER) -> Any:
    form = {"account": account_id, "email": NEW, "role": role}
    return browser.post(reverse("admin:merchants_invitation_add"), form)


def test_a_manager_who_blocks_the_owner_gets_no_key(
    manager: Client, merchant: Merchant, owner: Membership
) -> None:
    manager.post(url(owner, "block"), {"reason": "stolen phone"})
    answers = [
        manager.post(url(merchant.client, "issue"), {"note": ""}),
        manager.post(url(merchant.client, "issue"), {"note": ""}),
        manager.post(url(merchant.client, "rotate"), {"overlap_hours": "2"}),
    ]
    invite(manager, merchant.account.pk)

    assert not any(KEY.search(text_of(one)) for one in answers)
    assert merchant.client.keys.get().expires_at is None
    assert ours(Invitation).get().state == "waiting"
    assert subjects_to(owner.user) == [
        "Person blocked",
        *["Creation of an API key started"] * 2,
        "Rotation of API keys started",
        "Person invited",
    ]


def test_staff_start_a_key_and_a_member_takes_it(
    manager: Client, merchant: Merchant, owner: Membership
) -> None:
    developer = make_member(merchant.account, Role.DEVELOPER)

    started = manager.post(url(merchant.client, "issue"), {"note": "hush"})

    assert not KEY.search(text_of(started))
    assert merchant.client.keys.count() == 1
    entry = recorded().get()
    assert (entry.action, entry.note) == ("key_started", "hush")
    sweep_emails()
    bodies = {one.to[0]: one.body for one in mail.outbox}
    assert set(bodies) == {owner.user.email, developer.user.email}
    assert "on the page of the client" in bodies[developer.user.email]
    assert "hush" not in bodies[developer.user.email]
    page = reverse("merchants:issue_key", args=[merchant.client.pk])
    browser = browser_of(developer)
    shown = browser.post(page)
    assert KEY.search(text_of(shown))
    assert merchant.client.keys.count() == 2


@pytest.mark.parametrize("member", [None, Role.VIEWER])
def test_without_a_member_two_members_of_staff_agree(
    member: Role | None, manager: Client, merchant: Merchant
) -> None:
    if member:
        make_member(merchant.account, member)
    second = browser_with(StaffRole.MERCHANT_MANAGER)
    page, form = url(merchant.client, "rotate"), {"overlap_hours": "2", "note": ""}

    for _again in range(2):
        assert "Ask another member of staff" in text_of(manager.post(page, form, follow=True))
    other = second.post(page, {**form, "overlap_hours": "0"})
    assert merchant.client.keys.get().expires_at is None
    assert "rotate the keys with 2 h overlap" in text_of(second.get(page))
    shown = second.post(page, form)

    assert not KEY.search(text_of(other))
    assert KEY.search(text_of(shown))
    assert merchant.client.keys.count() == 2


def test_a_key_of_no_account_does_not_become_one_of_an_account(
    manager: Client, merchant: Merchant
) -> None:
    reader = make_client()
    answer = manager.post(url(reader, "issue"), {"note": ""})
    assert not KEY.search(text_of(answer))
    run("rotate_key", reader.pk)

    page = manager.post(
        url(reader), form_of(manager, url(reader)) | {"account": merchant.account.pk}
    )

    assert "This client has keys that work" in text_of(page)
    assert ApiClient.objects.get(pk=reader.pk).account is None
    ApiKey.objects.filter(client=reader).update(revoked_at=timezone.now())
    manager.post(url(reader), form_of(manager, url(reader)) | {"account": merchant.account.pk})
    assert ApiClient.objects.get(pk=reader.pk).account == merchant.account


def test_a_request_for_a_key_ends_with_the_account_of_its_client(
    manager: Client, merchant: Merchant
) -> None:
    reader, second = make_client(), browser_with(StaffRole.MERCHANT_MANAGER)
    manager.post(url(reader, "issue"), {"note": ""})

    second.post(url(reader), form_of(second, url(reader)) | {"account": merchant.account.pk})
    shown = second.post(url(reader, "issue"), {"note": ""})

    assert ApiClient.objects.get(pk=reader.pk).account == merchant.account
    assert not KEY.search(text_of(shown))
    assert not reader.keys.exists()


@pytest.mark.parametrize("used_by", ["a key", "money"])
def test_the_first_owner_of_an_account_in_use_needs_two(manager: Client, used_by: str) -> None:
    account = make_account(balance="1" if used_by == "money" else "0")
    if used_by == "a key":
        run("create_client", "Shop", "--account", account.pk)

    invite(manager, account.pk)

    assert ours(Invitation).get().state == "waiting"


def test_the_first_owner_of_a_new_account_needs_one(manager: Client) -> None:
    invite(manager, make_account(balance="0").pk)

    assert ours(Invitation).get().state == "open"


def test_members_hear_what_staff_change_of_a_client_and_the_account(
    manager: Client, merchant: Merchant, owner: Membership
) -> None:
    form = form_of(manager, url(merchant.client))
    manager.post(url(merchant.client), form | {"rate_limit_per_minute": "7"})
    manager.post(url(merchant.client, "switch_off"), {"reason": "hush"})
    manager.post(url(merchant.account, "switch_off"), {"reason": "hush"})
    run("set_client", merchant.client.pk, "--rate-limit", 9)

    assert subjects_to(owner.user) == [
        "API client changed",
        "API client changed",
        "Account switched off",
        "API client changed",
    ]
    assert "Requests per minute: 7" in mail.outbox[0].body
    assert not any("hush" in str(one.body) for one in mail.outbox)


def test_a_blocked_member_hears_for_thirty_days(merchant: Merchant, owner: Membership) -> None:
    late, left = (make_member(merchant.account) for _ in range(2))
    User.objects.filter(pk__in=[one.user_id for one in (owner, late, left)]).update(is_active=False)
    for member, days in ((owner, 29), (late, 31)):
        member.blocked_at = timezone.now() - timedelta(days=days)
        member.save()

    run("rotate_key", merchant.client.pk)

    assert subjects_to(owner.user) == ["API keys rotated"]
    assert subjects_to(late.user) == subjects_to(left.user) == []
