"""Signing in, joining by invitation, and resetting a forgotten password."""

import re
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import mail
from django.test import Client
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from merchants.email.sending import sweep_emails
from merchants.models import Email, Invitation, Membership, Role
from merchants.people.invitations import invite_person, withdraw_invitation
from tests.factories import make_account
from tests.merchants.people import PASSWORD, browser_of, follow_link, make_member
from tests.neighbour import ours
from tests.operators.back_office import make_staff

pytestmark = pytest.mark.django_db

NEW_PASSWORD = "another horse, another staple"


def emails() -> list[mail.EmailMessage]:
    """The emails sent so far. The sweep sends them in place of a worker."""
    sweep_emails()
    return list(mail.outbox)


def link_in(message: mail.EmailMessage) -> str:
    """The link in an email, without the host."""
    (found,) = re.findall(r"https?://\S+", str(message.body))
    return urlunsplit(urlsplit(str(found))._replace(scheme="", netloc=""))


def sign_in(browser: Client, email: str, password: str = PASSWORD) -> int:
    answer = browser.post("/merchant/sign-in/", {"username": email, "password": password})
    return answer.status_code


def test_a_member_signs_in_by_email_and_out_again() -> None:
    member, browser = make_member(), Client()
    assert sign_in(browser, member.user.email.upper()) == 302
    page = browser.get("/merchant/")
    assert page.status_code == 200
    assert member.account.name in page.content.decode()
    assert browser.post("/merchant/sign-out/").status_code == 302
    assert browser.get("/merchant/")["Location"] == "/merchant/sign-in/?next=%2Fmerchant%2F"


def test_every_failed_sign_in_gets_the_same_answer() -> None:
    member, staff = make_member(), make_staff()
    staff.set_password(PASSWORD)
    staff.email = staff.username = "staff@service.example"
    staff.save()
    off = make_member()
    off.user.is_active = False
    off.user.save()

    def said(email: str, password: str) -> str:
        answer = Client().post("/merchant/sign-in/", {"username": email, "password": password})
        assert answer.status_code == 200
        (words,) = re.findall(r'<ul class="errors">.*?</ul>', answer.content.decode())
        return str(words)

    wrong = said(member.user.email, "wrong")
    assert said("nobody@merchant.example", PASSWORD) == wrong
    assert said(staff.username, PASSWORD) == wrong
    assert said(off.user.email, PASSWORD) == wrong
    nobody = User.objects.create_user("nobody@service.example", password=PASSWORD)
    assert said(nobody.username, PASSWORD) == wrong


def test_next_never_leads_to_another_site() -> None:
    member = make_member()
    for wanted, given in (
        ("/merchant/people/", "/merchant/people/"),
        ("https://evil.example/", "/merchant/"),
        ("//evil.example/", "/merchant/"),
        ("javascript:alert(1)", "/merchant/"),
    ):
        answer = Client().post(
            "/merchant/sign-in/",
            {"username": member.user.email, "password": PASSWORD, "next": wanted},
        )
        assert answer["Location"] == given


def test_an_invited_person_joins_with_the_link_in_the_email() -> None:
    owner = make_member()
    answer = browser_of(owner).post(
        "/merchant/people/invite/", {"email": "New@Merchant.example", "role": "developer"}
    )
    assert answer.status_code == 302
    invited = [one for one in emails() if one.to == ["new@merchant.example"]]
    (message,) = invited
    assert message.subject == f"Invitation to {owner.account}"

    browser = Client()
    shown = follow_link(browser, link_in(message))
    assert "as new@merchant.example" in shown.content.decode()
    joined = follow_link(browser, link_in(message), password=NEW_PASSWORD)
    assert joined.status_code == 302
    assert browser.get("/merchant/").status_code == 200
    member = Membership.objects.get(user__email="new@merchant.example")
    assert (member.account, member.role) == (owner.account, Role.DEVELOPER)
    assert sign_in(Client(), "new@merchant.example", NEW_PASSWORD) == 302
    assert AuditEntry.objects.filter(action=AuditAction.MEMBER_JOINED).count() == 1

    assert follow_link(Client(), link_in(message)).status_code == 410  # a link is used once


