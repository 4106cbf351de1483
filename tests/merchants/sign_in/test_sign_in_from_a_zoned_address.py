"""A link-local IPv6 address may carry a zone, which must not reach the database column."""

import pytest
from django.test import Client

from merchants.models import MemberSession
from tests.merchants.people import PASSWORD, make_member
from tests.neighbour import ours

pytestmark = pytest.mark.django_db

LINK_LOCAL = "fe80::1111:2222:3333:4444"


def test_a_zoned_address_can_sign_in() -> None:
    email = make_member().user.email
    browser = Client(REMOTE_ADDR=f"{LINK_LOCAL}%an-interface-with-a-long-name")
    wrong = browser.post("/merchant/sign-in/", {"username": email, "password": "wrong"})
    assert wrong.status_code == 200

    browser.post("/merchant/sign-in/", {"username": email, "password": PASSWORD})

    assert browser.get("/merchant/").status_code == 200
    assert ours(MemberSession).get().address == LINK_LOCAL
