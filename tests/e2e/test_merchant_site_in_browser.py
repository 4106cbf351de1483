"""The merchant site in a real browser, with API requests of the merchant's program beside it."""

import json
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from accounts.models import Account, ApiKey
from merchants.email.sending import sweep_emails
from merchants.models import Membership, Role
from merchants.people.invitations import approve_invitation, invite_person
from tests.browsing import PASSWORD, take_session
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_product,
    make_record,
    make_topup_product,
)
from tests.live import LiveServer
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours
from tests.operators.back_office import make_close, make_staff
from wallets.models import BankDetails

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 320, "height": 640}
PAGES = [
    "overview",
    "wallet",
    "alert",
    "spend",
    "orders",
]
DOCS = ["start", "retries", "topups", "abandoned", "live", "statements"]


class Visitor:
    """A browser page that records errors, such as a refused script or style."""

    def __init__(self, browser: Browser, live: LiveServer, viewport: dict[str, int]) -> None:
        self.live = live
        self.context = browser.new_context(base_url=live.base_url, viewport=viewport)  # type: ignore[arg-type]
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("console", self._record_error)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _record_error(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def sign_in(self, member: Membership) -> None:
        take_session(self.page, self.live, browser_of(member))


@dataclass(frozen=True)
class Program:
    """The merchant's API client, with a key copied from the page."""

    live: LiveServer
    key: str

    def ping(self) -> tuple[int, str]:
        answer = self.live.http.get("/api/v1/ping", headers=self._headers())
        return answer.status_code, answer.json().get("error", {}).get("code", "")

    def buy(self, product_id: int) -> dict[str, Any]:
        answer = self.live.http.post(
            "/api/v1/orders",
            json.dumps({"product_id": product_id, "quantity": 1}),
            content_type="application/json",
            headers={**self._headers(), "Idempotency-Key": "first-order"},
        )
        assert answer.status_code == 201, answer.content
        order: dict[str, Any] = answer.json()["data"]
        return order

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


def invite(account: Account, email: str) -> str:
    """Invites an owner, as two members of staff do it for an account with money. Returns the path
    and fragment of the link in the email."""
    invitation = invite_person(
        account=account, email=email, role=Role.OWNER, invited_by=make_staff()
    )
    assert approve_invitation(invitation=invitation, actor=make_staff())
    sweep_emails()
    (sent,) = (each for each in mail.outbox if each.to == [email])
    (link,) = re.findall(r"https?://\S+", str(sent.body))
    parts = urlsplit(link)
    return f"{parts.path}#{parts.fragment}"


def shown_key(page: Page) -> str:
    """The key on the page, copied with its copy button."""
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied: str = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#key").inner_text()
    return copied


def test_from_the_invitation_to_a_locked_allowlist(live: LiveServer, chromium: Browser) -> None:
    account = make_account(balance="100.00")
    product = make_product(name="Card of ten", price="9.99", codes=3)
    BankDetails.objects.create(currency="USD", details="Voucher Ltd\nIBAN DE89 3704")
    visitor = Visitor(chromium, live, WIDE)
    page = visitor.page

    accept_invitation(page, invite(account, "owner@shop.example"))
    expect(page.locator("main")).to_contain_text("100.00 USD")
    first = issue_first_key(page, live)
    client_page = page.url
    order = first.buy(product.pk)
    check_order_and_debit(page, order)
    page.goto(client_page)
    second = rotate(page, first)
    lock_allowlist(page, second)
    assert visitor.errors == []


def accept_invitation(page: Page, link: str) -> None:
    page.goto(link)
    page.fill("[name=new_password1]", PASSWORD)
    page.fill("[name=new_password2]", PASSWORD)
    page.click("main button")
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def open_menu(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()


def issue_first_key(page: Page, live: LiveServer) -> Program:
    """Creates a client and issues its first key. The page is then the client's page."""
    open_menu(page, "API access")
    page.get_by_role("link", name="Create a client").click()
    page.get_by_label("Name").fill("Web shop")
    page.get_by_role("button", name="Create the client").click()
    page.get_by_role("link", name="Create an API key").click()
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Create an API key").click()
    program = Program(live, shown_key(page))
    page.get_by_role("link", name="Done").click()
    assert program.key not in page.content()
    return program


def check_order_and_debit(page: Page, order: dict[str, Any]) -> None:
    open_menu(page, "Orders")
    row = page.get_by_role("row").filter(has_text=order["reference"])
    for part in ("Web shop", "Card of ten", "9.99 USD", "Completed"):
        expect(row).to_contain_text(part)
    row.get_by_role("link").click()
    expect(page.locator("main")).to_contain_text("-9.99")
    assert order["codes"][0]["code"] not in page.content()
    open_menu(page, "Wallet")
    page.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == "Voucher Ltd\nIBAN DE89 3704"
    entry = page.get_by_role("row").filter(has_text=order["reference"])
    expect(entry).to_contain_text("-9.99")
    expect(entry).to_contain_text("90.01")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert order["reference"] in download.value.path().read_text()


def rotate(page: Page, first: Program) -> Program:
    """Rotates the key. The old key works during the overlap and not after it."""
    page.get_by_role("link", name="Rotate keys").click()
    page.get_by_label("Overlap in hours").fill("1")
    page.get_by_role("button", name="Rotate keys").click()
    second = Program(first.live, shown_key(page))
    page.get_by_role("link", name="Done").click()
    assert first.ping() == second.ping() == (200, "")
    ApiKey.objects.filter(expires_at__lt=timezone.now() + timedelta(hours=1)).update(
        expires_at=timezone.now()
    )
    assert first.ping() == (401, "invalid_token")
    assert second.ping() == (200, "")
    return second


def lock_allowlist(page: Page, program: Program) -> None:
    """Saves an allowlist without the caller's address, after a warning."""
    page.get_by_role("link", name="Edit the allowlist").click()
    page.get_by_label("Addresses and networks").fill("203.0.113.0/24\n2001:db8::/32")
    page.get_by_role("button", name="Save the allowlist").click()
    expect(page.get_by_role("alert")).to_contain_text("127.0.0.1")
    assert program.ping() == (200, "")
    with page.expect_navigation():
        page.get_by_role("button", name="Save anyway").click()
    expect(page.locator("main")).to_contain_text("2001:db8::/32")
    assert program.ping() == (403, "ip_not_allowed")


@pytest.fixture
def shop() -> tuple[Account, str]:
    """An account with orders of both kinds and long names, and the reference of one order."""
    account = make_account(balance="100000.00")
    merchant = Merchant(make_client(account))
    product = make_product(name="A product with a rather long name, " * 5, price="9.99", codes=60)
    for _ in range(55):
        answer = merchant.buy(product_id=product.pk, quantity=1)
    buy_topup(merchant, make_topup_product(name="W" * 120), player_id="9" * 64)
    return account, answer.json()["data"]["reference"]


def test_no_page_is_wider_than_a_phone(
    live: LiveServer, chromium: Browser, shop: tuple[Account, str]
) -> None:
    account, reference = shop
    visitor = Visitor(chromium, live, PHONE)
    visitor.sign_in(make_member(account))

    addresses = [
        *(reverse(f"merchants:{name}") for name in PAGES),
        *(reverse(f"docs:{name}") for name in DOCS),
    ]
    for address in [*addresses, reverse("merchants:order", args=[reference])]:
        visitor.page.goto(address)
        wide = visitor.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"], f"{address}: {wide}"
    assert visitor.errors == []


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_row_has_few_lines_on_a_phone_and_the_filter_is_folded(
    language: str, live: LiveServer, chromium: Browser
) -> None:
    account = make_account(balance="100.00")
    merchant = Merchant(make_client(account))
    merchant.buy("order-1042", product_id=make_product(name="Steam", codes=3).pk, quantity=2)
    buy_topup(merchant, make_topup_product(name="Gems"))
    visitor = Visitor(chromium, live, {"width": 390, "height": 844})
    visitor.sign_in(make_member(account))
    page = visitor.page
    page.set_extra_http_headers({"Accept-Language": language})
    figure = "19,98" if language == "de" else "19.98"

    for name, words in (("orders", ("Steam", figure)), ("wallet", (figure,))):
        page.goto(reverse(f"merchants:{name}"))
        rows = page.locator("tbody tr")
        heights = rows.evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
        assert max(heights) < 115, heights
        for word in words:
            expect(rows.filter(has_text="order-1042")).to_contain_text(word)
        day = page.locator("[name=since]")
        expect(day).to_be_hidden()
        page.locator(".fold summary").click()
        expect(day).to_be_visible()
        days = page.locator("[name=since], [name=until]")
        tops = days.evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
        assert len(set(tops)) == 1, "from and to stand side by side"
        page.goto(f"{page.url}?since=2026-01-01")
        expect(day).to_be_visible()
    assert visitor.errors == []


FITS = """() => [...document.querySelectorAll(".table")].every(
    one => one.scrollWidth === one.clientWidth)"""


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_table_that_is_wider_than_its_frame_shows_its_rows_as_on_a_phone(
    language: str, live: LiveServer, chromium: Browser, shop: tuple[Account, str]
) -> None:
    account, _ = shop
    make_close(account, date(2026, 3, 31))
    client = account.clients.get()
    for reason in ("insufficient_balance", "insufficient_stock"):
        make_record(client, reason=reason, idempotency_key="order-2026-11-30-" + "0" * 30)
    visitor = Visitor(chromium, live, WIDE)
    visitor.sign_in(make_member(account))
    page = visitor.page
    page.set_extra_http_headers({"Accept-Language": language})
    for name in ("overview", "orders", "wallet", "requests", "months", "clients", "people"):
        page.goto(reverse(f"merchants:{name}"))
        for width in (768, 900, 1024, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            if width >= 1024:
                expect(page.locator(".stacked"), f"{name} {width}").to_have_count(0)
            page.wait_for_function(FITS)
            assert page.locator(".table").count() > 0, name
    assert visitor.errors == []


LINES = """all => all.map(one => {
    const lines = new Map();
    for (const text of one.childNodes) for (let at = 0; at < text.length; at++) {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        const {top} = range.getBoundingClientRect();
        lines.set(top, (lines.get(top) ?? "") + text.data[at]);
    }
    return [...lines.values()];
})"""


def test_long_emails_break_between_their_parts(live: LiveServer, chromium: Browser) -> None:
    owner = make_member(email="accounts.payable.department@international.purchasing.example")
    make_member(owner.account, email="bartholomew.featherstonehaugh@purchasing.example")
    invite_person(
        account=owner.account,
        email="warehouse.and.logistics@international.purchasing.example",
        role=Role.VIEWER,
        invited_by=owner.user,
    )
    visitor = Visitor(chromium, live, WIDE)
    visitor.sign_in(owner)
    page = visitor.page
    page.goto(reverse("merchants:people"))
    for width in (1280, 768, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(FITS)
        emails = page.locator("tbody th .email").evaluate_all(LINES)
        assert len(emails) == 3
        for *lines, _ in emails:
            assert all(line[-1] in ".@" for line in lines), (width, emails)
    assert visitor.errors == []


def test_the_docs_open_the_language_that_the_reader_chose(
    live: LiveServer, chromium: Browser
) -> None:
    page = Visitor(chromium, live, {"width": 390, "height": 844}).page
    page.goto(reverse("docs:retries"))
    shown = page.locator("main details pre:visible")
    expect(shown).to_have_id("buysh")
    assert page.evaluate("document.documentElement.scrollHeight") < 10_800
    page.get_by_role("heading", name="Go", exact=True).click()
    expect(page.locator("#buygo")).to_be_visible()
    page.goto(reverse("docs:topups"))
    expect(shown).to_have_id("waitgo")


def test_copy_buttons_say_what_they_copy_and_only_boxes_that_scroll_are_tab_stops(
    live: LiveServer, chromium: Browser
) -> None:
    page = Visitor(chromium, live, {"width": 390, "height": 844}).page
    page.goto(reverse("docs:start"))
    expect(page.get_by_role("button", name="Copy: A purchase")).to_be_visible()
    boxes = page.locator("main [role=region]")
    expect(boxes.first).not_to_have_attribute("tabindex", "0")
    stops = boxes.evaluate_all("""all => all.map(one => [one.tabIndex === 0,
        one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight])""")
    assert all(is_stop is scrolls for is_stop, scrolls in stops)
    assert {is_stop for is_stop, _ in stops} == {True, False}


def test_the_docs_work_on_a_phone_without_scripts(live: LiveServer, chromium: Browser) -> None:
    page = chromium.new_page(
        base_url=live.base_url, viewport={"width": 390, "height": 844}, java_script_enabled=False
    )
    page.goto("/docs/")
    expect(page.locator("#bought")).to_contain_text("AAAA-BBBB-CCCC")
    page.get_by_label("Words, codes or reasons").fill("insufficient_balance")
    page.get_by_role("button", name="Search the docs").click()
    page.get_by_role("link", name="insufficient_balance", exact=True).click()
    expect(page.locator("#reason-insufficient_balance")).to_be_in_viewport()

    for name in DOCS:
        page.goto(reverse(f"docs:{name}"))
        menu = page.get_by_role("navigation", name="Docs")
        expect(menu.get_by_role("link", name="Top-ups", exact=True)).to_be_hidden()
        menu.locator("summary").click()
        expect(menu.get_by_role("link", name="Top-ups", exact=True)).to_be_visible()
        for example in page.locator("main pre").all():
            expect(example).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, f"{name}: {wide}"
    page.goto(reverse("docs:api"))
    example = page.locator("details", has_text="Example: Voucher order").first
    expect(example.get_by_text("AAAA-BBBB-CCCC")).to_be_visible()
    other = page.locator("details", has_text="Example: Top-up order").first
    other.locator("summary").click()
    expect(other.locator("pre")).to_be_visible()


def test_the_menu_has_one_line_on_each_screen(live: LiveServer, chromium: Browser) -> None:
    visitor = Visitor(chromium, live, WIDE)
    visitor.sign_in(make_member())
    page = visitor.page
    for language in ("en", "de"):
        page.set_extra_http_headers({"Accept-Language": language})
        for width in (1280, 1250, 1024, 800):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(reverse("merchants:overview"))
            height = page.locator(".top").evaluate("one => one.getBoundingClientRect().height")
            assert height < (70 if width < 1024 else 110), (language, width, height)


def test_the_list_of_time_zones_begins_with_that_of_the_browser(
    live: LiveServer, chromium: Browser
) -> None:
    visitor = Visitor(chromium, live, WIDE)
    visitor.sign_in(make_member())
    page = visitor.page
    override = {"timezoneId": "Europe/Lisbon"}
    page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", override)
    page.goto(reverse("merchants:time_zone"))
    zones = page.get_by_label("Time zone")
    expect(zones.locator("option").first).to_have_text("Europe/Lisbon")
    expect(zones).to_have_value("UTC")
    assert visitor.errors == []


def test_a_statement_can_be_filtered_by_keyboard(
    live: LiveServer, chromium: Browser, shop: tuple[Account, str]
) -> None:
    account, _ = shop
    visitor = Visitor(chromium, live, WIDE)
    visitor.sign_in(make_member(account, Role.VIEWER))
    page = visitor.page

    page.goto(reverse("merchants:wallet"))
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    kind = page.get_by_label("Kind of entry")
    for _ in range(20):
        page.keyboard.press("Tab")
        if kind.evaluate("field => field === document.activeElement"):
            break
    page.keyboard.type("Deposit")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**kind=deposit**")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody")).to_contain_text("100,000.00")
    assert visitor.errors == []


def test_a_refused_form_leads_to_its_first_mistake(
    live: LiveServer, chromium: Browser, shop: tuple[Account, str]
) -> None:
    visitor = Visitor(chromium, live, WIDE)
    visitor.sign_in(make_member(shop[0], Role.OWNER))
    page = visitor.page

    page.goto(reverse("merchants:announce_transfer"))
    page.locator("input[name=reference]").fill("TR-1")
    page.get_by_label("Amount").fill("much")
    page.locator("main form").evaluate("form => { form.noValidate = true; form.requestSubmit(); }")
    expect(page).to_have_title(re.compile("^Error: "))
    expect(page.get_by_label("Amount")).to_be_focused()


def test_the_pages_of_a_list_have_links(
    live: LiveServer, chromium: Browser, shop: tuple[Account, str]
) -> None:
    account, _ = shop
    visitor = Visitor(chromium, live, WIDE)
    visitor.sign_in(make_member(account, Role.VIEWER))
    page = visitor.page

    page.goto(reverse("merchants:orders"))
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("link", name="Older").click()
    expect(page.locator("tbody tr")).to_have_count(6)
    page.get_by_role("link", name="Newer").click()
    expect(page.locator("tbody tr")).to_have_count(50)
    assert visitor.errors == []


def test_a_new_key_survives_a_double_click_and_a_reload_issues_no_other(
    live: LiveServer, chromium: Browser
) -> None:
    member = make_member()
    client = make_client(member.account)
    visitor = Visitor(chromium, live, WIDE)
    visitor.sign_in(member)
    page = visitor.page

    page.goto(f"/merchant/clients/{client.pk}/keys/issue/")
    page.get_by_role("button", name="Create an API key").dblclick()
    key = shown_key(page)
    assert ours(ApiKey).get().prefix == key.split("_")[1]

    page.reload()  # the browser sends the form again

    expect(page.locator("main")).to_contain_text("this form has already created the key")
    assert ours(ApiKey).count() == 1
    assert Program(live, key).ping() == (200, "")

    # The page of the form works again after "back".
    page.goto(f"/merchant/clients/{client.pk}/keys/issue/")
    page.get_by_role("button", name="Create an API key").click()
    expect(page.get_by_role("button", name="Copy")).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Create an API key").click()
    expect(page.locator("body")).to_contain_text(re.compile("already created|shown only this once"))


def test_back_shows_the_results_of_a_search_again(
    live: LiveServer, chromium: Browser, shop: tuple[Account, str]
) -> None:
    account, reference = shop
    visitor = Visitor(chromium, live, WIDE)
    visitor.sign_in(make_member(account))
    page = visitor.page

    page.goto(reverse("merchants:overview"))
    for field, button in (
        (page.locator("#find"), "Find"),
        (page.locator("main").get_by_label("Order reference, player ID"), "Filter"),
    ):
        field.fill(reference[:-1])  # a whole one leads to its order
        page.get_by_role("button", name=button, exact=True).click()
        page.get_by_role("link", name=reference).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(reference)
        page.go_back()
        expect(page.get_by_role("link", name=reference)).to_be_visible()
        expect(page.locator("main input[name=q]")).to_have_value(reference[:-1])
        page.reload()
        expect(page.get_by_role("link", name=reference)).to_be_visible()
        assert reference[:-1] not in page.url
        page.goto(reverse("merchants:orders"))
    assert visitor.errors == []
