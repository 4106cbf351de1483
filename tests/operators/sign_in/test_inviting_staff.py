"""Staff join by an email with a link, and reset a forgotten password the same way."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from unfold.enums import ActionVariant

from accounts.models import SecondFactor
from audit.models import AuditEntry
from core.backoffice.staff_roles import StaffRole
from merchants.email.secret_links import STAFF_INVITATION_VALID_FOR, sign_reset
from merchants.models import Email
from operators.sign_in.password_links import read_invitation
from tests.merchants.people import follow_link, make_member
from tests.merchants.sign_in.test_sign_in_and_invitations import emails, link_in
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = pytest.mark.django_db

PASSWORD = "a long enough phrase"
FORGOTTEN, NEW_PASSWORD = "/admin/forgotten/", "/admin/new-password/"


def administrator() -> Client:
    person = make_staff()
    person.groups.add(Group.objects.get(name=StaffRole.ADMINISTRATOR.value))
    return signed_in(person)


def invite(email: str = "nina@staff.example") -> User:
    operators = Group.objects.get(name=StaffRole.OPERATOR.value)
    form = {"username": "nina", "email": email, "groups": [operators.pk]}
    answer = administrator().post(reverse("admin:auth_user_add"), form)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    return User.objects.get(username="nina")


def test_a_new_colleague_sets_a_password_and_must_set_up_a_second_factor() -> None:
    nina = invite()
    assert (nina.is_staff, nina.is_superuser, nina.has_usable_password()) == (True, False, False)
    (message,) = emails()
    assert message.to == ["nina@staff.example"]
    assert "invites you to the back office" in message.subject
    assert "Your roles: Operator." in message.body
    browser = Client()

    answer = follow_link(browser, link_in(message), password=PASSWORD)

    assert answer["Location"] == "/admin/"
    assert browser.get("/admin/")["Location"].startswith("/admin/two-factor/enrol/")
    assert set(nina.groups.values_list("name", flat=True)) == {"Operator"}
    again = follow_link(Client(), link_in(message), password="another long phrase")
    assert again["Location"] == FORGOTTEN
    nina.refresh_from_db()
    assert nina.check_password(PASSWORD)
    assert AuditEntry.objects.get(action="password_changed", reference="nina").actor == nina


def test_the_page_of_a_person_says_how_the_invitation_stands() -> None:
    nina, browser = invite(), administrator()

    def invitation(person: User = nina) -> str:
        form = browser.get(url(person)).context["adminform"]
        fields = {name for _, options in form.fieldsets for name in options["fields"]}
        return read_invitation(User.objects.get(pk=person.pk)) if "invitation" in fields else ""

    emails()  # sends it
    sent = Email.objects.get(about=nina.pk)
    assert invitation().startswith("Not accepted yet. The link was sent at")
    assert "Not accepted yet." in browser.get(url(nina)).content.decode()
    colleague = make_staff()
    User.objects.filter(pk=colleague.pk).update(last_login=timezone.now())
    assert invitation(colleague) == ""
    for kind, valid in (
        ("staff_notice", STAFF_INVITATION_VALID_FOR),
        ("password_reset", timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)),
    ):
        almost = timezone.now() - valid + timedelta(minutes=5)
        Email.objects.filter(pk=sent.pk).update(kind=kind, sent_at=almost)
        assert "works until" in invitation()
        Email.objects.filter(pk=sent.pk).update(sent_at=timezone.now() - valid)
        assert "ended at" in invitation()
    Email.objects.filter(pk=sent.pk).update(sent_at=None)
    assert invitation() == "The email is being sent."
    Email.objects.filter(pk=sent.pk).update(given_up_at=timezone.now())
    assert "No link was sent" in invitation()
    User.objects.filter(pk=nina.pk).update(last_login=timezone.now())
    assert invitation() == ""


def opens(link: str) -> bool:
    page = Client().post(NEW_PASSWORD, {"token": link.partition("#")[2]})
    return page.status_code == 200


def test_a_link_that_waits_is_not_sent_to_an_earlier_address() -> None:
    nina = invite()
    Client().post(FORGOTTEN, {"email": nina.email})
    assert Email.objects.filter(about=nina.pk, sent_at=None).count() == 2
    User.objects.filter(pk=nina.pk).update(email="right@staff.example")

    assert emails() == []
    assert not Email.objects.filter(about=nina.pk, given_up_at=None).exists()


def test_an_invitation_works_for_three_days(monkeypatch: pytest.MonkeyPatch) -> None:
    nina = invite()
    link = link_in(emails()[0])
    assert opens(link)
    assert not opens(f"{link}x")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 3 * 86400 - 60)
    assert opens(link)
    monkeypatch.setattr(time, "time", lambda: now() + 3 * 86400 + 60)
    assert not opens(link)
    monkeypatch.undo()
    User.objects.filter(pk=nina.pk).update(is_staff=False)
    assert not opens(link)


@pytest.mark.parametrize(
    "change",
    [
        {"is_active": False},
        {"email": "other@staff.example"},
        {"last_login": timezone.now()},
        {"password": "!another"},
    ],
)
def test_an_invitation_ends_with_the_person_it_was_for(change: dict[str, Any]) -> None:
    nina = invite()
    link = link_in(emails()[0])
    User.objects.filter(pk=nina.pk).update(**change)
    assert not opens(link)


def test_a_new_invitation_ends_the_one_before() -> None:
    nina, browser = invite(), administrator()
    first = link_in(emails()[0])
    browser.post(url(nina, "send_link"))
    second = link_in(emails()[-1])
    assert not opens(first)
    assert opens(second)
    assert not AuditEntry.objects.filter(action="password_changed").exists()
    nina.refresh_from_db()
    nina.set_password(PASSWORD)  # on the server
    nina.save()
    browser.post(url(nina, "send_link"))
    nina.refresh_from_db()
    assert nina.check_password(PASSWORD)


def test_an_invitation_is_sent_again_at_most_three_times_an_hour() -> None:
    nina, browser = invite(), administrator()
    assert "Send the invitation again…" in browser.get(url(nina)).content.decode()
    assert "Send nina the invitation again?" in browser.get(url(nina, "send_link")).text

    for _ in range(4):
        browser.post(url(nina, "send_link"))

    assert Email.objects.filter(about=nina.pk, kind="staff_notice").count() == 3
    User.objects.filter(pk=nina.pk).update(last_login=timezone.now())
    page = browser.get(url(nina)).content.decode()
    assert "Send a password link…" in page
    assert "Send the invitation again…" not in page


def test_only_the_end_of_access_is_a_filled_button() -> None:
    nina, admin_site = invite(), administrator()
    SecondFactor.objects.create(user=nina)

    offered = admin_site.get(url(nina)).context["actions_detail"]

    variants = {str(one["title"]): one["variant"] for one in offered}
    assert len(variants) > 2
    assert [name for name, one in variants.items() if one != ActionVariant.DEFAULT] == [
        "End access…"
    ]


def test_a_forgotten_password_is_reset_and_the_second_factor_still_asked_for() -> None:
    nina = make_staff("wallets.move_money")
    signed_in(nina)
    User.objects.filter(pk=nina.pk).update(email="Nina@staff.example")

    Client().post(FORGOTTEN, {"email": "nina@staff.example"})
    (message,) = emails()
    browser = Client()
    follow_link(browser, link_in(message), password=PASSWORD)

    assert browser.get("/admin/")["Location"].startswith("/admin/two-factor/?")


@pytest.mark.parametrize("kind", ["stranger", "member", "inactive", "two"])
def test_nobody_else_gets_a_link(kind: str) -> None:
    address = "x@staff.example"
    if kind == "member":
        make_member(email=address)
    for _ in range({"inactive": 1, "two": 2}.get(kind, 0)):
        person = make_staff()
        User.objects.filter(pk=person.pk).update(email=address, is_active=kind == "two")

    answer = Client().post(FORGOTTEN, {"email": address})

    assert answer.status_code == 302
    assert Email.objects.get(to=address).about is None
    assert emails() == []


def test_an_address_gets_three_links_an_hour() -> None:
    person = make_staff()
    User.objects.filter(pk=person.pk).update(email="x@staff.example")
    for _ in range(5):
        Client().post(FORGOTTEN, {"email": "x@staff.example"})

    assert len(emails()) == 3


def test_a_members_link_opens_no_page_of_staff_and_the_other_way_around() -> None:
    member, person = make_member(), make_staff()

    for page, user in ((NEW_PASSWORD, member.user), ("/merchant/password/new/", person)):
        form = {"token": sign_reset(user), "new_password1": PASSWORD, "new_password2": PASSWORD}
        Client().post(page, form)
        user.refresh_from_db()
        assert not user.check_password(PASSWORD)


def test_two_people_do_not_share_an_address() -> None:
    member = make_member()
    form = {"username": "nina", "email": member.user.email.upper()}

    answer = administrator().post(reverse("admin:auth_user_add"), form)

    assert "already belongs" in answer.content.decode()
    assert not User.objects.filter(username="nina").exists()


def test_only_superusers_set_the_password_of_others() -> None:
    person = make_staff()
    page = reverse("admin:auth_user_password_change", args=[person.pk])

    assert administrator().get(page).status_code == 403
    assert signed_in().get(page).status_code == 200
    assert 'name="password"' not in administrator().get(url(person)).content.decode()


def test_the_page_of_a_link_names_no_token_in_its_address() -> None:
    page = Client().get(NEW_PASSWORD)

    assert page.status_code == 200
    assert "data-secret-link" in page.content.decode()
