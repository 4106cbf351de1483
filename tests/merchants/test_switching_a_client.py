"""Switching a client off refuses all its calls: a form that says neither on nor off asks again."""

import pytest

from tests.factories import make_client
from tests.merchants.people import browser_of, make_member

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("sent", [{}, {"enabled": ""}, {"enabled": "On"}, {"enabled": "\x00"}])
def test_anything_else_changes_nothing(sent: dict[str, str]) -> None:
    owner = make_member()
    shop = make_client(owner.account)

    page = browser_of(owner).post(f"/merchant/clients/{shop.pk}/switch/", sent)

    assert "Switch off" in page.content.decode()
    shop.refresh_from_db()
    assert shop.enabled
