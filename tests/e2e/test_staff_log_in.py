"""Staff log-in over real HTTP: guessing is locked out, and a second factor is required."""

import re
from collections.abc import Iterator
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest
from django.contrib.auth.models import User
from django_otp.oath import totp

from accounts.models import SecondFactor
from tests.browsing import PASSWORD
from tests.live import LiveServer, live_server, with_settings

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 3
ENROL = "/admin/two-factor/enrol/?next=%2Fadmin%2F"  # where staff without a second factor arrive


@pytest.fixture
def server(transactional_db: None) -> Iterator[LiveServer]:
    """A server with two staff, behind a trusted proxy on this host."""
    for name in ("anna", "ben"):
        User.objects.create_user(name, password=PASSWORD, is_staff=True, is_superuser=True)
    environment = {**with_settings(AXES_FAILURE_LIMIT=LIMIT), "TRUSTED_PROXIES": "127.0.0.0/8"}
    with live_server(environment, workers=1) as server:
        yield server


class Browser:
    """A browser without scripts: it handles cookies, forms and redirects."""

    def __init__(self, server: LiveServer, address: str = "203.0.113.5") -> None:
        self.base_url = server.base_url
        self.cookies = CookieJar()
        self.opener: OpenerDirector = build_opener(HTTPCookieProcessor(self.cookies))
        self.opener.addheaders = [("X-Forwarded-For", address)]

    def open(self, path: str, **form: str) -> tuple[int, str, str]:
        """Opens a path or posts a form. Returns the status, the final path and the page."""
        data = None
        if form:
            token = next(each.value for each in self.cookies if each.name == "csrftoken")
            data = urlencode({**form, "csrfmiddlewaretoken": token or ""}).encode()
        try:
            with self.opener.open(Request(self.base_url + path, data)) as answer:
                return answer.status, answer.url.removeprefix(self.base_url), answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, path, error.read().decode()

    def log_in(self, name: str, password: str) -> tuple[int, str]:
        self.open("/admin/login/")
        status, place, _ = self.open("/admin/login/?next=/admin/", username=name, password=password)
        return status, place


def test_too_many_wrong_passwords_lock_out_only_that_address(server: LiveServer) -> None:
    guesses = [Browser(server).log_in("anna", f"guess {number}")[0] for number in range(LIMIT + 1)]
    assert guesses[0] == 200
    assert guesses[-1] == 429

    assert Browser(server).log_in("anna", PASSWORD)[0] == 429
    assert Browser(server, "203.0.113.6").log_in("anna", PASSWORD) == (
        200,
        ENROL,
    )
    assert Browser(server).log_in("ben", PASSWORD) == (200, ENROL)


def test_an_enrolled_second_factor_is_required(server: LiveServer) -> None:
    anna = Browser(server)
    assert anna.log_in("anna", PASSWORD) == (200, ENROL)
    _, _, page = anna.open(ENROL)
    assert "data:image/svg" in page
    device = SecondFactor.objects.get()
    _, _, page = anna.open(ENROL, code=f"{totp(device.key):06d}")
    shown = re.search(r'aria-label="Backup codes">([^<]+)<', page)
    assert shown is not None
    backup = shown.group(1).split()[0]

    again = Browser(server)
    assert again.log_in("anna", PASSWORD) == (200, "/admin/two-factor/?next=%2Fadmin%2F")
    check = again.open("/admin/catalogue/product/")[1]
    assert check == "/admin/two-factor/?next=%2Fadmin%2Fcatalogue%2Fproduct%2F"
    assert again.open(check, code=backup)[1] == "/admin/catalogue/product/"
    assert again.open("/admin/catalogue/product/")[1] == "/admin/catalogue/product/"

    SecondFactor.objects.update(last_step=-1)  # allows the code that confirmed the device again
    third = Browser(server)
    third.log_in("anna", PASSWORD)
    assert third.open("/admin/two-factor/", code=f"{totp(device.key):06d}")[1] == "/admin/"


def test_a_form_without_a_csrf_token_is_refused(server: LiveServer) -> None:
    anna = Browser(server)
    anna.log_in("anna", PASSWORD)
    request = Request(server.base_url + "/admin/topups/fulfilment/next/", b"x=1")
    with pytest.raises(HTTPError) as refused:
        anna.opener.open(request)
    with refused.value as answer:
        assert answer.code == 403
