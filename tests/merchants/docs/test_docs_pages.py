"""The docs pages are complete and show this service's address and the example programs."""

import html
import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from accounts.api_access.keys import prefix_of
from accounts.models import ApiKey, SecondFactor
from catalogue.models import Product
from core.api.advice import CODES, REASONS
from core.api.errors import ErrorCode, RefusalReason
from core.api.openapi import openapi_document
from merchants.docs.docs_content import (
    RETRY_SNIPPETS,
    SNIPPET_NAMES,
    SNIPPETS,
    WAIT_SNIPPETS,
)
from merchants.docs.docs_pages import RESPONSE_SECONDS
from merchants.models import Role
from tests.factories import (
    make_account,
    make_client,
    make_key,
    make_merchant,
    make_product,
    make_variation,
)
from tests.merchants.people import browser_of, make_member

pytestmark = pytest.mark.django_db

DOCS = "/docs/"
PAGES = [
    DOCS,
    f"{DOCS}retries/",
    f"{DOCS}top-ups/",
    f"{DOCS}request-abandoned/",
    f"{DOCS}statements/",
    f"{DOCS}go-live/",
    f"{DOCS}api/",
    f"{DOCS}search/?q=refused",
]


@pytest.fixture
def browser() -> Client:
    return browser_of(make_member(make_account(), Role.VIEWER))


