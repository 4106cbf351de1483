"""A session ends at a fixed time, and the account page lists no ended session."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from merchants.email.secret_links import sign_reset
from merchants.models import MemberSession
from tests.merchants.people import PASSWORD, end_of, follow_link, make_member

pytestmark = pytest.mark.django_db

NEW_PASSWORD = "another horse, another staple"
NEW = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}


def sign_in(email: str) -> Client:
    browser = Client()
    browser.post("/merchant/sign-in/", {"username": email, "password": PASSWORD})
    assert browser.get("/merchant/").status_code == 200
    return browser


@pytest.mark.parametrize("page", ["/merchant/join/", "/merchant/password/new/"])
def test_opening_a_link_does_not_prolong_the_session(page: str) -> None:
    browser = sign_in(make_member().user.email)
    before = end_of(browser)

    browser.get(page)
    follow_link(browser, f"{page}#x")

    assert end_of(browser) == before


def test_a_new_password_does_not_prolong_the_session() -> None:
    browser = sign_in(make_member().user.email)
    before = end_of(browser)

    browser.post("/merchant/profile/password/", {"old_password": PASSWORD, **NEW})

    assert end_of(browser) == before


def test_after_a_new_password_only_this_session_is_listed() -> None:
    member = make_member()
    sign_in(member.user.email)
    browser = sign_in(member.user.email)

    browser.post("/merchant/profile/password/", {"old_password": PASSWORD, **NEW})

    page = browser.get("/merchant/profile/").content.decode()
    assert page.count("this session") == 1
    assert MemberSession.objects.filter(user=member.user).count() == 1


def test_after_a_reset_only_the_new_session_is_listed() -> None:
    member = make_member()
    sign_in(member.user.email)
    member.user.refresh_from_db()
    browser = Client()
    link = f"/merchant/password/new/#{sign_reset(member.user)}"

    follow_link(browser, link, password=NEW_PASSWORD)

    browser.get("/merchant/profile/")
    (session,) = MemberSession.objects.filter(user=member.user)
    assert session.session_id == browser.session.session_key
    assert end_of(browser) < timezone.now() + timedelta(hours=12, minutes=1)
