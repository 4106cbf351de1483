"""A member with a second factor sees no page of the site before entering its code."""

import re
from urllib.parse import urlencode

import pytest
from django.core import mail
from django.test import Client
from django_otp.oath import totp

from accounts.models import BackupCode, SecondFactor
from accounts.sign_in.second_factor import check_code
from audit.models import AuditAction, AuditEntry
from merchants.email.sending import sweep_emails
from merchants.models import Email, Membership
from tests.merchants.people import PASSWORD, make_member

pytestmark = pytest.mark.django_db

CHECK = "/merchant/two-factor/"
ON = "/merchant/profile/two-factor/on/"
OFF = "/merchant/profile/two-factor/off/"
CODES = "/merchant/profile/two-factor/codes/"


@pytest.fixture
def member() -> Membership:
    return make_member()


def sign_in(member: Membership) -> Client:
    browser = Client()
    answer = browser.post(
        "/merchant/sign-in/", {"username": member.user.email, "password": PASSWORD}
    )
    assert answer.status_code == 302
    return browser


def code_now(member: Membership | None = None) -> str:
    """The code that the app of the member, or of the only one, shows now, as if it were unused."""
    SecondFactor.objects.update(last_step=-1)
    factors = SecondFactor.objects.filter(user=member.user) if member else SecondFactor.objects
    return f"{totp(factors.get().key):06d}"


def enrol(browser: Client, member: Membership | None = None) -> list[str]:
    """Turns the second factor of the member, or of the only one, on; returns the backup codes."""
    assert "data:image/svg" in browser.get(ON).content.decode()
    answer = browser.post(ON, {"code": code_now(member), "password": PASSWORD})
    assert "no-store" in answer["Cache-Control"]
    return listed_codes(answer.content.decode())


def listed_codes(page: str) -> list[str]:
    (listed,) = re.findall(r'aria-label="Backup codes">([^<]+)<', page)
    codes: list[str] = listed.split()
    assert len(codes) == 10
    return codes


def sees_the_page(browser: Client) -> bool:
    answer = browser.get("/merchant/people/")
    assert answer.status_code == 200 or answer["Location"].partition("?")[0] == CHECK
    return answer.status_code == 200


def test_a_password_is_enough_without_a_second_factor(member: Membership) -> None:
    browser = sign_in(member)
    assert sees_the_page(browser)

    enrol(browser)
    assert sees_the_page(browser)
    assert not sees_the_page(sign_in(member))


def test_the_apps_code_opens_the_session(member: Membership) -> None:
    enrol(sign_in(member))
    browser = sign_in(member)

    assert browser.get(CHECK).status_code == 200
    assert "This code is wrong" in browser.post(CHECK, {"code": "000000"}).content.decode()
    assert not sees_the_page(browser)

    SecondFactor.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    assert browser.post(CHECK, {"code": code_now()})["Location"] == "/merchant/"
    assert sees_the_page(browser)


def test_a_backup_code_works_once(member: Membership) -> None:
    code = enrol(sign_in(member))[0]
    first, second = sign_in(member), sign_in(member)

    first.post(CHECK, {"code": code})
    second.post(CHECK, {"code": code})
    assert "9 backup codes are left." in first.get("/merchant/profile/").content.decode()

    assert sees_the_page(first)
    assert not sees_the_page(second)


def test_wrong_codes_are_throttled(member: Membership) -> None:
    enrol(sign_in(member))
    browser = sign_in(member)
    browser.post(CHECK, {"code": "000000"})
    assert SecondFactor.objects.get().throttling_failure_count == 1
    SecondFactor.objects.update(throttling_failure_count=6)  # so that the wait outlasts the test

    browser.post(CHECK, {"code": code_now()})
    assert not sees_the_page(browser)


def test_turning_it_off_needs_a_code(member: Membership) -> None:
    browser = sign_in(member)
    codes = enrol(browser)

    browser.post(OFF, {"code": "wrong"})
    assert not sees_the_page(sign_in(member))
    SecondFactor.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)

    assert sign_in(member).post(OFF, {"code": codes[0]})["Location"] == CHECK
    assert not sees_the_page(sign_in(member))

    assert browser.post(OFF, {"code": codes[0]}).status_code == 302
    assert sees_the_page(sign_in(member))


