"""Errors on the merchant site are pages of the site that reveal no details."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import Account
from merchants.models import Role
from merchants.people import member_pages
from tests.merchants.people import PASSWORD, browser_of, make_member
from tests.operators.back_office import signed_in

pytestmark = pytest.mark.django_db


def heading(answer: Any) -> str:
    """The heading of an error page, which also names the request and offers a way out."""
    text: str = answer.content.decode()
    assert answer["X-Request-Id"] in text
    assert '<p><a href="/' in text
    return text.partition("<h1>")[2].partition("</h1>")[0]


def test_an_unknown_path_gets_a_page() -> None:
    answer = Client().get("/merchant/nowhere/")
    assert (answer.status_code, heading(answer)) == (404, "Page not found")


def test_an_unknown_path_keeps_the_menu_of_a_member() -> None:
    answer = browser_of(make_member()).get("/merchant/nowhere/")
    assert (answer.status_code, heading(answer)) == (404, "Page not found")
    assert '<nav aria-label="Main">' in answer.content.decode()


def test_a_refusal_says_why_and_what_to_do() -> None:
    member = make_member(role=Role.VIEWER)
    page = browser_of(member).get("/merchant/people/invite/").content.decode()
    assert "Your role, viewer, does not allow it. Ask an owner" in page

    Account.objects.filter(pk=member.account_id).update(enabled=False)
    page = browser_of(member).get("/merchant/people/invite/").content.decode()
    assert "This account is switched off" in page


def test_an_expired_form_gets_a_page() -> None:
    answer = browser_of(make_member(), csrf=True).post("/merchant/profile/password/")
    assert (answer.status_code, heading(answer)) == (403, "This form has expired")


def test_staff_on_the_merchant_site_are_offered_to_switch_accounts() -> None:
    browser = signed_in(csrf=True)
    answer = browser.get("/merchant/")
    page = answer.content.decode()
    assert (answer.status_code, heading(answer)) == (403, "You cannot open this page")
    assert '<a href="/admin/">Go to the back office</a>' in page

    token = page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
    action = page.partition('action="')[2].partition('"')[0]
    left = browser.post(action, {"csrfmiddlewaretoken": token})
    assert (left.status_code, left["Location"]) == (302, "/merchant/sign-in/")
    assert "sessionid" not in browser.cookies or not browser.cookies["sessionid"].value


def test_a_lockout_gets_a_page(settings: Settings) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    for name in (make_member().user.email, "nobody@merchant.example"):
        for password in ("wrong", "wrong", PASSWORD):
            answer = Client().post("/merchant/sign-in/", {"username": name, "password": password})
        assert (answer.status_code, heading(answer)) == (429, "Too many wrong passwords")


def test_a_server_error_gets_a_page_without_details(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("a secret detail")

    browser = browser_of(make_member())
    browser.raise_request_exception = False
    monkeypatch.setattr(member_pages, "members_and_blocked", fail)
    answer = browser.get("/merchant/people/")
    assert (answer.status_code, heading(answer)) == (500, "Something went wrong")
    assert "secret detail" not in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]


def test_an_unreadable_request_gets_a_page() -> None:
    fields = {f"field{number}": "1" for number in range(1001)}
    answer = browser_of(make_member()).post("/merchant/people/invite/", fields)
    assert (answer.status_code, heading(answer)) == (400, "Bad request")


@pytest.mark.parametrize("odd", ["a\x00b", "x" * 5000, "\ud800", "🙂@example.com", "a@b"])
def test_odd_values_are_refused_in_the_form(odd: str) -> None:
    sent = odd.encode("utf-8", "surrogatepass")
    owner = make_member()
    fields = ("username", "password", "email", "role", "code", "old_password", "new_password1")
    body = b"&".join(name.encode() + b"=" + sent for name in fields)
    for path in (
        "sign-in/",
        "password/forgotten/",
        "join/?token=x",
        "people/invite/",
        f"people/{owner.pk}/role/",
        "profile/password/",
        "profile/two-factor/on/",
        "two-factor/",
    ):
        for browser in (Client(), browser_of(owner)):
            answer = browser.generic(
                "POST", f"/merchant/{path}", body, "application/x-www-form-urlencoded"
            )
            assert answer.status_code in (200, 302, 410), path
