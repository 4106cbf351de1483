"""API requests skip the middleware for browsers: sessions, sign-in and messages."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from tests.factories import Merchant
from tests.neighbour import ours
from tests.operators.back_office import show_factor

pytestmark = pytest.mark.django_db


def test_an_api_request_has_no_session(merchant: Merchant) -> None:
    answer = Client().get("/api/v1/ping", headers={"Authorization": f"Bearer {merchant.key}"})
    assert answer.status_code == 200
    assert not hasattr(answer.wsgi_request, "session")
    assert not answer.cookies


def test_a_staff_session_does_not_authenticate_at_the_api(staff: Client) -> None:
    answer = staff.get("/api/v1/ping")
    assert settings.SESSION_COOKIE_NAME in answer.wsgi_request.COOKIES
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "missing_token"


def test_a_back_office_page_has_a_session(staff: Client) -> None:
    answer = staff.get("/admin/")
    assert answer.wsgi_request.session.session_key
    assert answer.wsgi_request.user.is_authenticated


@pytest.fixture
def staff() -> Client:
    """A test client that is signed in as a superuser."""
    browser = Client()
    browser.force_login(
        User.objects.create_superuser("boss"), backend=settings.AUTHENTICATION_BACKENDS[-1]
    )
    show_factor(browser, ours(User).get())
    return browser
