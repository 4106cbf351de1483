"""A request for another host is refused, also after many requests for the right one."""

from typing import Any

import pytest
from django.conf import settings as configured
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from core.http.hosts import MOST_HOSTS, AllowedHostsMiddleware


@pytest.fixture
def middleware(settings: Any) -> AllowedHostsMiddleware:
    settings.ALLOWED_HOSTS = ["shop.example", ".wild.example"]
    return AllowedHostsMiddleware(lambda request: HttpResponse())


def request_for(host: str) -> HttpRequest:
    return RequestFactory().get("/", headers={"Host": host})


def test_only_allowed_hosts_are_served(middleware: AllowedHostsMiddleware) -> None:
    """The second request for a host, and one for a similar name, is judged like the first."""
    for _ in range(2):
        for host in ("shop.example", "SHOP.example:8000", "a.wild.example"):
            middleware(request_for(host))
        for host in (
            "evil.example",
            "shop.example.evil",
            "shop.example@evil",
            "shop.example:x",
            "",
        ):
            with pytest.raises(DisallowedHost):
                middleware(request_for(host))


def test_a_request_without_a_host_is_judged_by_the_name_of_the_server(
    middleware: AllowedHostsMiddleware,
) -> None:
    middleware(request_for("shop.example"))
    request = HttpRequest()
    request.META = {"SERVER_NAME": "evil.example", "SERVER_PORT": "80"}
    with pytest.raises(DisallowedHost):
        middleware(request)


def test_a_host_is_checked_once(
    middleware: AllowedHostsMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    check = HttpRequest.get_host

    def get_host(request: HttpRequest) -> str:
        checked.append(request.META["HTTP_HOST"])
        return check(request)

    monkeypatch.setattr(HttpRequest, "get_host", get_host)
    for host in ("shop.example", "shop.example", "a.wild.example", "shop.example"):
        middleware(request_for(host))
    assert checked == ["shop.example", "a.wild.example"]


def test_few_hosts_are_remembered(middleware: AllowedHostsMiddleware) -> None:
    """A caller may choose a name below a wildcard."""
    for number in range(2 * MOST_HOSTS + 1):
        middleware(request_for(f"{number}.wild.example"))
        assert len(middleware.allowed) <= MOST_HOSTS


def test_django_reads_nothing_else_before_a_request() -> None:
    """A remembered host skips the rest of `process_request`."""
    assert not configured.PREPEND_WWW
    assert not configured.DISALLOWED_USER_AGENTS
    assert not configured.USE_X_FORWARDED_HOST
