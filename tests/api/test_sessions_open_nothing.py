"""The API knows only keys: it neither accepts nor opens a browser's session."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import Merchant
from tests.neighbour import ours
from tests.operators.back_office import show_factor

pytestmark = pytest.mark.django_db


def test_an_api_request_opens_no_session(merchant: Merchant) -> None:
    answer = Client().get("/api/v1/ping", headers={"Authorization": f"Bearer {merchant.key}"})
    assert answer.status_code == 200
    assert not answer.cookies


def test_a_staff_session_does_not_authenticate_at_the_api(staff: Client) -> None:
    answer = staff.get("/api/v1/ping")
    assert settings.SESSION_COOKIE_NAME in answer.wsgi_request.COOKIES
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "missing_token"


@pytest.fixture
def staff() -> Client:
    """A test client that is signed in as a superuser."""
    browser = Client()
    browser.force_login(
        User.objects.create_superuser("boss"), backend=settings.AUTHENTICATION_BACKENDS[-1]
    )
    show_factor(browser, ours(User).get())
    return browser
