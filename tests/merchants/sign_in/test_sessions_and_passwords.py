"""Members see their sessions, end them, and change their password."""

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from merchants.models import MemberSession, Membership
from merchants.tasks import clear_sessions
from tests.merchants.people import PASSWORD, browser_of, make_member
from tests.neighbour import ours

pytestmark = pytest.mark.django_db

ACCOUNT = "/merchant/profile/"
NEW_PASSWORD = "another horse, another staple"


def sign_in(member: Membership, *, agent: str = "Firefox", address: str = "203.0.113.5") -> Client:
    browser = Client(headers={"User-Agent": agent}, REMOTE_ADDR=address)
    browser.post("/merchant/sign-in/", {"username": member.user.email, "password": PASSWORD})
    assert is_in(browser)
    return browser


def is_in(browser: Client) -> bool:
    return browser.get("/merchant/").status_code == 200


def test_sessions_are_listed_with_device_and_address() -> None:
    member, other = make_member(), make_member()
    sign_in(other, agent="Somebody else's")
    sign_in(member, agent="Phone <b>\x07é", address="2001:db8::7")
    browser = sign_in(member)

    page = browser.get(ACCOUNT).content.decode()

    assert "2001:db8::7" in page
    assert "Phone &lt;b&gt;" in page
    assert "Somebody else" not in page
    assert page.count("this session") == 1
    assert str(browser.session.session_key) not in page


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/131.0 Safari/537.36 Edg/131.0", "Edge on Windows"),
        ("Mozilla/5.0 (Linux; Android 15) Chrome/131.0 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (iPhone; like Mac OS X) Version/18 Safari/604.1", "Safari on iPhone"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Firefox/133.0", "Firefox on Linux"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "unknown"),
    ],
)
def test_a_session_names_the_browser_and_not_its_header(agent: str, name: str) -> None:
    browser = sign_in(make_member(), agent=agent)
    assert f'<th scope="row">{name}</th>' in browser.get(ACCOUNT).content.decode()


def test_one_session_is_ended() -> None:
    member = make_member()
    lost, kept, browser = sign_in(member), sign_in(member), sign_in(member)
    session = MemberSession.objects.get(session_id=lost.session.session_key)

    assert browser.post(f"{ACCOUNT}sessions/{session.pk}/end/").status_code == 302

    assert not is_in(lost)
    assert is_in(kept)
    assert is_in(browser)
    assert browser.post(f"{ACCOUNT}sessions/{session.pk}/end/").status_code == 404


def test_a_member_cannot_end_sessions_of_others() -> None:
    owner = make_member()
    colleague = sign_in(make_member(owner.account))
    stranger = sign_in(make_member())
    browser = sign_in(owner)
    for victim in (colleague, stranger):
        session = MemberSession.objects.get(session_id=victim.session.session_key)
        assert browser.post(f"{ACCOUNT}sessions/{session.pk}/end/").status_code == 404

    browser.post(f"{ACCOUNT}sessions/end/")

    assert is_in(colleague)
    assert is_in(stranger)


def test_all_other_sessions_are_ended_at_once() -> None:
    member = make_member()
    others = [sign_in(member) for _ in range(3)]
    browser = sign_in(member)

    browser.post(f"{ACCOUNT}sessions/end/")

    assert [is_in(other) for other in others] == [False] * 3
    assert is_in(browser)


def test_a_new_password_needs_the_old_one_and_ends_other_sessions() -> None:
    member, colleague = make_member(), sign_in(make_member())
    other, browser = sign_in(member), sign_in(member)
    new = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}

    wrong = browser.post(f"{ACCOUNT}password/", {"old_password": "wrong", **new})
    assert wrong.status_code == 200
    assert is_in(other)

    assert browser.post(f"{ACCOUNT}password/", {"old_password": PASSWORD, **new}).status_code == 302
    assert is_in(browser)
    assert is_in(colleague)
    assert not is_in(other)


def test_guessing_the_old_password_leads_to_a_lockout(settings: Settings) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    member = make_member()
    other, browser = sign_in(member), sign_in(member)
    new = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}

    guesses = [
        browser.post(f"{ACCOUNT}password/", {"old_password": f"guess {n}", **new}).status_code
        for n in range(3)
    ]
    assert guesses == [200, 200, 429]
    kept = AccessAttempt.objects.get().post_data
    assert "old_password" in kept
    assert not any(secret in kept for secret in ("guess", NEW_PASSWORD))
    right = browser.post(f"{ACCOUNT}password/", {"old_password": PASSWORD, **new})
    assert right.status_code == 429
    assert is_in(other)


def test_an_expired_session_is_deleted_with_its_member_session(settings: Settings) -> None:
    member = make_member()
    browser = sign_in(member)
    session = Session.objects.get(pk=browser.session.session_key)
    assert session.expire_date < timezone.now() + timedelta(hours=12, minutes=1)

    Session.objects.update(expire_date=timezone.now())
    assert not is_in(browser)
    call_command("clearsessions")
    assert not ours(MemberSession).exists()


def test_cookies_are_hidden_from_scripts_and_other_sites(settings: Settings) -> None:
    member, browser = make_member(), Client()
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    browser.get("/merchant/sign-in/")
    browser.post("/merchant/sign-in/", {"username": member.user.email, "password": PASSWORD})

    session = browser.cookies["sessionid"]
    assert (session["httponly"], session["secure"], session["samesite"]) == (True, True, "Lax")
    csrf = browser.cookies["csrftoken"]
    assert (csrf["secure"], csrf["samesite"]) == (True, "Lax")


def test_opening_a_page_again_writes_nothing(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    browser = sign_in(make_member())

    # The session, the user, two for the second factor, the membership, the member session.
    with django_assert_max_num_queries(6) as queries:
        assert browser.get("/merchant/profile/password/").status_code == 200  # it reads nothing

    assert [one for one in queries.captured_queries if not one["sql"].startswith("SELECT")] == []


def test_clear_sessions_deletes_expired_member_sessions() -> None:
    gone, kept = browser_of(make_member()), browser_of(make_member())
    for browser in (gone, kept):
        assert browser.get("/merchant/").status_code == 200
    Session.objects.filter(pk=gone.session.session_key).update(expire_date=timezone.now())
    clear_sessions()
    assert [session.session_id for session in ours(MemberSession).all()] == [
        kept.session.session_key
    ]
