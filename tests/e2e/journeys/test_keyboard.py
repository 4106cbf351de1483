"""The back office without a mouse: every control of a page is reached with Tab and has a name."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browsing import take_session
from tests.keyboard import unreached
from tests.live import LiveServer
from tests.operators.back_office import World, make_staff, signed_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGES = [
    "/admin/",
    "/admin/topups/fulfilment/",
    "/admin/orders/order/",
    "/admin/catalogue/product/",
    "/admin/catalogue/product/add/",
    "/admin/catalogue/batch/",
    "/admin/imports/fileimport/upload/codes/",
]
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 800}


@pytest.fixture
def reader() -> User:
    return make_staff(superuser=True)


@pytest.fixture
def page(live: LiveServer, chromium: Browser, reader: User) -> Page:
    World().grow(1)
    page = chromium.new_page(base_url=live.base_url, viewport=DESKTOP)
    take_session(page, live, signed_in(reader))
    return page


def name_of_menu(reader: User) -> str:
    """The name of the menu of the person is the text that it shows, without the avatar."""
    return f"{reader.username} {reader.email}".strip()


def test_tab_reaches_every_control_of_a_phone(page: Page) -> None:
    """On a desktop, test_back_office_in_browser.py and test_accessibility.py do it on all pages."""
    page.set_viewport_size(PHONE)
    for address in PAGES:
        page.goto(address)
        page.wait_for_function("document.querySelector('[role=button][aria-expanded]')")
        assert (address, unreached(page)) == (address, [])


def test_what_tab_does_not_reach_is_found(chromium: Browser) -> None:
    """The check that all tests of pages share (tests/keyboard.py)."""
    page, link = chromium.new_page(), "<a href='#'>a</a>"
    for control, reached in (
        ("<button>a</button>", True),
        ("<input type=date>", True),
        ("<div x-on:click tabindex=0>a</div>", True),
        ("<div x-on:click>a</div>", False),
        ("<a>a</a>", False),
        ("<button tabindex=-1>a</button>", False),
        ("<button onfocus='this.blur()'>a</button>", False),
        ("<button onkeydown='return false'>a</button>", False),
    ):
        page.set_content(f"{21 * link}{control}{link}")  # more than the keys that are pressed
        assert (unreached(page) == []) is reached, control


def test_the_keyboard_opens_and_closes_what_the_mouse_does(page: Page, reader: User) -> None:
    page.goto("/admin/orders/order/")
    menu = "nav[x-show=openUserLinks]"
    for label, inside in (("Filters", "#changelist-filter"), (name_of_menu(reader), menu)):
        control = page.get_by_role("button", name=label, exact=True)
        expect(control).to_have_attribute("aria-expanded", "false")
        for opens in ("Enter", "Space"):
            control.press(opens)
            expect(control).to_have_attribute("aria-expanded", "true")
            expect(page.locator(f"{inside} :focus")).to_have_count(1)
            page.keyboard.press("Escape")
            expect(control).to_have_attribute("aria-expanded", "false")
            expect(control).to_be_focused()
            expect(page.locator(inside)).to_be_hidden()  # after the transition
    page.get_by_role("button", name=name_of_menu(reader), exact=True).press("Enter")
    page.get_by_role("button", name="Dark", exact=True).press("Enter")
    expect(page.locator("html")).to_have_class(re.compile("dark"))
    sidebar = page.get_by_role("button", name="Sidebar")
    sidebar.press("Enter")
    expect(sidebar).to_have_attribute("aria-expanded", "false")


def test_a_menu_takes_the_focus_only_from_its_button(page: Page, reader: User) -> None:
    """The menu takes the focus after a transition. By then, the person may be elsewhere."""
    page.goto("/admin/orders/order/")
    page.get_by_role("button", name=name_of_menu(reader), exact=True).press("Enter")
    sidebar = page.get_by_role("button", name="Sidebar")
    sidebar.focus()
    expect(page.get_by_role("button", name="Dark", exact=True)).to_be_visible()
    page.wait_for_timeout(400)  # longer than the transition
    expect(sidebar).to_be_focused()


def test_no_icon_is_read_aloud(page: Page) -> None:
    for address in PAGES:
        page.goto(address)
        page.wait_for_function("document.querySelector('[role=button][aria-expanded]')")
        tree: Any = page.locator("body").aria_snapshot()
        for icon in ("play_arrow", "unfold_more", "dock_to_right", "monitor_heart", "more_vert"):
            assert icon not in tree, address