def test_a_weak_password_is_refused() -> None:
    owner = make_member()
    invite_person(
        account=owner.account, email="a@b.example", role=Role.VIEWER, invited_by=owner.user
    )
    answer = follow_link(Client(), link_in(emails()[-2]), password="short")
    first, _, second = answer.content.decode().partition('name="new_password2"')
    assert "too short" in first
    assert "too short" not in second
    assert not User.objects.filter(username="a@b.example").exists()


def test_ended_invitations_answer_410() -> None:
    owner = make_member()

    def invite(email: str) -> tuple[Invitation, str]:
        invitation = invite_person(
            account=owner.account, email=email, role=Role.VIEWER, invited_by=owner.user
        )
        (message,) = (one for one in emails() if one.to == [email])
        return invitation, link_in(message)

    _, open_one = invite("still-open@b.example")
    withdrawn, first = invite("one@b.example")
    assert withdraw_invitation(invitation=withdrawn, actor=owner.user)
    assert not withdraw_invitation(invitation=withdrawn, actor=owner.user)
    expired, second = invite("two@b.example")
    Invitation.objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    _, replaced = invite("three@b.example")
    invite_person(
        account=owner.account, email="three@b.example", role=Role.OWNER, invited_by=owner.user
    )
    for link in (first, second, replaced, "/merchant/join/#x", "/merchant/join/#x\x00y"):
        assert follow_link(Client(), link).status_code == 410, link
    assert follow_link(Client(), open_one).status_code == 200


def test_only_the_holder_learns_that_an_address_is_in_use() -> None:
    owner, other = make_member(), make_member()
    answer = browser_of(owner).post(
        "/merchant/people/invite/", {"email": other.user.email, "role": "viewer"}, follow=True
    )
    assert "The invitation is being sent" in answer.content.decode()
    (message,) = (one for one in emails() if one.to == [other.user.email])
    said = follow_link(Client(), link_in(message), password=NEW_PASSWORD)
    assert "already signs in here" in said.content.decode()
    other.refresh_from_db()
    assert other.account != owner.account
    assert sign_in(Client(), other.user.email) == 302  # the password is the old one


def test_a_removed_member_returns_by_a_new_invitation() -> None:
    owner = make_member()
    gone = make_member(owner.account, Role.DEVELOPER)
    browser = browser_of(gone)
    browser_of(owner).post(f"/merchant/people/{gone.pk}/remove/")
    assert browser.get("/merchant/").status_code == 302  # signed out at once
    assert sign_in(Client(), gone.user.email) == 200

    invite_person(
        account=owner.account, email=gone.user.email, role=Role.VIEWER, invited_by=owner.user
    )
    (message,) = (
        one for one in emails() if one.to == [gone.user.email] and "Invitation to" in one.subject
    )
    back = Client()
    follow_link(back, link_in(message), password=NEW_PASSWORD)
    assert back.get("/merchant/").status_code == 200
    gone.refresh_from_db()
    assert gone.role == Role.VIEWER


def test_a_reset_link_works_once() -> None:
    member = make_member()
    signed_in_elsewhere = browser_of(member)
    asking = Client().post("/merchant/password/forgotten/", {"email": member.user.email.upper()})
    assert asking["Location"] == "/merchant/sign-in/"
    (message,) = emails()
    link = link_in(message)

    browser = Client()
    assert member.user.email in follow_link(browser, link).content.decode()
    done = follow_link(browser, link, password=NEW_PASSWORD)
    assert done.status_code == 302
    assert browser.get("/merchant/").status_code == 200
    assert signed_in_elsewhere.get("/merchant/").status_code == 302
    assert sign_in(Client(), member.user.email, NEW_PASSWORD) == 302
    assert follow_link(Client(), link).status_code == 410


