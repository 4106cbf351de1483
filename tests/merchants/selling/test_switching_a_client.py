"""A client is switched only by the value `on` or `off`, because off refuses all its calls."""

import pytest

from tests.factories import make_client
from tests.merchants.people import browser_of, make_member

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("sent", [{}, {"enabled": ""}, {"enabled": "On"}, {"enabled": "\x00"}])
def test_other_values_change_nothing(sent: dict[str, str]) -> None:
    owner = make_member()
    shop = make_client(owner.account)

    page = browser_of(owner).post(f"/merchant/clients/{shop.pk}/switch/", sent)

    assert "Switch off" in page.content.decode()
    shop.refresh_from_db()
    assert shop.enabled