def text(browser: Client, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200, path
    return html.unescape(answer.content.decode()).replace("<wbr>", "")


def test_every_code_and_reason_of_the_contract_has_advice(browser: Client) -> None:
    assert set(CODES) == set(ErrorCode)
    assert set(REASONS) == set(RefusalReason)
    page = text(browser, f"{DOCS}retries/")

    for code, advice in CODES.items():
        assert f"<code>{code.value}</code></th><td>{code.status.value}</td>" in page
        assert re.sub("`(.+?)`", r"<code>\1</code>", f"<td>{code.default_message}</td>") in page
        assert advice.act in page
    for reason, advice in REASONS.items():
        assert f"<code>{reason.value}</code>" in page
        assert advice.act in page


def test_no_advice_suggests_a_new_key_for_an_unknown_outcome() -> None:
    """After an unknown outcome, the advice is the same request with the same key."""
    for code in ErrorCode:
        if code.status.value >= 500 or code is ErrorCode.REQUEST_IN_PROGRESS:
            assert CODES[code].charged == "unknown"
            assert "same request with the same idempotency key" in CODES[code].act


def test_pages_and_programs_say_what_settles_a_purchase(browser: Client) -> None:
    sentences = (
        "Only the service's own JSON settles a purchase. After every other response the outcome is"
        " unknown"
    )
    programs = [(SNIPPETS / name).read_text() for name in RETRY_SNIPPETS]
    for words in (*programs, text(browser, DOCS), text(browser, f"{DOCS}retries/")):
        assert sentences in re.sub(r"\s+(# |// )?", " ", words)
    assert "After a 429, wait at least 30 seconds" in text(browser, f"{DOCS}retries/")


def test_the_pages_show_the_address_of_this_service(browser: Client, settings: Any) -> None:
    settings.PUBLIC_URL = "https://vouchers.example"

    for path in PAGES[:2]:
        assert "export VOUCHER_BASE_URL=https://vouchers.example/api/v1\n" in text(browser, path)


def test_the_programs_wait_for_a_response_as_long_as_the_pages_say(browser: Client) -> None:
    assert f"Wait {RESPONSE_SECONDS} seconds for a response" in text(browser, f"{DOCS}go-live/")
    for name in ("first_calls.sh", *RETRY_SNIPPETS, *WAIT_SNIPPETS):
        program = (SNIPPETS / name).read_text()
        assert re.search(rf"\D{RESPONSE_SECONDS}(_000)?\D", program), name


def test_the_pages_show_the_configured_times(browser: Client, settings: Any) -> None:
    settings.IDEMPOTENCY_IN_PROGRESS_SECONDS = 420
    settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS = 9

    page = text(browser, f"{DOCS}request-abandoned/")

    assert "For 7 minutes" in page
    assert "for 9 days" in page


def test_each_program_is_on_a_page_and_can_be_downloaded(browser: Client) -> None:
    assert {path.name for path in SNIPPETS.iterdir() if path.is_file()} == set(SNIPPET_NAMES)
    pages = "".join(text(browser, path) for path in PAGES)

    for name in SNIPPET_NAMES:
        program = (SNIPPETS / name).read_text()
        assert program in pages, name
        file = browser.get(f"{DOCS}snippets/{name}")
        assert file.content.decode() == program
        assert file.headers["Content-Disposition"] == f'attachment; filename="{name}"'


@pytest.mark.parametrize("path", PAGES)
def test_each_copy_button_says_that_it_has_copied(browser: Client, path: str) -> None:
    buttons = re.findall("<button[^>]* data-copy=[^>]*>", text(browser, path))
    assert [button for button in buttons if 'data-copied="Copied"' not in button] == []


@pytest.mark.parametrize("name", ["../models.py", "..%2fmodels.py", "x", "%00", "buy.py%00", ""])
def test_no_other_file_can_be_downloaded(browser: Client, name: str) -> None:
    assert browser.get(f"{DOCS}snippets/{name}").status_code == 404


def test_every_link_works(browser: Client) -> None:
    for path in PAGES:
        page = browser.get(path).content.decode()
        for part in page.split('href="')[1:]:
            target = part.split('"')[0]
            if target.startswith(("/merchant/", DOCS)) and "static" not in target:
                assert browser.get(target).status_code == 200, f"{path}: {target}"


@pytest.mark.parametrize("path", PAGES)
def test_everybody_reads_the_pages(path: str, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        answer = Client().get(path)
    page = answer.content.decode()
    assert "Sign out" not in page
    assert "Set-Cookie" not in answer
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert Client(enforce_csrf_checks=True).post(path).status_code == 405


@pytest.mark.parametrize(
    ("query", "address", "title"),
    [
        (
            "insufficient_balance",
            "/docs/retries/#reason-insufficient_balance",
            "insufficient_balance",
        ),
        ("REQUEST_IN_PROGRESS", "/docs/retries/#request_in_progress", "request_in_progress"),
        ("time-outs waiting", "/docs/go-live/#time-outs", "Time-outs and waiting"),
        ("per_page=100", "/docs/go-live/#checklist", "Checklist"),
        ("player_id leading", "/docs/api/#TopUpOrder", "TopUpOrder"),
        ("hrtime", "/docs/retries/#programs", "Programs that retry safely"),
        ("webhook", "/docs/top-ups/#wait", "Wait for the delivery"),
        ("Polling", "/docs/top-ups/#wait", "Wait for the delivery"),
        ("refund", "/docs/top-ups/#wait", "Wait for the delivery"),
        ("sandbox", "/docs/go-live/#simulator", "Rehearse failures"),
        ("test mode", "/docs/go-live/#simulator", "Rehearse failures"),
        ("rate limit", "/docs/go-live/#limits", "Limits"),
        ("balance", "/docs/#first-calls", "1. First calls"),
        ("401", "/docs/#first-calls", "1. First calls"),
        ("timeout", "/docs/go-live/#time-outs", "Time-outs and waiting"),
    ],
)
def test_the_search_finds_sections_by_their_words(query: str, address: str, title: str) -> None:
    page = text(Client(), f"{DOCS}search/?{urlencode({'q': query})}")
    assert f'<a href="{address}">{title}</a>' in page


def test_an_address_without_a_page_leads_to_the_pages_and_the_search(browser: Client) -> None:
    for reader in (browser, Client()):
        answer = reader.get(f"{DOCS}nope")
        page = answer.content.decode()
        assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")
        assert "Docs: page not found" in page
        assert f'<form action="{DOCS}search/"' in page
        assert f'<a href="{DOCS}retries/">' in page
    for path in ("/api/v1/nope", "/api/v1/docs/nope"):
        answer = Client().get(path)
        assert (answer.status_code, answer.json()) == (
            404,
            {"message": "There is nothing at this path."},
        )


def test_the_api_reference_has_a_menu_and_says_common_errors_once() -> None:
    page = Client().get(f"{DOCS}api/").content.decode()
    menu = menu_of(page)
    for methods in openapi_document()["paths"].values():
        for operation in methods.values():
            assert f'href="#{operation["operationId"]}"' in menu
    for code in ("missing_token", "client_disabled", "rate_limited"):
        assert page.count(f"Example: {code}") == 1
    assert page.count('href="#status-401"') == 9
    assert page.count('id="status-401"') == 1


@pytest.mark.parametrize("path", PAGES[:-1])
def test_each_page_has_a_menu_of_all_pages_and_of_its_sections(path: str) -> None:
    page = Client().get(path).content.decode()
    menu = menu_of(page)
    for other in PAGES[:-1]:
        here = ' aria-current="page"' if other == path else ""
        assert f'<a href="{other}"{here}>' in menu
    for section in re.findall('<h2[^>]* id="([^"]+)"', page):
        assert re.search(f'href="(?:{path})?#{section}"', menu), section


def menu_of(page: str) -> str:
    """The menu of the documentation."""
    return page.partition('<nav class="contents" aria-label="Docs">')[2].partition("</nav>")[0]


def test_the_search_shows_prose_and_lists_sections_with_the_words_in_programs_last() -> None:
    found = Client().get(f"{DOCS}search/", {"q": "sh"}).context["found"]
    assert not any("#!/bin/sh" in excerpt for _, excerpt in found)
    other = [section for section, _ in found if "sh" not in section.subject]
    in_text = ["sh" in section.text.lower() for section in other]
    assert in_text == sorted(in_text, reverse=True)
    found = Client().get(f"{DOCS}search/", {"q": "urllib.request"}).context["found"]
    assert "Programs that wait" in {section.heading for section, _ in found}


def test_the_search_shows_no_menu_in_an_excerpt() -> None:
    found = Client().get(f"{DOCS}search/", {"q": "quick start"}).context["found"]
    assert found
    assert not [excerpt for _section, excerpt in found if "Search the docs" in excerpt]


def test_the_search_shows_what_was_sent_as_text() -> None:
    page = Client().get(f"{DOCS}search/", {"q": "<script>"}).content.decode()
    assert "No section has “&lt;script&gt;”" in page
    assert "Enter a word" in text(Client(), f"{DOCS}search/")


def test_a_password_alone_shows_no_account() -> None:
    member = make_member(make_account(), Role.VIEWER)
    browser = browser_of(member)
    assert member.account.name in browser.get(DOCS).content.decode()
    SecondFactor.objects.create(user=member.user)
    assert member.account.name not in browser.get(DOCS).content.decode()


def test_a_stranger_learns_nothing_of_the_catalogue() -> None:
    product = make_product(codes=1, id=4711)
    page = html.unescape(Client().get(DOCS).content.decode())
    assert f'"product_id": {product.pk}' not in page
    assert 'sh buy.sh \'{"product_id": 9001, "quantity": 1}\'' in page
    assert '"product_id": 9001,\n    "variation_id": null' in page


def test_a_stranger_signs_in_from_the_docs_and_chooses_a_language() -> None:
    browser = Client()
    page = browser.get(DOCS).content.decode()
    assert '<a href="/merchant/sign-in/">Sign in</a>' in page
    assert '<a href="?language=de" lang="de" hreflang="de">Deutsch</a>' in page
    assert '<html lang="en">' in browser.get(DOCS, {"language": "xx"}).content.decode()
    for path in (f"{DOCS}?language=de", DOCS, "/merchant/sign-in/"):
        assert '<html lang="de">' in browser.get(path).content.decode()
    page = browser.get(DOCS).content.decode()
    assert '<a href="?language=en" lang="en" hreflang="en">English</a>' in page
    assert "?language=de" not in page


def test_every_code_and_reason_has_an_address_of_its_own() -> None:
    page = Client().get(f"{DOCS}retries/").content.decode()
    for name in [*ErrorCode, *(f"reason-{reason.value}" for reason in RefusalReason)]:
        assert page.count(f'id="{name}"') == 1, name


def test_the_quick_start_shows_the_documented_response(browser: Client) -> None:
    responses = openapi_document()["paths"]["/orders"]["post"]["responses"]
    documented = responses["201"]["content"]["application/json"]["examples"]["VoucherOrder"]

    shown = re.search(r'<pre id="bought"[^>]*>(.*?)</pre>', text(browser, DOCS), re.DOTALL)

    assert shown
    # The product is that of the example purchase.
    bought = documented["value"]["data"] | {"product_id": 10, "variation_id": None}
    assert json.loads(shown[1]) == documented["value"] | {"data": bought}


@pytest.mark.parametrize("path", PAGES[:2])
@pytest.mark.parametrize("role", Role)
def test_a_member_sees_the_prefix_of_a_key_that_works(path: str, role: Role) -> None:
    account = make_account()
    browser = browser_of(make_member(account, role))
    assert "VOUCHER_API_KEY=vk_…<" in text(browser, path)
    clients = [make_client(account), make_client(account, enabled=False), make_client()]
    live, *others = [make_key(client) for client in [clients[0], *clients]]
    ApiKey.objects.filter(prefix=prefix_of(others[0])).update(revoked_at=timezone.now())

    page = text(browser, path)

    assert f"VOUCHER_API_KEY=vk_{prefix_of(live)}_…<" in page
    assert not [key for key in (live, *others) if key in page]
    assert "VOUCHER_API_KEY=vk_…<" in text(Client(), path)


@pytest.mark.parametrize("neighbours", [True, False])
def test_the_quick_start_buys_something_that_is_in_stock(browser: Client, neighbours: bool) -> None:
    if not neighbours:
        Product.objects.update(active=False)
    make_product(codes=0)
    variation = make_variation(make_product(codes=0), quantity_step=3, codes=3)

    example = text(browser, DOCS).partition("sh buy.sh '")[2].partition("'")[0]
    body = json.loads(example)
    assert make_merchant(balance="1000").buy(**body).status_code == 201
    if not neighbours:
        assert body["variation_id"] == variation.pk


def test_the_pages_tell_a_replacement_from_a_purchase(browser: Client) -> None:
    """A replacement fits "an order of that time, product and quantity" of a lost purchase."""
    text = browser.get("/docs/request-abandoned/").content.decode()
    assert "Orders that you did not buy" in text
    assert "Leave out orders whose" in text
    document = browser.get("/api/v1/openapi.json").json()
    fields = document["components"]["schemas"]["VoucherOrder"]["properties"]
    assert "replaces a code" in fields["total_price"]["description"]
    assert "replacement" in fields["units_per_sale"]["description"]
    topup = document["components"]["schemas"]["TopUpOrder"]["properties"]
    assert "(deleted)" in topup["player_id"]["description"]


def test_the_pages_and_ping_name_the_common_limit_of_an_account(browser: Client) -> None:
    assert "common limit" in browser.get("/docs/go-live/").content.decode()
    document = browser.get("/api/v1/openapi.json").json()
    fields = document["components"]["schemas"]["Ping"]["properties"]
    assert "common limit" in fields["rate_limit_per_minute"]["description"]


def test_short_commands_can_be_copied() -> None:
    for name, ids in {
        "": ("address", "purchase"),
        "statements/": ("run", "books-run"),
        "request-abandoned/": ("list", "books-key", "compare"),
        "top-ups/": ("body", "waiting"),
        "go-live/": ("simulate",),
    }.items():
        page = text(Client(), f"{DOCS}{name}")
        for id in ids:
            assert page.count(f'data-copy="{id}"') == page.count(f'<pre id="{id}"') == 1, id
            command = page.partition(f'<pre id="{id}"')[2].partition("</pre>")[0]
            assert " #" not in command, id  # zsh takes a comment for arguments
