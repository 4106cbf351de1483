"""Sessions of staff and members end after a time without use, and at a fixed time."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from tests.browsing import PASSWORD
from tests.merchants.people import end_of, make_member

pytestmark = pytest.mark.django_db

SITES = pytest.mark.parametrize("site", ["staff", "member"])


@pytest.fixture(autouse=True)
def _limits(settings: Settings) -> None:
    settings.STAFF_SESSION_HOURS = settings.MERCHANT_SESSION_HOURS = 8
    settings.STAFF_SESSION_IDLE_MINUTES = settings.MERCHANT_SESSION_IDLE_MINUTES = 20


class Visitor:
    def __init__(self, site: str) -> None:
        self.browser = Client()
        if site == "staff":
            User.objects.create_user("anna", password=PASSWORD, is_staff=True)
            self.home, sign_in, name = "/admin/", "/admin/login/", "anna"
        else:
            self.home, sign_in = "/merchant/", "/merchant/sign-in/"
            name = make_member().user.email
        self.browser.post(sign_in, {"username": name, "password": PASSWORD})

    def is_in(self, **headers: str) -> bool:
        answer: Any = self.browser.get(self.home, headers=headers)
        return bool(answer.status_code == 200)

    def wait(self, **time: int) -> None:
        """Moves the end of the stored session back, as if time had passed."""
        row = Session.objects.get(pk=self.browser.session.session_key)
        row.expire_date -= timedelta(**time)
        row.save()

    @property
    def ends(self) -> Any:
        row = Session.objects.get(pk=self.browser.session.session_key)
        return row.expire_date - timezone.now()


def test_staff_and_members_have_limits_of_their_own(settings: Settings) -> None:
    settings.STAFF_SESSION_IDLE_MINUTES = 10

    assert Visitor("staff").ends <= timedelta(minutes=10) < Visitor("member").ends


@SITES
def test_a_session_ends_when_it_is_not_used(site: str) -> None:
    visitor = Visitor(site)
    assert visitor.is_in()
    assert timedelta(minutes=19) < visitor.ends <= timedelta(minutes=20)

    visitor.wait(minutes=21)

    assert not visitor.is_in()


@SITES
def test_use_prolongs_a_session(site: str) -> None:
    visitor = Visitor(site)
    for _ in range(3):
        visitor.wait(minutes=15)
        assert visitor.is_in()

    assert visitor.ends > timedelta(minutes=19)


@SITES
def test_a_session_ends_at_its_fixed_time_although_it_is_used(site: str) -> None:
    visitor = Visitor(site)
    session = visitor.browser.session
    session["_session_expiry"] = (timezone.now() + timedelta(minutes=5)).isoformat()
    session.save()

    assert visitor.is_in()
    assert visitor.ends <= timedelta(minutes=5)

    visitor.wait(minutes=6)
    assert not visitor.is_in()


def test_the_fixed_end_is_counted_from_the_sign_in() -> None:
    visitor = Visitor("staff")

    end = end_of(visitor.browser)
    assert timedelta(hours=7, minutes=59) < end - timezone.now() <= timedelta(hours=8)


def test_a_page_that_reloads_itself_does_not_prolong_the_session() -> None:
    visitor = Visitor("staff")
    visitor.wait(minutes=15)

    assert visitor.is_in(**{"X-Reload": "1"})

    assert visitor.ends < timedelta(minutes=6)


@SITES
def test_a_change_of_the_session_keeps_both_limits(site: str) -> None:
    visitor = Visitor(site)
    session = visitor.browser.session
    session["anything"] = 1
    session.save()

    assert visitor.ends <= timedelta(minutes=20)


@SITES
def test_the_sign_in_page_says_that_a_session_has_ended(site: str) -> None:
    visitor, stranger = Visitor(site), Client()
    assert "has ended" not in stranger.get(visitor.home, follow=True).text
    visitor.wait(minutes=21)

    page = visitor.browser.get(visitor.home, follow=True).text

    assert "Your session has ended. Sign in again" in page
    assert re.search(r'<input[^>]*name="username"[^>]*autofocus', page)


@SITES
def test_after_signing_out_no_session_has_ended(site: str) -> None:
    visitor = Visitor(site)
    sign_out = f"{visitor.home}{'logout' if site == 'staff' else 'sign-out'}/"

    assert "has ended" not in visitor.browser.post(sign_out, follow=True).text
    assert "has ended" not in visitor.browser.get(visitor.home, follow=True).text
