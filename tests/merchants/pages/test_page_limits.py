"""The pages of a member and of an account are limited per minute, so that they leave time for
purchases. Nobody is kept from protecting the account by what others did."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import Account
from merchants.models import Role
from merchants.people import access
from tests.cases.complaints import PNG, make_complaint
from tests.factories import make_account, make_client, make_key
from tests.merchants.people import browser_of, make_member, viewer_of

pytestmark = pytest.mark.django_db

STATEMENT, WALLET, OVERVIEW = "/merchant/wallet/statement.csv", "/merchant/wallet/", "/merchant/"


def open_pages(browser: Client, path: str, times: int) -> list[int]:
    return [browser.get(path).status_code for _ in range(times)]


@pytest.mark.parametrize(
    ("path", "limit"),
    [(WALLET, "PAGES_PER_MINUTE"), (STATEMENT, "HEAVY_PAGES_PER_MINUTE")],
)
def test_pages_of_a_member_are_limited(
    path: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, limit, 3)
    account = make_account()
    busy, colleague = viewer_of(account), viewer_of(account)

    assert open_pages(busy, path, 5) == [200, 200, 200, 429, 429]
    assert colleague.get(path).status_code == 200


@pytest.mark.parametrize(
    ("path", "limit"),
    [(WALLET, "ACCOUNT_PAGES_PER_MINUTE"), (STATEMENT, "ACCOUNT_HEAVY_PAGES_PER_MINUTE")],
)
def test_pages_of_an_account_are_limited(
    path: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, limit, 3)
    account = make_account()
    members = [viewer_of(account) for _ in range(4)]

    assert [member.get(path).status_code for member in members] == [200, 200, 200, 429]
    assert browser_of(make_member()).get(path).status_code == 200  # of another account


def test_heavy_pages_leave_the_others_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "HEAVY_PAGES_PER_MINUTE", 1)
    browser = browser_of(make_member())

    assert open_pages(browser, STATEMENT, 2) == [200, 429]
    assert browser.get(WALLET).status_code == 200


def test_sending_a_file_is_heavy_and_reading_a_case_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "HEAVY_PAGES_PER_MINUTE", 1)
    complaint = make_complaint()
    browser, case = browser_of(complaint.member), complaint.open()
    page = f"/merchant/cases/{case.pk}/"

    def answer(*files: SimpleUploadedFile) -> int:
        case.refresh_from_db()
        form = {"text": "Look.", "version": case.version, "attachments": files}
        return browser.post(page, form).status_code

    files = [SimpleUploadedFile("shop.png", PNG) for _ in range(2)]
    assert [answer(file) for file in files] == [302, 429]
    assert answer() == 302
    assert open_pages(browser, page, 2) == [200, 200]


def test_the_page_says_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "PAGES_PER_MINUTE", 0)

    words = browser_of(make_member()).get(OVERVIEW).content.decode()

    assert "Too many requests" in words
    wait = re.search(r"Wait (\d+) seconds? and try again", words)
    assert wait is not None
    assert 1 <= int(wait[1]) <= 60


def protect(browser: Client, account: Account) -> list[int]:
    """Opens pages that protect the account or lead there, then acts. Returns the statuses."""
    client = make_client(account)
    make_key(client)
    key = client.keys.get()
    colleague = make_member(account)
    pages = [
        "/merchant/clients/",
        f"/merchant/clients/{client.pk}/",
        f"/merchant/clients/{client.pk}/keys/{key.pk}/revoke/",
        "/merchant/people/",
        "/merchant/profile/",
        "/merchant/profile/password/",
    ]
    forms = {
        f"/merchant/clients/{client.pk}/keys/{key.pk}/revoke/": {},
        f"/merchant/clients/{client.pk}/switch/": {"enabled": "off"},
        f"/merchant/people/{colleague.pk}/role/": {"role": Role.VIEWER},
        f"/merchant/people/{colleague.pk}/remove/": {},
        "/merchant/profile/sessions/end/": {},
    }
    return [
        *(browser.get(path).status_code for path in pages),
        *(browser.post(path, form).status_code for path, form in forms.items()),
    ]


@pytest.mark.parametrize("busy", ["account", "member"])
def test_no_other_pages_keep_an_owner_from_protecting_the_account(
    busy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = make_account()
    owner = browser_of(make_member(account))
    limit = "ACCOUNT_PAGES_PER_MINUTE" if busy == "account" else "PAGES_PER_MINUTE"
    monkeypatch.setattr(access, limit, 20)
    viewers = [viewer_of(account) for _ in range(5)]
    for number in range(20):
        (owner if busy == "member" else viewers[number % 5]).get(WALLET)
    assert owner.get(WALLET).status_code == 429

    assert protect(owner, account) == [200] * 6 + [302] * 5
    assert not account.clients.get().enabled


def test_protecting_pages_are_limited_for_each_member(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "PAGES_PER_MINUTE", 3)
    account = make_account()

    assert open_pages(viewer_of(account), "/merchant/people/", 4) == [200, 200, 200, 429]
    assert viewer_of(account).get("/merchant/people/").status_code == 200
