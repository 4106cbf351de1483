"""Each page passes axe, fits a small phone and keeps to its security policy, in a real browser.

Axe checks the light and the dark theme, because their colours differ.
"""

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from merchants.email.secret_links import sign_invitation
from merchants.models import Role
from merchants.people.invitations import invite_person
from tests.axe import UNDESCRIBED, Inspector
from tests.browsing import take_session
from tests.keyboard import unreached
from tests.live import LiveServer
from tests.merchants.pages.test_identity_matrix import DO, ROWS, World, make_world
from tests.merchants.people import PASSWORD, browser_of, make_member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DOORS = ("sign_in", "ask_reset", "join", "reset")  # pages before sign-in
DOWNLOADS = (
    *("statement_export", "signed_statement", "orders_export", "case_file"),
    "delivery_proof",
    *("export_references", "export_prices", "export_requests", "export_clients", "export_people"),
    *("references_file", "export_cases", "export_transfers", "month_statement", "docs_snippet"),
)
PAGES = [name for name, row in ROWS.items() if row.how != DO and name not in (*DOORS, *DOWNLOADS)]
LOOKS: dict[str, Any] = {
    "desktop": {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}},
    "phone in the dark": {"color_scheme": "dark", "viewport": {"width": 320, "height": 640}},
}

inspector = Inspector(menu="nav[aria-label=Main]")
HEADINGS = """cells => cells.map(
    one => getComputedStyle(one, "::before").content.replaceAll('"', ""))"""


@pytest.fixture
def look() -> Any:
    """On a desktop. `tests/e2e/journeys/test_accessibility_on_a_phone.py` has a phone."""
    return LOOKS["desktop"]


@pytest.fixture
def page(look: Any, live: LiveServer, chromium: Browser) -> Page:
    """A page in one theme and size. Errors and warnings of the browser go to COMPLAINTS."""
    page = chromium.new_page(base_url=live.base_url, **look)
    page.on("console", complain)
    page.on("pageerror", lambda error: COMPLAINTS.append(str(error)))
    COMPLAINTS.clear()
    return page


COMPLAINTS: list[str] = []


def complain(message: ConsoleMessage) -> None:
    if message.type in ("error", "warning") and "status of 4" not in message.text:
        COMPLAINTS.append(message.text)


@pytest.fixture
def world() -> World:
    return make_world()


def ask_for_german(page: Page) -> None:
    """On a phone, where words that are longer than the English ones fit least."""
    if page.viewport_size != LOOKS["desktop"]["viewport"]:
        page.set_extra_http_headers({"Accept-Language": "de"})


def sign_in(page: Page, live: LiveServer, world: World) -> None:
    """Signs in as an owner of the world's account, which has something to show on every page."""
    take_session(page, live, browser_of(make_member(world.account)))


def problems(page: Page) -> list[str]:
    """What makes the open page hard to use: axe violations, overflow, browser errors."""
    page.wait_for_load_state()  # a form or a script may have opened it
    found = [
        f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:120]}"
        for one in inspector.violations(page, str(page.viewport_size))
    ]
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if wide > 0:
        found.append(f"{wide} pixels too wide")
    found += [f"no description: {one}" for one in page.evaluate(UNDESCRIBED)]
    found += [f"not reached with Tab: {one}" for one in unreached(page)]
    page.wait_for_load_state("networkidle")
    found += COMPLAINTS
    COMPLAINTS.clear()
    return found


def test_pages_of_the_account_are_accessible(page: Page, live: LiveServer, world: World) -> None:
    sign_in(page, live, world)
    ask_for_german(page)
    wrong = {}
    for name in PAGES:
        answer = page.goto(ROWS[name].path(name, world.ids))
        assert answer is not None, name
        assert answer.status == 200, name
        if found := problems(page):
            wrong[name] = found
    assert wrong == {}, json.dumps(wrong, indent=1)