def test_asking_for_a_reset_reveals_nothing_and_is_limited() -> None:
    member, former, staff = make_member(), make_member().user, make_staff()
    former.is_active = False
    former.save()
    staff.username = staff.email = "staff@service.example"
    staff.save()
    said = {
        Client()
        .post("/merchant/password/forgotten/", {"email": email}, follow=True)
        .content.decode()
        .split("<main")[1]
        .split("csrfmiddlewaretoken")[0]
        for email in [
            staff.email,
            former.email,
            "nobody@merchant.example",
            *[member.user.email] * 5,
        ]
    }
    assert len(said) == 1
    assert Email.objects.filter(to=member.user.email).count() == 3
    assert [one.to[0] for one in emails()] == [member.user.email] * 3


def test_a_reset_link_is_not_stored_and_expires(settings: pytest.FixtureRequest) -> None:
    member = make_member()
    Client().post("/merchant/password/forgotten/", {"email": member.user.email})
    (message,) = emails()
    row = ours(Email).get()
    assert (row.facts, row.about) == ({}, member.user.pk)
    settings.PASSWORD_RESET_TIMEOUT = -1  # type: ignore[attr-defined]
    assert follow_link(Client(), link_in(message)).status_code == 410


@pytest.mark.parametrize("page", ["join", "password/new"])
def test_a_secret_link_is_in_no_request_line_and_no_session(page: str) -> None:
    """The session table would be in every backup, and the token in the logs of proxies."""
    owner = make_member()
    invite_person(
        account=owner.account, email="a@b.example", role=Role.OWNER, invited_by=owner.user
    )
    Client().post("/merchant/password/forgotten/", {"email": owner.user.email})
    (link,) = (one for one in map(link_in, emails()) if one.startswith(f"/merchant/{page}/"))
    sessions = Session.objects.count()

    assert urlsplit(link).query == ""
    for browser, path in ((Client(), f"/merchant/{page}/?token=x"), (Client(), link)):
        shown = browser.get(path)
        assert (shown.status_code, 'name="token"' in shown.content.decode()) == (200, True)
        follow_link(browser, path)
    assert follow_link(Client(), link).status_code == 200
    assert Session.objects.count() == sessions


def test_a_link_of_an_older_email_still_opens() -> None:
    page = Client().get("/merchant/join/?token=of-an-older-email").content.decode()
    assert 'value="of-an-older-email"' in page


def test_ten_wrong_passwords_lock_the_sign_in() -> None:
    member = make_member()
    for _ in range(10):
        last = Client().post(
            "/merchant/sign-in/", {"username": member.user.email, "password": "wrong"}
        )
    assert last.status_code == 429
    assert sign_in(Client(), member.user.email) == 429


def test_a_disabled_account_is_read_only() -> None:
    owner = make_member(make_account())
    owner.account.enabled = False
    owner.account.save()
    browser = browser_of(owner)
    assert "switched off" in browser.get("/merchant/").content.decode()
    assert browser.get("/merchant/people/invite/").status_code == 403


def test_an_invitation_expires_after_seven_days() -> None:
    owner = make_member()
    invitation = invite_person(
        account=owner.account, email="a@b.example", role=Role.VIEWER, invited_by=owner.user
    )
    left = invitation.expires_at - timezone.now()
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)


def test_removing_a_member_withdraws_their_invitations() -> None:
    owner = make_member()
    gone = make_member(owner.account)
    invite_person(account=owner.account, email="a@b.example", role=Role.OWNER, invited_by=gone.user)
    (message,) = (one for one in emails() if one.to == ["a@b.example"])
    browser_of(owner).post(f"/merchant/people/{gone.pk}/remove/")
    assert follow_link(Client(), link_in(message)).status_code == 410


def test_a_large_body_is_refused_before_sign_in() -> None:
    answer = Client().generic(
        "POST", "/merchant/sign-in/", b"x", CONTENT_LENGTH="5000000", content_type="text/plain"
    )
    assert answer.status_code == 413
