"""Staff log in over real HTTP: guessing ends soon, and an enrolled second factor is asked for."""

import re
from collections.abc import Iterator
from http.cookiejar import CookieJar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

import pytest
from django.contrib.auth.models import User
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.browsing import PASSWORD
from tests.live import LiveServer, live_server

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 3


@pytest.fixture
def server(transactional_db: None) -> Iterator[LiveServer]:
    """Behind a proxy on this host, whose word about addresses is believed."""
    for name in ("anna", "ben"):
        User.objects.create_user(name, password=PASSWORD, is_staff=True, is_superuser=True)
    environment = {"LOGIN_FAILURE_LIMIT": str(LIMIT), "TRUSTED_PROXIES": "127.0.0.0/8"}
    with live_server(environment, workers=1) as server:
        yield server


class Person:
    """A browser without scripts: cookies, forms, redirects."""

    def __init__(self, server: LiveServer, address: str = "203.0.113.5") -> None:
        self.base_url = server.base_url
        self.cookies = CookieJar()
        self.opener: OpenerDirector = build_opener(HTTPCookieProcessor(self.cookies))
        self.opener.addheaders = [("X-Forwarded-For", address)]

    def open(self, path: str, **form: str) -> tuple[int, str, str]:
        """Status, where it ended, and the page."""
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


def test_too_many_guesses_end_it_for_the_guesser_alone(server: LiveServer) -> None:
    guesses = [Person(server).log_in("anna", f"guess {number}")[0] for number in range(LIMIT + 1)]
    assert guesses[0] == 200
    assert guesses[-1] == 429

    assert Person(server).log_in("anna", PASSWORD)[0] == 429
    assert Person(server, "203.0.113.6").log_in("anna", PASSWORD) == (200, "/admin/")
    assert Person(server).log_in("ben", PASSWORD) == (200, "/admin/")


def test_an_enrolled_second_factor_is_asked_for(server: LiveServer) -> None:
    anna = Person(server)
    assert anna.log_in("anna", PASSWORD) == (200, "/admin/")
    _, _, page = anna.open("/admin/two-factor/enrol/")
    assert "data:image/svg" in page
    device = TOTPDevice.objects.get()
    _, _, page = anna.open("/admin/two-factor/enrol/", code=f"{totp(device.bin_key):06d}")
    (backup, *_) = re.findall(r'value="([a-z0-9]{8})"', page)

    again = Person(server)
    assert again.log_in("anna", PASSWORD) == (200, "/admin/two-factor/")
    assert again.open("/admin/catalogue/product/")[1] == "/admin/two-factor/"
    assert again.open("/admin/two-factor/", code=backup)[1] == "/admin/"
    assert again.open("/admin/catalogue/product/")[1] == "/admin/catalogue/product/"

    TOTPDevice.objects.update(last_t=-1)  # the code that confirmed it is not taken again
    third = Person(server)
    third.log_in("anna", PASSWORD)
    assert third.open("/admin/two-factor/", code=f"{totp(device.bin_key):06d}")[1] == "/admin/"


def test_a_form_without_its_token_is_refused(server: LiveServer) -> None:
    anna = Person(server)
    anna.log_in("anna", PASSWORD)
    request = Request(server.base_url + "/admin/topups/fulfilment/next/", b"x=1")
    with pytest.raises(HTTPError) as refused:
        anna.opener.open(request)
    with refused.value as answer:
        assert answer.code == 403
