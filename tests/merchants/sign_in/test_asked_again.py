"""A secret is shown to people who have just shown their password or second factor, and owners can
require a second factor of everybody."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import ApiClient, SecondFactor
from accounts.sign_in.confirmation import CONFIRMED, CONFIRMED_SECONDS
from audit.models import AuditAction, AuditEntry
from catalogue.models import VoucherCode
from merchants.models import Email, Membership, Role
from operators.telegram.models import TelegramLinkCode
from tests.factories import make_account, make_client, make_product
from tests.merchants.people import PASSWORD, browser_of, make_member
from tests.merchants.sign_in.test_second_factor import code_now, enrol
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in

pytestmark = pytest.mark.django_db

ON = "/merchant/profile/two-factor/on/"


def unconfirmed(browser: Client) -> Client:
    """The browser, whose person has shown their password or second factor long ago."""
    session = browser.session
    session.pop(CONFIRMED, None)
    session.save()
    return browser


def key_in(answer: object) -> str:
    """The key that the page shows, or nothing."""
    found = re.search(r"vk_\w+", answer.content.decode())  # type: ignore[attr-defined]
    return found[0] if found else ""


@pytest.fixture
def owner() -> Membership:
    return make_member()


@pytest.fixture
def shop(owner: Membership) -> ApiClient:
    return make_client(owner.account)


@pytest.mark.parametrize("page", ["issue", "rotate"])
def test_a_members_key_asks_for_the_password(page: str, owner: Membership, shop: ApiClient) -> None:
    browser = unconfirmed(browser_of(owner))
    path, sent = f"/merchant/clients/{shop.pk}/keys/{page}/", {"overlap_hours": 1}

    assert "Your password" in browser.get(path).content.decode()
    for wrong in ({}, {"password": ""}, {"password": "a wrong one"}):
        assert not key_in(browser.post(path, {**sent, **wrong}))
    assert not shop.keys.exists()
    shown = browser.post(path, {**sent, "password": PASSWORD}).content.decode()
    assert re.search(r"vk_\w+", shown)
    assert PASSWORD not in shown


def test_a_member_with_a_second_factor_shows_its_code(owner: Membership, shop: ApiClient) -> None:
    browser = browser_of(owner)
    enrol(browser)
    path = f"/merchant/clients/{shop.pk}/keys/issue/"
    unconfirmed(browser)

    assert not key_in(browser.post(path, {"password": PASSWORD}))
    assert not key_in(browser.post(path, {"factor_code": "000000"}))
    SecondFactor.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    assert key_in(browser.post(path, {"factor_code": code_now()}))


def test_the_question_comes_again_after_five_minutes(owner: Membership, shop: ApiClient) -> None:
    browser, path = browser_of(owner), f"/merchant/clients/{shop.pk}/keys/issue/"
    assert key_in(browser.post(path))
    with later(CONFIRMED_SECONDS + 1):
        assert not key_in(browser.post(path))
    with later(-2 * CONFIRMED_SECONDS):  # a clock that was set back
        assert not key_in(browser.post(path))


@contextmanager
def later(seconds: float) -> Iterator[None]:
    now = time.time()
    with patch("accounts.sign_in.confirmation.time.time", lambda: now + seconds):
        yield


def test_wrong_passwords_lock_the_member_out(
    owner: Membership, shop: ApiClient, settings: Any
) -> None:
    browser = unconfirmed(browser_of(owner))
    path = f"/merchant/clients/{shop.pk}/keys/issue/"
    for _ in range(settings.AXES_FAILURE_LIMIT):
        browser.post(path, {"password": "a guess"})
    assert not key_in(browser.post(path, {"password": PASSWORD}))


def test_a_stolen_session_turns_no_second_factor_on(owner: Membership) -> None:
    browser = unconfirmed(browser_of(owner))
    browser.get(ON)
    browser.post(ON, {"code": code_now()})
    assert not SecondFactor.objects.filter(confirmed=True).exists()
    browser.post(ON, {"code": code_now(), "password": PASSWORD})
    assert SecondFactor.objects.filter(confirmed=True).exists()


def test_staff_show_their_code_before_a_key_or_a_code_is_shown() -> None:
    staff = make_staff(superuser=True)
    browser = signed_in(staff)
    client = make_client(make_account())
    make_product(codes=1)
    code = ours(VoucherCode).get()
    pages = [
        reverse("admin:accounts_apiclient_issue", args=[client.pk]),
        reverse("admin:accounts_apiclient_rotate", args=[client.pk]),
        reverse("admin:catalogue_vouchercode_reveal", args=[code.pk]),
        reverse("telegram_link"),
    ]
    for page in pages:
        unconfirmed(browser)
        refused = browser.post(page, {"overlap_hours": 1})
        assert refused.status_code == 200
        assert "Code of your second factor" in refused.content.decode()
        assert not client.keys.exists()
        assert not AuditEntry.objects.filter(action=AuditAction.CODE_REVEALED).exists()
        assert not TelegramLinkCode.objects.filter(user=staff).exists()
    sent = {"overlap_hours": 1}
    for page in pages:
        browser.post(page, {**sent, "factor_code": code_now(None)} if page == pages[0] else sent)
    assert client.keys.count() == 2
    assert AuditEntry.objects.filter(action=AuditAction.CODE_REVEALED).exists()
    assert TelegramLinkCode.objects.filter(user=staff).exists()


def test_everybody_sets_up_the_second_factor_that_owners_require(owner: Membership) -> None:
    viewer = make_member(owner.account, Role.VIEWER)
    page = "/merchant/people/second-factors/"
    assert viewer.user.email in browser_of(owner).get(page).content.decode()

    browser_of(owner).post(page)  # without a value: nothing changes
    assert browser_of(viewer).get("/merchant/").status_code == 200
    browser_of(owner).post(page, {"required": "on"})

    browser = browser_of(viewer)
    for path in ("/merchant/", "/merchant/orders/", "/merchant/profile/", "/merchant/people/"):
        assert browser.get(path)["Location"].partition("?")[0] == ON
    assert browser.post("/merchant/wallet/alert/").status_code == 302
    assert "require a second factor" in browser.get(ON).content.decode()
    codes = browser.post(f"{ON}?next=/merchant/orders/", {"code": code_now(viewer)})
    assert 'href="/merchant/orders/"' in codes.content.decode()
    assert browser.get("/merchant/").status_code == 200
    assert browser_of(owner).get("/merchant/").status_code == 302
    assert browser_of(make_member()).get("/merchant/").status_code == 200  # another account

    entry = AuditEntry.objects.filter(action=AuditAction.ACCOUNT_CHANGED).latest("pk")
    assert (entry.note, entry.actor) == ("Second factor required", owner.user)
    assert Email.objects.filter(facts__change="Second factor required of everybody").exists()


def test_a_second_factor_that_is_turned_off_is_set_up_again(owner: Membership) -> None:
    browser = browser_of(owner)
    enrol(browser)
    browser.post("/merchant/people/second-factors/", {"required": "on"})
    browser.post("/merchant/profile/two-factor/off/", {"code": code_now()})
    assert browser.get("/merchant/")["Location"].partition("?")[0] == ON

    enrol(browser)
    browser.post("/merchant/people/second-factors/", {"required": "off"})
    browser.post("/merchant/profile/two-factor/off/", {"code": code_now()})
    assert browser.get("/merchant/").status_code == 200


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.VIEWER])
def test_only_owners_require_it(owner: Membership, role: Role) -> None:
    browser = browser_of(make_member(owner.account, role))
    answer = browser.post("/merchant/people/second-factors/", {"required": "on"})
    assert answer.status_code == 403
    owner.account.refresh_from_db()
    assert not owner.account.needs_factors
