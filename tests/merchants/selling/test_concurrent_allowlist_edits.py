"""If two people edit an allowlist at once, the later one sees the earlier one's change."""

import re

import pytest
from django.test import Client

from accounts.models import ApiClient
from merchants.api_access.clients import change_allowlist
from merchants.models import Email, Membership, Role
from tests.factories import make_client
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Membership:
    return make_member()


@pytest.fixture
def shop(owner: Membership) -> ApiClient:
    shop = make_client(owner.account)
    shop.allowed_networks = ["127.0.0.1", "10.0.0.0/8"]
    shop.save()
    return shop


def shown(page: str) -> dict[str, str]:
    """The values that the page's form would send."""
    (networks,) = re.findall(r"<textarea[^>]*>\n?([^<]*)</textarea>", page)
    return {"networks": networks, **dict(re.findall(r'name="(before|sure)" value="([^"]*)"', page))}


def test_the_later_editor_sees_the_change_and_confirms(owner: Membership, shop: ApiClient) -> None:
    path = f"/merchant/clients/{shop.pk}/allowlist/"
    one = browser_of(owner)
    two = browser_of(make_member(owner.account, Role.DEVELOPER))

    def opened(browser: Client) -> dict[str, str]:
        return shown(browser.get(path).content.decode())

    first, second = opened(one), opened(two)
    first["networks"] += "\n203.0.113.7"
    second["networks"] += "\n203.0.113.8"

    assert one.post(path, first).status_code == 302
    asked = two.post(path, second).content.decode()

    assert "127.0.0.1 10.0.0.0/8 203.0.113.7" in asked
    assert "203.0.113.8" in shown(asked)["networks"]  # the form keeps what was typed
    shop.refresh_from_db()
    assert "203.0.113.8" not in shop.allowed_networks

    assert two.post(path, shown(asked)).status_code == 302  # the change has been shown
    shop.refresh_from_db()
    assert shop.allowed_networks == ["127.0.0.1", "10.0.0.0/8", "203.0.113.8"]


@pytest.mark.django_db(transaction=True)
def test_a_change_of_an_outdated_list_is_refused(owner: Membership, shop: ApiClient) -> None:
    before = list(shop.allowed_networks)
    assert change_allowlist(client=shop, networks=["::1"], before=before, actor=owner.user)
    emails = ours(Email).count()

    assert not change_allowlist(client=shop, networks=[], before=before, actor=owner.user)

    shop.refresh_from_db()
    assert shop.allowed_networks == ["::1"]
    assert ours(Email).count() == emails
