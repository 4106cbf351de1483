"""Errors on the merchant site are pages of the site that reveal no details."""

from collections.abc import Generator
from itertools import count, islice
from typing import Any

import pytest
from django.core.cache import cache
from django.http import StreamingHttpResponse
from django.test import Client
from pytest_django import Settings
from structlog.contextvars import bound_contextvars

from accounts.models import Account
from merchants.frame import downloads
from merchants.models import Role
from merchants.people import member_pages
from tests.merchants.people import PASSWORD, browser_of, make_member
from tests.operators.back_office import signed_in

pytestmark = pytest.mark.django_db


def heading(answer: Any) -> str:
    """The heading of an error page, which also names the request and offers a way out."""
    text: str = answer.content.decode()
    assert answer["X-Request-Id"] in text
    assert '<p><a href="/' in text
    return text.partition("<h1>")[2].partition("</h1>")[0]


def test_an_unknown_path_gets_a_page() -> None:
    answer = Client().get("/merchant/nowhere/")
    assert (answer.status_code, heading(answer)) == (404, "Page not found")


def test_a_refusal_says_why_and_what_to_do() -> None:
    member = make_member(role=Role.VIEWER)
    page = browser_of(member).get("/merchant/people/invite/").content.decode()
    assert "Your role, viewer, does not allow it. Ask an owner" in page

    Account.objects.filter(pk=member.account_id).update(enabled=False)
    page = browser_of(member).get("/merchant/people/invite/").content.decode()
    assert "This account is switched off" in page


def test_an_expired_form_gets_a_page() -> None:
    answer = browser_of(make_member(), csrf=True).post("/merchant/profile/password/")
    assert (answer.status_code, heading(answer)) == (403, "This form has expired")


def test_staff_on_the_merchant_site_are_offered_to_switch_accounts() -> None:
    browser = signed_in(csrf=True)
    answer = browser.get("/merchant/")
    page = answer.content.decode()
    assert (answer.status_code, heading(answer)) == (403, "You cannot open this page")
    assert '<a href="/admin/">Go to the back office</a>' in page

    token = page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
    action = page.partition('action="')[2].partition('"')[0]
    left = browser.post(action, {"csrfmiddlewaretoken": token})
    assert (left.status_code, left["Location"]) == (302, "/merchant/sign-in/")
    assert "sessionid" not in browser.cookies or not browser.cookies["sessionid"].value


def test_a_lockout_gets_a_page(settings: Settings) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    for name in (make_member().user.email, "nobody@merchant.example"):
        for password in ("wrong", "wrong", PASSWORD):
            answer = Client().post("/merchant/sign-in/", {"username": name, "password": password})
        assert (answer.status_code, heading(answer)) == (429, "Too many wrong passwords")


def test_a_server_error_gets_a_page_without_details(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("a secret detail")

    browser = browser_of(make_member())
    browser.raise_request_exception = False
    monkeypatch.setattr(member_pages, "members_and_blocked", fail)
    answer = browser.get("/merchant/people/")
    assert (answer.status_code, heading(answer)) == (500, "Something went wrong")
    assert "secret detail" not in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]


def test_an_unreadable_request_gets_a_page() -> None:
    fields = {f"field{number}": "1" for number in range(1001)}
    answer = browser_of(make_member()).post("/merchant/people/invite/", fields)
    assert (answer.status_code, heading(answer)) == (400, "Bad request")


@pytest.mark.parametrize("odd", ["a\x00b", "x" * 5000, "\ud800", "🙂@example.com", "a@b"])
def test_odd_values_are_refused_in_the_form(odd: str) -> None:
    sent = odd.encode("utf-8", "surrogatepass")
    owner = make_member()
    fields = ("username", "password", "email", "role", "code", "old_password", "new_password1")
    body = b"&".join(name.encode() + b"=" + sent for name in fields)
    for path in (
        "sign-in/",
        "password/forgotten/",
        "join/?token=x",
        "people/invite/",
        f"people/{owner.pk}/role/",
        "profile/password/",
        "profile/two-factor/on/",
        "two-factor/",
    ):
        for browser in (Client(), browser_of(owner)):
            answer = browser.generic(
                "POST", f"/merchant/{path}", body, "application/x-www-form-urlencoded"
            )
            assert answer.status_code in (200, 302, 410), path


def test_a_broken_download_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def parts() -> Generator[bytes]:
        yield b"a line"
        raise RuntimeError("a secret")

    monkeypatch.setattr(downloads, "WHOLE_BYTES", 1)
    account = make_member().account
    with bound_contextvars(request_id="the request's"):
        answer = downloads.send_file(parts(), to=account, content_type="text/csv", name="x")
    assert isinstance(answer, StreamingHttpResponse)
    pieces = iter(answer)
    assert [next(pieces), next(pieces)] == [b"a line", downloads.INCOMPLETE]
    with pytest.raises(RuntimeError):
        next(pieces)
    answer.close()
    (record,) = [record for record in caplog.records if record.name == "merchants.frame.downloads"]
    assert isinstance(record.msg, dict)
    assert record.msg["event"] == "download_failed"
    assert record.msg["request_id"] == "the request's"


class Clock:
    """The time that downloads see."""

    now = 0.0

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(downloads, "WHOLE_BYTES", 1)
        patch.setattr(downloads, "monotonic", lambda: self.now)


def test_a_slow_download_ends_before_its_mark(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A slow reader would hold one more thread each time the mark of the account expires."""
    clock = Clock(monkeypatch)
    answer = send_lines(make_member().account, (b"a line" for _ in count()))

    parts = []
    for part in islice(answer, downloads.MARK_SECONDS):
        parts.append(part)
        clock.now += 10  # the reader takes six bytes in ten seconds

    assert b"This file is incomplete." in parts[-1]
    assert downloads.PATIENCE_SECONDS < clock.now < downloads.MARK_SECONDS
    (record,) = [record for record in caplog.records if record.name == "merchants.frame.downloads"]
    assert (record.levelname, record.exc_info) == ("WARNING", None)


def test_a_pause_ends_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    parts = iter(send_lines(make_member().account, (b"a line" for _ in range(9))))

    assert next(parts) == b"a line"
    clock.now += downloads.PATIENCE_SECONDS + 1

    assert list(parts) == [downloads.INCOMPLETE]


@pytest.mark.parametrize("slow", ["the service", "the reader"])
def test_a_steady_download_has_no_limit(slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand parts take 100 times the patience; the mark is there until the last one."""
    clock, line = Clock(monkeypatch), bytes(6 * downloads.SLOWEST)
    account = make_member().account

    def build() -> Generator[bytes]:
        for _ in range(10_000):
            clock.now += 6 if slow == "the service" else 0
            yield line

    answer, taken = send_lines(account, build()), 0
    for part in answer:
        clock.now += 6 if slow == "the reader" else 0
        taken += part == line
        if taken == 5_000:
            cache.clear()  # as if it had expired

    assert taken == 10_000
    assert downloads.send_file(build(), to=account, content_type="text/csv", name="x") is None
    answer.close()
    send_lines(account, build()).close()


def send_lines(account: Account, lines: Generator[bytes]) -> StreamingHttpResponse:
    answer = downloads.send_file(lines, to=account, content_type="text/csv", name="x")
    assert isinstance(answer, StreamingHttpResponse)
    return answer
