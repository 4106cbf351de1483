"""The pages of one account are limited per minute, so that they leave time for purchases."""

import re

import pytest

from merchants.models import Role
from merchants.people import access
from tests.factories import make_account
from tests.merchants.people import browser_of, make_member

pytestmark = pytest.mark.django_db

STATEMENT = "/merchant/wallet/statement.csv"


def test_heavy_pages_of_an_account_are_limited_for_all_its_members() -> None:
    account = make_account()
    browsers = [browser_of(make_member(account, role)) for role in (Role.OWNER, Role.VIEWER)]

    statuses = [
        browsers[number % 2].get(STATEMENT).status_code
        for number in range(access.HEAVY_PAGES_PER_MINUTE + 1)
    ]

    assert statuses == [200] * access.HEAVY_PAGES_PER_MINUTE + [429]
    refused = browsers[0].get(STATEMENT)
    assert b"Too many requests" in refused.content
    assert browsers[0].get("/merchant/wallet/").status_code == 200  # other pages still open


def test_the_limit_of_one_account_does_not_concern_another() -> None:
    busy, other = browser_of(make_member()), browser_of(make_member())
    for _ in range(access.HEAVY_PAGES_PER_MINUTE + 1):
        answer = busy.get(STATEMENT)
    assert answer.status_code == 429

    assert other.get(STATEMENT).status_code == 200


def test_all_pages_of_an_account_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "PAGES_PER_MINUTE", 3)
    browser = browser_of(make_member())

    statuses = [browser.get("/merchant/wallet/").status_code for _ in range(4)]

    assert statuses == [200, 200, 200, 429]
    wait = re.search(
        r"Wait (\d+) seconds? and try again", browser.get("/merchant/").content.decode()
    )
    assert wait is not None
    assert 1 <= int(wait[1]) <= 60