def test_new_backup_codes_need_a_code_and_end_the_old_ones(member: Membership) -> None:
    assert sign_in(member).get(CODES)["Location"] == "/merchant/profile/"
    browser = sign_in(member)
    old = enrol(browser)
    assert CODES in browser.get("/merchant/profile/").content.decode()

    assert "This code is wrong" in browser.post(CODES, {"code": "wrong"}).content.decode()
    SecondFactor.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    assert sign_in(member).post(CODES, {"code": old[0]})["Location"] == CHECK
    assert BackupCode.objects.count() == 10
    assert not AuditEntry.objects.filter(note="Backup codes replaced").exists()

    answer = browser.post(CODES, {"code": old[0]})
    assert "no-store" in answer["Cache-Control"]
    assert "Your old backup codes no longer work." in answer.content.decode()
    new = listed_codes(answer.content.decode())
    assert BackupCode.objects.count() == 10
    entry = AuditEntry.objects.get(note="Backup codes replaced")
    assert (entry.actor, entry.action) == (member.user, AuditAction.MEMBER_CHANGED)
    assert Email.objects.filter(facts__change="Backup codes replaced").exists()

    assert check_code(user=member.user, code=old[1]) is None
    SecondFactor.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    assert check_code(user=member.user, code=new[0]) is not None


def test_a_session_without_the_code_can_only_enter_it_or_sign_out(member: Membership) -> None:
    enrol(sign_in(member))
    browser = sign_in(member)

    assert browser.get(ON)["Location"] == f"{CHECK}?{urlencode({'next': ON})}"
    assert browser.post("/merchant/profile/password/")["Location"] == CHECK
    assert browser.post("/merchant/sign-out/")["Location"] == "/merchant/sign-in/"


def test_the_owners_get_an_email(member: Membership) -> None:
    enrol(sign_in(member))

    sweep_emails()
    (message,) = mail.outbox
    assert message.subject == f"Second factor turned on: {member.account}"


def test_the_page_that_was_asked_for_opens_after_the_code(member: Membership) -> None:
    enrol(sign_in(member))
    browser = sign_in(member)

    check = browser.get("/merchant/orders/?page=2")["Location"]

    assert check == f"{CHECK}?{urlencode({'next': '/merchant/orders/?page=2'})}"
    assert browser.post(check, {"code": code_now()})["Location"] == "/merchant/orders/?page=2"


def test_the_factor_of_somebody_else_neither_binds_nor_helps(member: Membership) -> None:
    other = make_member()
    enrol(sign_in(other))
    assert sees_the_page(sign_in(member))

    browser = sign_in(member)
    codes = enrol(browser, member)
    stranger = sign_in(member)
    stranger.post(CHECK, {"code": code_now(other)})
    assert not sees_the_page(stranger)

    SecondFactor.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    assert browser.post(OFF, {"code": codes[0]}).status_code == 302
    assert sees_the_page(sign_in(member))
    assert not sees_the_page(sign_in(other))


def test_a_factor_that_was_not_confirmed_shows_nothing(member: Membership) -> None:
    browser = sign_in(member)
    browser.get(ON)

    assert check_code(user=member.user, code=code_now()) is None


def test_a_sign_in_without_the_code_is_not_listed(member: Membership) -> None:
    owner = sign_in(member)
    enrol(owner)
    member.user.refresh_from_db()
    complete = member.user.last_login

    stopped = sign_in(member)
    assert not sees_the_page(stopped)
    stopped.get(CHECK)

    assert len(owner.get("/merchant/profile/").context["sessions"]) == 1
    member.user.refresh_from_db()
    assert member.user.last_login == complete

    stopped.post(CHECK, {"code": code_now()})
    assert len(stopped.get("/merchant/profile/").context["sessions"]) == 2
    member.user.refresh_from_db()
    assert complete is not None
    assert member.user.last_login is not None
    assert member.user.last_login > complete


def test_sessions_that_stopped_at_the_second_factor_end_with_the_others(
    member: Membership,
) -> None:
    owner = sign_in(member)
    enrol(owner)
    stopped = sign_in(member)
    stopped.get(CHECK)

    owner.post("/merchant/profile/sessions/end/")

    assert stopped.get(CHECK)["Location"].startswith("/merchant/sign-in/")
