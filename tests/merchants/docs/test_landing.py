"""The first page, and addresses of pages that were typed without their last slash."""

import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.operators.back_office import signed_in

pytestmark = pytest.mark.django_db


def test_the_first_page_leads_to_the_sites_and_the_documentation() -> None:
    answer = Client().get("/")

    links = re.findall(r'(?:<h2>|For staff: )<a href="([^"]+)"', answer.content.decode())
    assert links == ["/merchant/", "/docs/", "/admin/"]
    assert {Client().get(link, follow=True).status_code for link in links} == {200}
    assert "script-src 'self'" in answer["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("contact", "shown"),
    [
        ("", ""),
        ("+1 555 0100", "Support: +1 555 0100"),
        ("help@codes.example", 'Support: <a href="mailto:help@codes.example">'),
        ("Telegram @codes", "Support: Telegram @codes<"),
        ("https://help.codes.example", 'Support: <a href="https://help.codes.example">'),
    ],
)
@pytest.mark.parametrize("path", ["/", "/merchant/sign-in/"])
def test_pages_name_the_contact_of_support(
    path: str, contact: str, shown: str, settings: Settings
) -> None:
    settings.SUPPORT_CONTACT = contact
    page = Client().get(path).content.decode()

    assert shown in page
    assert ("Support:" in page) == bool(contact)


@pytest.mark.parametrize(
    ("typed", "page"),
    [
        ("/docs", "/docs/"),
        ("/merchant", "/merchant/"),
        ("/merchant/orders", "/merchant/orders/"),
        ("/merchant/sign-in?next=/merchant/wallet/", "/merchant/sign-in/?next=/merchant/wallet/"),
        ("/admin", "/admin/"),
        ("/admin/catalogue/product?q=a", "/admin/catalogue/product/?q=a"),
    ],
)
def test_a_missing_last_slash_redirects_to_the_page(typed: str, page: str) -> None:
    answer = signed_in().get(typed)

    assert (answer.status_code, answer["Location"]) == (301, page)


@pytest.mark.parametrize("path", ["/api/v1/ping/", "/healthz/", "/merchant/nowhere"])
def test_no_other_path_redirects(path: str) -> None:
    assert Client().get(path).status_code == 404


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def test_a_browser_gets_a_page_at_an_unknown_address() -> None:
    answer = Client().get("/nope", headers={"Accept": BROWSER, "Accept-Language": "de"})
    page = answer.content.decode()
    assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "<h1>Seite nicht gefunden</h1>" in page
    links = re.findall(r'(?:<h2>|Für das Team: )<a href="([^"]+)"', page)
    assert links == ["/merchant/", "/docs/", "/admin/"]
    assert "Accept" in answer["Vary"].split(", ")


@pytest.mark.parametrize(
    ("method", "path", "accept"),
    [
        ("GET", "/nope", "*/*"),
        ("GET", "/nope", "application/json, text/html"),
        ("GET", "/nope", ""),
        ("POST", "/nope", BROWSER),
        *(("GET", path, BROWSER) for path in ("/api/v1/nope", "/api/v2/ping", "/api/", "/api")),
    ],
)
def test_programs_and_paths_of_the_api_get_json(method: str, path: str, accept: str) -> None:
    assert_is_json(Client().generic(method, path, headers={"Accept": accept}), path)


def test_a_program_with_a_key_gets_json() -> None:
    headers = {"Accept": BROWSER, "Authorization": "Bearer vk_1"}
    assert_is_json(Client().get("/nope", headers=headers), "/nope")


def assert_is_json(answer: Any, path: str) -> None:
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/json")
    assert answer.content == b'{"message":"There is nothing at this path."}'
    assert ("Accept" in answer.get("Vary", "").split(", ")) == (path == "/nope")


def test_a_form_is_not_redirected() -> None:
    assert Client().post("/merchant/sign-in").status_code == 404
