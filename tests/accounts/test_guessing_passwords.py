"""Guesses of passwords are limited before a password is hashed, per name and per address."""

import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessLog
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.sign_in.limits import PasswordBackend
from audit.models import AuditAction, AuditEntry
from core.http.turns import Turns
from merchants.email.sending import sweep_emails
from merchants.tasks import clear_sessions
from tests.answers import without_random_values
from tests.browsing import PASSWORD
from tests.merchants.people import follow_link, make_member
from tests.operators.back_office import show_factor
from tests.tasks.running import wait_until

pytestmark = pytest.mark.django_db

MEMBER = "owner@merchant.example"
STAFF = "anna"
VIEWER = "viewer@merchant.example"
HOME, ELSEWHERE = "203.0.113.5", "203.0.113.6"
LIMIT = 3
PAGES = {"merchant site": ("/merchant/sign-in/", MEMBER), "back office": ("/admin/login/", STAFF)}
on_each_site = pytest.mark.parametrize(("page", "name"), PAGES.values(), ids=PAGES)


@pytest.fixture(autouse=True)
def _people(settings: Settings, db: None) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    settings.LOGIN_FAILURE_LIMIT_PER_ADDRESS = settings.LOGIN_FAILURE_LIMIT_PER_NAME = LIMIT
    hashed = make_member(email=MEMBER).user.password
    User.objects.create(username=STAFF, password=hashed, is_staff=True, is_superuser=True)


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each time that a password was hashed."""
    done: list[str] = []
    encode = PBKDF2PasswordHasher.encode

    def counting(self: Any, password: str, *more: Any) -> str:
        done.append(password)
        return encode(self, password, *more)

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", counting)
    return done


def sign_in(page: str, name: str, password: str = "wrong", *, address: str = HOME) -> Any:
    return Client(REMOTE_ADDR=address).post(page, {"username": name, "password": password})


def guess_from_many_addresses(page: str, name: str, times: int = LIMIT) -> list[int]:
    return [
        sign_in(page, name, address=f"198.51.100.{number}").status_code for number in range(times)
    ]


def guess_many_names(page: str, *, address: str = HOME) -> list[int]:
    return [
        sign_in(page, f"name{number}@merchant.example", address=address).status_code
        for number in range(LIMIT)
    ]


@on_each_site
def test_an_address_is_limited_whatever_names_it_tries(page: str, name: str) -> None:
    assert guess_many_names(page) == [200, 200, 429]

    assert sign_in(page, name, PASSWORD).status_code == 429
    assert sign_in(page, name, PASSWORD, address=ELSEWHERE).status_code == 302


@on_each_site
def test_a_name_is_limited_from_all_addresses_together(page: str, name: str) -> None:
    assert guess_from_many_addresses(page, name) == [200, 200, 429]

    assert sign_in(page, name, PASSWORD, address=ELSEWHERE).status_code == 429


def test_one_ipv6_network_counts_as_one_address() -> None:
    for number in range(LIMIT):
        sign_in("/admin/login/", f"name{number}", address=f"2001:db8:1:2::{number}")

    assert sign_in("/admin/login/", STAFF, PASSWORD, address="2001:db8:1:2:a::").status_code == 429
    assert sign_in("/admin/login/", STAFF, PASSWORD, address="2001:db8:1:3::1").status_code == 302


def test_callers_without_an_address_count_as_one(settings: Settings) -> None:
    settings.TRUSTED_PROXIES = [HOME]  # and the proxy does not say who called it
    guess_many_names("/admin/login/")

    assert sign_in("/admin/login/", STAFF, PASSWORD).status_code == 429


@on_each_site
@pytest.mark.parametrize("known", [True, False])
def test_a_refused_guess_is_not_hashed(
    page: str, name: str, known: bool, hashes: list[str]
) -> None:
    name = name if known else f"un{name}"
    guess_from_many_addresses(page, name)
    assert len(hashes) == LIMIT

    refused = sign_in(page, name, PASSWORD)
    assert (refused.status_code, len(hashes)) == (429, LIMIT)


@on_each_site
def test_known_and_unknown_names_get_the_same_responses(page: str, name: str) -> None:
    def responses(name: str, net: str) -> list[tuple[int, str]]:
        found = [sign_in(page, name, address=f"{net}.{number}") for number in range(LIMIT + 2)]
        return [(one.status_code, without_random_values(one).replace(name, "")) for one in found]

    assert responses(name, "198.51.100") == responses(f"un{name}", "192.0.2")


@on_each_site
def test_a_lockout_leaves_one_entry_however_long_the_guesses_go_on(page: str, name: str) -> None:
    guess_from_many_addresses(page, name, times=LIMIT * 3)
    guess_many_names(page)

    entries = AuditEntry.objects.filter(action=AuditAction.SIGN_IN_REFUSED)
    assert list(entries.values_list("reference", flat=True)) == [name]


def test_refused_guesses_do_not_prolong_the_lockout() -> None:
    guess_from_many_addresses("/admin/login/", STAFF)
    before = list(AccessAttempt.objects.order_by("pk").values())
    guess_from_many_addresses("/admin/login/", STAFF, times=LIMIT * 3)
    assert list(AccessAttempt.objects.order_by("pk").values()) == before

    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=15))
    assert sign_in("/admin/login/", STAFF, PASSWORD).status_code == 302


def test_signing_in_as_oneself_does_not_reset_the_count_of_an_address() -> None:
    for number in range(LIMIT - 1):
        sign_in("/admin/login/", f"name{number}")
        assert sign_in("/admin/login/", STAFF, PASSWORD).status_code == 302

    assert sign_in("/admin/login/", "another").status_code == 429


@on_each_site
def test_a_stranger_cannot_keep_somebody_out_of_an_address_they_use(page: str, name: str) -> None:
    assert sign_in(page, name, PASSWORD, address=HOME).status_code == 302
    guess_from_many_addresses(page, name, times=LIMIT * 2)

    assert sign_in(page, name, PASSWORD, address=ELSEWHERE).status_code == 429
    assert sign_in(page, name, PASSWORD, address=HOME).status_code == 302
    # Even there, guesses are limited.
    assert [sign_in(page, name, address=HOME).status_code for _ in range(2)] == [200, 429]


@on_each_site
def test_an_address_is_known_for_those_who_signed_in_there_only(page: str, name: str) -> None:
    make_member(email="other@merchant.example")
    User.objects.create(
        username="other", password=User.objects.get(username=STAFF).password, is_staff=True
    )
    other = "other@merchant.example" if name == MEMBER else "other"
    guess_from_many_addresses(page, name)

    assert sign_in(page, other, PASSWORD, address=HOME).status_code == 302
    assert sign_in(page, name, PASSWORD, address=HOME).status_code == 429


def test_an_address_is_forgotten_after_a_while() -> None:
    sign_in("/admin/login/", STAFF, PASSWORD, address=HOME)
    AccessLog.objects.update(attempt_time=timezone.now() - timedelta(days=91))
    guess_from_many_addresses("/admin/login/", STAFF)

    assert sign_in("/admin/login/", STAFF, PASSWORD, address=HOME).status_code == 429
    clear_sessions()
    assert not AccessLog.objects.exists()


def test_an_address_is_kept_as_long_as_the_setting_says(settings: Settings) -> None:
    settings.RETENTION_DAYS = {**settings.RETENTION_DAYS, "sign_ins": 365}
    sign_in("/admin/login/", STAFF, PASSWORD, address=HOME)
    AccessLog.objects.update(attempt_time=timezone.now() - timedelta(days=364))
    clear_sessions()
    assert AccessLog.objects.exists()


def test_a_member_who_is_kept_out_resets_the_password() -> None:
    guess_from_many_addresses("/merchant/sign-in/", MEMBER)
    refused = sign_in("/merchant/sign-in/", MEMBER, PASSWORD)
    assert 'href="/merchant/password/forgotten/"' in refused.content.decode()

    browser = Client(REMOTE_ADDR=HOME)
    browser.post("/merchant/password/forgotten/", {"email": MEMBER})
    sweep_emails()
    (link,) = re.findall(r"/merchant/password/new/\S+", str(mail.outbox[0].body))
    new = "another horse, another staple"
    follow_link(browser, link, password=new)

    assert browser.get("/merchant/").status_code == 200
    assert sign_in("/merchant/sign-in/", MEMBER, new, address=HOME).status_code == 302


@on_each_site
def test_a_lockout_says_what_to_do(page: str, name: str) -> None:
    guess_many_names(page)
    words = sign_in(page, name).content.decode()
    assert "Too many wrong passwords" in words
    assert "15 minutes" in words


@on_each_site
def test_a_name_of_any_length_is_counted(page: str, name: str) -> None:
    statuses = [sign_in(page, "x" * 300).status_code for _ in range(LIMIT)]
    if page == "/merchant/sign-in/":
        assert statuses == [200] * LIMIT  # the form refuses it, so nothing is hashed
    else:
        assert statuses == [200, 429, 429]


@pytest.mark.parametrize(
    ("page", "name"), [("/merchant/profile/password/", MEMBER), ("/admin/password_change/", STAFF)]
)
def test_the_page_for_a_new_password_counts_wrong_old_ones(
    page: str, name: str, hashes: list[str]
) -> None:
    browser = Client(REMOTE_ADDR=HOME)
    browser.force_login(User.objects.get(username=name))
    show_factor(browser, User.objects.get(username=name))
    new = {"new_password1": "another horse", "new_password2": "another horse"}

    statuses = [
        browser.post(page, {"old_password": old, **new}).status_code
        for old in ("wrong", "wrong", PASSWORD, "wrong")
    ]

    assert statuses == [200, 429, 429, 429]
    assert len(hashes) == 2
    kept = AccessAttempt.objects.get().post_data
    assert not any(secret in kept for secret in ("wrong", "horse"))
    assert browser.get(page).status_code == 200  # the session goes on


def test_staff_change_their_password() -> None:
    browser, other = Client(), Client()
    for one in (browser, other):
        one.force_login(User.objects.get(username=STAFF))
        show_factor(one, User.objects.get(username=STAFF))
    new = "another horse, another staple"

    done = browser.post(
        "/admin/password_change/",
        {"old_password": PASSWORD, "new_password1": new, "new_password2": new},
    )

    assert done["Location"] == "/admin/password_change/done/"
    assert browser.get("/admin/password_change/done/").status_code == 200
    assert other.get("/admin/password_change/").status_code == 302  # signed out
    assert sign_in("/admin/login/", STAFF, new).status_code == 302


@on_each_site
def test_right_passwords_in_a_loop_are_limited(
    page: str, name: str, hashes: list[str], settings: Settings
) -> None:
    """Otherwise one person could keep everybody else from signing in."""
    settings.LOGIN_ATTEMPTS_PER_NAME = LIMIT
    settings.LOGIN_ATTEMPTS_PER_ADDRESS = LIMIT + 1

    statuses = [sign_in(page, name, PASSWORD).status_code for _ in range(LIMIT)]
    refused = sign_in(page, name, PASSWORD, address=ELSEWHERE)

    assert (statuses, refused.status_code, len(hashes)) == ([302] * LIMIT, 429, LIMIT)
    assert re.search(r"Wait \d+ seconds?, then try again", refused.content.decode())
    assert sign_in(page, "another@merchant.example").status_code == 200  # the address may
    assert sign_in(page, "and-another@merchant.example").status_code == 429
    assert not AuditEntry.objects.filter(action=AuditAction.SIGN_IN_REFUSED).exists()
    assert sum(AccessAttempt.objects.values_list("failures_since_start", flat=True)) == 1


@pytest.mark.django_db(transaction=True)
@on_each_site
def test_a_sign_in_waits_for_the_one_before(
    page: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = PBKDF2PasswordHasher.encode

    def slow(self: Any, password: str, *more: Any) -> str:
        time.sleep(0.2)
        return encode(self, password, *more)

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", slow)
    with ThreadPoolExecutor(3) as threads:
        sent = [
            threads.submit(in_own_connection, lambda: sign_in(page, name, PASSWORD))
            for _ in range(3)
        ]
        assert [one.result().status_code for one in sent] == [302] * 3


@pytest.mark.django_db(transaction=True)
@on_each_site
def test_a_process_checks_one_password_at_a_time(
    page: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, encode = threading.Event(), threading.Event(), PBKDF2PasswordHasher.encode

    def slow(self: Any, password: str, *more: Any) -> str:
        begun.set()
        assert go_on.wait(30)
        return encode(self, password, *more)

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", slow)
    with ThreadPoolExecutor(3) as threads:
        first = [
            threads.submit(in_own_connection, lambda: sign_in(page, name, PASSWORD))
            for _ in range(3)
        ]
        assert begun.wait(30)
        wait_until(lambda: len(PasswordBackend.line._here) == 3, "three are in line")
        try:
            refused = sign_in(page, name, PASSWORD)
        finally:
            go_on.set()
        assert [one.result().status_code for one in first] == [302] * 3

    assert refused.status_code == 503
    assert "Try again in a moment" in " ".join(refused.content.decode().split())
    assert not AccessAttempt.objects.exists()  # nobody guessed
    assert not AuditEntry.objects.filter(action=AuditAction.SIGN_IN_REFUSED).exists()
    assert sign_in(page, name, PASSWORD).status_code == 302


@dataclass
class Loop:
    """One name that tries its right password again and again, and another name that signs in once
    meanwhile, from the same address."""

    statuses: list[int]  # of the loop
    other: int  # status of the other name
    hashed: list[str]  # the names in the order in which their passwords were checked


def sign_in_beside_a_loop(page: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Loop:
    make_member(email=VIEWER)
    hashed: list[str] = []
    begun, go_on, check = threading.Event(), threading.Event(), ModelBackend.authenticate

    def slow(self: Any, request: Any, username: str, *more: Any, **names: Any) -> Any:
        hashed.append(username)
        begun.set()
        assert go_on.wait(30)
        return check(self, request, username, *more, **names)

    monkeypatch.setattr(ModelBackend, "authenticate", slow)

    def attempt(page: str, who: str) -> int:
        status: int = in_own_connection(lambda: sign_in(page, who, PASSWORD).status_code)
        return status

    with ThreadPoolExecutor(8) as threads:
        loop = [threads.submit(attempt, "/merchant/sign-in/", VIEWER) for _ in range(6)]
        line = PasswordBackend.line
        wait_until(lambda: len(line._here) + sum(one.done() for one in loop) == 6, "all arrived")
        in_line = len(line._here)
        other = threads.submit(attempt, page, name)
        wait_until(lambda: len(line._here) > in_line or other.done(), "the other name arrived")
        go_on.set()
        return Loop([one.result() for one in loop], other.result(), hashed)


@pytest.mark.django_db(transaction=True)
@on_each_site
def test_a_name_in_a_loop_keeps_no_other_from_signing_in(
    page: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = sign_in_beside_a_loop(page, name, monkeypatch)

    assert told.other == 302
    assert told.hashed[1] == name  # after one attempt of the loop
    assert sorted(told.statuses) == [302] * 3 + [503] * 3


@pytest.mark.django_db(transaction=True)
def test_control_without_places_for_names_a_loop_takes_them_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PasswordBackend, "line", Turns(of_owner=5, of_group=5, places=5))
    assert sign_in_beside_a_loop(*PAGES["merchant site"], monkeypatch).other == 503


def test_what_is_refused_for_its_name_is_not_counted_for_its_address(settings: Settings) -> None:
    settings.LOGIN_ATTEMPTS_PER_NAME, settings.LOGIN_ATTEMPTS_PER_ADDRESS = 2, 4
    page = "/merchant/sign-in/"

    make_member(email=VIEWER)
    loop = [sign_in(page, VIEWER, PASSWORD).status_code for _ in range(10)]

    assert loop.count(429) == 8
    assert sign_in(page, MEMBER, PASSWORD).status_code == 302


def in_own_connection(work: Callable[[], Any]) -> Any:
    from django.db import connection  # noqa: PLC0415

    try:
        return work()
    finally:
        connection.close()