def test_pages_before_sign_in_are_accessible(page: Page) -> None:
    ask_for_german(page)
    wrong = {}
    for path in ("sign-in/", "password/forgotten/", "join/", "password/new/", "nowhere/"):
        page.goto(f"/merchant/{path}")
        if found := problems(page):
            wrong[path] = found
    page.goto("/merchant/sign-in/")
    page.fill("[name=username]", "nobody@b.example")
    page.fill("[name=password]", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector(".errors")
    if found := problems(page):
        wrong["a wrong password"] = found
    assert wrong == {}, json.dumps(wrong, indent=1)


def test_a_secret_link_opens_by_itself(page: Page, world: World) -> None:
    owner = make_member(world.account).user
    invitation = invite_person(
        account=world.account, email="new@b.example", role=Role.VIEWER, invited_by=owner
    )
    page.goto(f"/merchant/join/#{sign_invitation(invitation.pk)}")
    page.fill("[name=new_password1]", PASSWORD)
    assert (problems(page), page.evaluate("location.hash")) == ([], "")
    page.fill("[name=new_password2]", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("/merchant/")


DOCS_PAGES = [
    *("/docs/", "/docs/retries/", "/docs/top-ups/"),
    *(
        "/docs/request-abandoned/",
        "/docs/statements/",
        "/docs/go-live/",
        "/docs/api/",
        "/docs/search/?q=refused",
    ),
]


def test_public_pages_are_accessible(page: Page) -> None:
    for path in ("/", *DOCS_PAGES):
        page.goto(path)
        page.evaluate("document.querySelectorAll('main details').forEach(one => one.open = true)")
        assert problems(page) == [], path


def test_an_error_is_shown_at_its_field(page: Page, live: LiveServer, world: World) -> None:
    sign_in(page, live, world)
    page.goto("/merchant/profile/password/")
    page.fill("[name=old_password]", "wrong")
    page.fill("[name=new_password1]", "a long enough password")
    page.fill("[name=new_password2]", "another long password")
    with page.expect_navigation():
        page.click("main form button")
    field = page.locator("[name=old_password]")
    assert field.get_attribute("aria-invalid") == "true"
    described = (field.get_attribute("aria-describedby") or "").split()
    words = [page.locator(f"id={one}").inner_text() for one in described]
    assert any("incorrect" in one for one in words), words
    assert problems(page) == []


def test_the_menu_of_a_phone_is_closed_until_it_is_opened(
    page: Page, live: LiveServer, world: World
) -> None:
    sign_in(page, live, world)
    page.goto("/merchant/")
    wallet = page.get_by_role("navigation", name="Main").get_by_role("link", name="Wallet")
    summary = page.locator("summary", has_text="Menu")
    if page.viewport_size == LOOKS["desktop"]["viewport"]:
        assert not summary.is_visible()
    else:
        assert not wallet.is_visible()
        summary.press("Enter")
        assert problems(page) == []
    wallet.click()
    page.wait_for_url("**/wallet/")


def test_a_long_address_and_a_wide_table_fit_a_phone(
    page: Page, live: LiveServer, world: World
) -> None:
    take_session(page, live, browser_of(make_member(world.account)))
    long = make_member(world.account, email=f"{'accounting-of-europe' * 3}@merchant.example")
    phone = page.viewport_size != LOOKS["desktop"]["viewport"]
    for path in (f"people/{long.pk}/remove/", "orders/", "people/"):
        page.goto(f"/merchant/{path}")
        assert problems(page) == [], path
        frames = page.locator(".table")
        too_wide = frames.evaluate_all("all => all.map(one => one.scrollWidth - one.clientWidth)")
        assert not phone or sum(too_wide) == 0
    assert ("Role" in page.locator("tbody td").evaluate_all(HEADINGS)) is phone


def test_the_keyboard_reaches_the_content(page: Page, live: LiveServer, world: World) -> None:
    sign_in(page, live, world)
    page.goto("/merchant/people/")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Invite a person")
