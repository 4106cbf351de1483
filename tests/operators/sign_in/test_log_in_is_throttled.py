"""After a few wrong passwords of staff, only the guesser is locked out."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from tests.browsing import PASSWORD

pytestmark = pytest.mark.django_db

LIMIT = 3


@pytest.fixture(autouse=True)
def _staff(settings: Settings) -> None:
    settings.AXES_FAILURE_LIMIT = LIMIT
    for name in ("anna", "ben"):
        User.objects.create_user(name, password=PASSWORD, is_staff=True, is_superuser=True)


def log_in(name: str, password: str, *, address: str = "203.0.113.5", **headers: str) -> Any:
    return Client(REMOTE_ADDR=address).post(
        "/admin/login/", {"username": name, "password": password}, headers=headers
    )


def guess(times: int, **where: str) -> list[int]:
    return [log_in("anna", "wrong", **where).status_code for _ in range(times)]


def test_the_right_password_fails_after_too_many_wrong_ones() -> None:
    assert guess(LIMIT)[-1] == 429

    assert log_in("anna", PASSWORD).status_code == 429


def test_nobody_else_is_locked_out() -> None:
    guess(LIMIT + 1)

    assert log_in("ben", PASSWORD).status_code == 302
    assert log_in("anna", PASSWORD, address="203.0.113.6").status_code == 302


def test_a_successful_log_in_resets_the_count() -> None:
    guess(LIMIT - 1)
    assert log_in("anna", PASSWORD).status_code == 302

    assert 429 not in guess(LIMIT - 1)


def test_a_forged_forwarded_address_is_ignored() -> None:
    for number in range(LIMIT):
        log_in("anna", "wrong", **{"X-Forwarded-For": f"198.51.100.{number}"})

    assert log_in("anna", PASSWORD).status_code == 429


def test_behind_a_trusted_proxy_the_callers_address_counts(settings: Settings) -> None:
    settings.TRUSTED_PROXIES = ["203.0.113.0/24"]
    for _ in range(LIMIT):
        log_in("anna", "wrong", **{"X-Forwarded-For": "198.51.100.1"})

    assert log_in("anna", PASSWORD, **{"X-Forwarded-For": "198.51.100.1"}).status_code == 429
    assert log_in("anna", PASSWORD, **{"X-Forwarded-For": "198.51.100.2"}).status_code == 302
