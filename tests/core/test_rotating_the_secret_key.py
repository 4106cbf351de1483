"""Sessions, links and buttons survive a new DJANGO_SECRET_KEY while the old one is a fallback.

Whatever the service signs with its secret key has a case here.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from pytest_django import Settings

from merchants.email.sending import sweep_emails
from merchants.models import MemberSession, Role
from merchants.people.invitations import invite_person
from operators.telegram.messages.buttons import Action, Forged, Press, decode, encode
from tests.merchants.people import PASSWORD, end_of, follow_link, make_member
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in

pytestmark = pytest.mark.django_db

OLD, NEW = "o" * 50, "n" * 50

Works = Callable[[], bool]


def member_session() -> Works:
    member, browser = make_member(), Client()
    browser.post("/merchant/sign-in/", {"username": member.user.email, "password": PASSWORD})
    ends = end_of(browser)

    def works() -> bool:
        is_in = browser.get("/merchant/profile/").status_code == 200
        if is_in:
            assert end_of(browser) == ends
            assert ours(MemberSession).get().session_id == browser.session.session_key
        return is_in

    return works


def staff_session() -> Works:
    """A session that has shown its second factor; the rotation does not ask for it again."""
    browser = signed_in(make_staff())
    return lambda: browser.get("/admin/password_change/").status_code == 200


def message_for_the_next_page() -> Works:
    browser = Client()
    browser.post("/merchant/password/forgotten/", {"email": "nobody@merchant.example"})
    return lambda: "If this address" in browser.get("/merchant/sign-in/").content.decode()


def invitation_link() -> Works:
    owner = make_member()
    invite_person(
        account=owner.account, email="a@b.example", role=Role.VIEWER, invited_by=owner.user
    )
    return link_works("/merchant/join/")


def reset_link() -> Works:
    member = make_member()
    Client().post("/merchant/password/forgotten/", {"email": member.user.email})
    return link_works("/merchant/password/new/")


def link_works(page: str) -> Works:
    sweep_emails()
    (link,) = re.findall(rf"{page}\S+", "".join(str(message.body) for message in mail.outbox))
    return lambda: follow_link(Client(), link).status_code == 200


def button() -> Works:
    press = Press(Action.CLAIM, 7, 9)
    data = encode(press)

    def works() -> bool:
        try:
            return decode(data) == press
        except Forged:
            return False

    return works


SIGNED: list[Callable[[], Works]] = [
    member_session,
    staff_session,
    message_for_the_next_page,
    invitation_link,
    reset_link,
    button,
]


@pytest.fixture
def rotate(settings: Any) -> Callable[..., None]:
    def rotate(key: str, *fallbacks: str) -> None:
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = key, list(fallbacks)

    settings.TELEGRAM_BOT_TOKEN = "4711:a-token-of-nobody"
    rotate(OLD)
    return rotate


@pytest.mark.parametrize("sign", SIGNED)
def test_what_the_old_key_signed_stays_valid(
    sign: Callable[[], Works], rotate: Callable[..., None]
) -> None:
    works = sign()
    rotate(NEW, OLD)
    assert works()


@pytest.mark.parametrize("sign", SIGNED)
def test_without_the_fallback_what_the_old_key_signed_ends(
    sign: Callable[[], Works], rotate: Callable[..., None]
) -> None:
    works = sign()
    rotate(NEW)
    assert not works()


def test_a_used_session_outlives_the_fallback(rotate: Callable[..., None]) -> None:
    works = member_session()
    rotate(NEW, OLD)
    assert works()
    rotate(NEW)
    assert works()


def test_the_new_key_signs(settings: Settings, rotate: Callable[..., None]) -> None:
    rotate(NEW, OLD)
    works = button()
    rotate(NEW)
    assert works()
