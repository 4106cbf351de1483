"""A web server with company sign-in, the provider, and people who sign in, all over real HTTP."""

import itertools
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener, urlopen

import pytest

from embedded.environment import PROJECT
from embedded.processes import free_port
from tests.company_sign_in.provider import CLIENT, PASSWORD, SECRET
from tests.live import HOST, LiveServer, live_server
from tests.quick_starts import QuickProcess

CALLBACK = "/admin/company/callback/"
FIRST_PAGES = ("/admin/", "/admin/topups/fulfilment/")
ROLES = {"desk": "Operator", "money": "Finance"}
NAMES = ("anna", "ben", "carla")
_addresses = itertools.count(1)


@dataclass
class Company:
    """The provider, and the service at which its people sign in."""

    server: LiveServer
    people: Path

    def describe(self, name: str, **claims: Any) -> None:
        """Sets the claims of one person's next tokens. Everybody else's stay."""
        email = {"email": f"{name}@company.example", "email_verified": True}
        everybody = json.loads(self.people.read_text()) if self.people.exists() else {}
        self.people.write_text(json.dumps({**everybody, name: {**email, **claims}}))


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *request: Any) -> None:
        return None


class Visitor:
    """A browser without scripts. It follows redirects one at a time, so a test can stop it."""

    def __init__(self, server: LiveServer) -> None:
        self.base_url = server.public_url
        self.cookies = CookieJar()
        self._opener = build_opener(HTTPCookieProcessor(self.cookies), _Stay)
        self._opener.addheaders = [("X-Forwarded-For", f"203.0.113.{next(_addresses)}")]

    def request(self, url: str, form: dict[str, str] | None = None) -> tuple[int, str, str]:
        """One request. Returns the status, the Location and the page."""
        body = urlencode(form).encode() if form else None
        try:
            with self._opener.open(Request(urljoin(self.base_url, url), body)) as answer:
                return answer.status, "", answer.read().decode()
        except HTTPError as error:
            with error:
                location = error.headers.get("Location", "")
                return (
                    error.code,
                    urljoin(error.url or "", location) if location else "",
                    (error.read().decode()),
                )

    def follow(self, url: str, form: dict[str, str] | None = None, *, until: str = " ") -> Any:
        """Follows redirects. Returns the last URL and its page, or the URL that contains `until`
        before it is opened."""
        for _ in range(12):
            status, location, page = self.request(url, form)
            if not location:
                return url, page
            assert status in (301, 302, 303), (status, location)
            url, form = location, None
            if until in url:
                return url, ""
        raise AssertionError(f"endless redirects: {url}")

    def come_back(self, name: str, *, next: str = "") -> str:
        """Signs in at the provider. Returns the callback's URL, which was not opened."""
        start = f"/admin/company/?{urlencode({'next': next})}"
        url, page = self.follow(start, until=CALLBACK)
        if CALLBACK not in url:
            token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
            assert token is not None, page
            form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token.group(1)}
            url, page = self.follow(url, form, until=CALLBACK)
        assert CALLBACK in url, page
        return str(url)

    def sign_in(self, name: str, *, next: str = "") -> str:
        """Signs in with the company account. Returns the path of the page that is then shown."""
        url, _ = self.follow(self.come_back(name, next=next))
        return str(urlsplit(url).path)

    def is_inside(self) -> bool:
        """Whether a page of the back office opens."""
        return bool(self.request("/admin/topups/fulfilment/")[0] == 200)

    @property
    def session_key(self) -> str:
        return next(each.value or "" for each in self.cookies if each.name == "sessionid")

    def refusal(self, url: str) -> str:
        """Opens the callback, which must refuse. Returns the message on the sign-in page."""
        landed, page = self.follow(url)
        assert urlsplit(landed).path == "/admin/login/", landed
        assert not self.is_inside()
        return str(page)


def query_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


@pytest.fixture(scope="package")
def company(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    folder, port = tmp_path_factory.mktemp("provider"), free_port()
    environment = {
        "COMPANY_SIGN_IN_ISSUER": f"http://{HOST}:{port}",
        "COMPANY_SIGN_IN_CLIENT_ID": CLIENT,
        "COMPANY_SIGN_IN_CLIENT_SECRET": SECRET,
        "COMPANY_SIGN_IN_COMPANY": "Acme",
        "COMPANY_SIGN_IN_ROLES": ",".join(f"{value}={role}" for value, role in ROLES.items()),
        "COMPANY_SIGN_IN_SECOND_FACTORS": "amr=mfa,acr=phr",
        "COMPANY_SIGN_IN_LINKS_BY_EMAIL": "1",
        "COMPANY_SIGN_IN_ONLY": "1",
        "COMPANY_SIGN_IN_BREAK_GLASS": "root",
        "TRUSTED_PROXIES": "127.0.0.0/8",
        "LOG_LEVEL": "DEBUG",
    }
    with live_server(environment, workers=1) as server:
        running = Company(server, folder / "people.json")
        for name in NAMES:
            running.describe(name, groups=["desk"], amr=["mfa"])
        callback = server.public_url + CALLBACK
        module = ("-m", "tests.company_sign_in.provider", str(folder), str(port), callback)
        provider = QuickProcess(
            "provider",
            [sys.executable, *module],
            environment=os.environ,
            folder=PROJECT,
            log=folder / "log",
        )
        try:
            _wait_for(f"http://{HOST}:{port}/.well-known/openid-configuration")
            yield running
        finally:
            provider.stop()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urlopen(url).close()
        except URLError:
            assert time.monotonic() < deadline, "the provider does not start"
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def visitor(company: Company) -> Visitor:
    """Somebody new, for whom nothing of an earlier test is left. Anna is an operator with MFA."""
    for name in NAMES:
        company.describe(name, groups=["desk"], amr=["mfa"])
    return Visitor(company.server)
