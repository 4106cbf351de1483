"""The back office without a mouse: every control of a page is reached with Tab and has a name."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browsing import take_session
from tests.live import LiveServer
from tests.operators.back_office import World, signed_in

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
# What reacts to a click and is visible. A click beside an open panel closes it: Escape does, too.
CLICKABLE = """() => [...document.querySelectorAll('a, button, input, select, [x-on\\\\:click]')]
    .filter((each) => each.checkVisibility({visibilityProperty: true}) && each.offsetWidth
        && !each.disabled && !each.closest('[inert], .select2-hidden-accessible')
        && each.id !== 'changelist-filter-close')
    .forEach((each, number) => each.dataset.control = number)"""
WHERE = """() => {
    const at = document.activeElement;
    at.dataset.reached = '1';
    return at === document.body;
}"""
MISSED = """() => [...document.querySelectorAll('[data-control]:not([data-reached])')]
    .filter((each) => each.type !== 'radio' && !each.querySelector('[data-reached]'))
    .map((each) => each.outerHTML.slice(0, 200))"""
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 800}


@pytest.fixture
def page(live: LiveServer, chromium: Browser) -> Page:
    World().grow(1)
    page = chromium.new_page(base_url=live.base_url, viewport=DESKTOP)
    take_session(page, live, signed_in())
    return page


def missed(page: Page) -> list[str]:
    """The controls of the open page that Tab does not reach."""
    page.evaluate(CLICKABLE)
    ends = 0  # a page may begin with the focus in a form, so Tab passes its end twice
    while ends < 2:
        page.keyboard.press("Tab")
        ends += page.evaluate(WHERE)
    found: list[str] = page.evaluate(MISSED)
    return found


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_tab_reaches_every_control(page: Page, size: ViewportSize) -> None:
    page.set_viewport_size(size)
    for address in PAGES:
        page.goto(address)
        page.wait_for_function("document.querySelector('[role=button][aria-expanded]')")
        assert (address, missed(page)) == (address, [])


def test_the_keyboard_opens_and_closes_what_the_mouse_does(page: Page) -> None:
    page.goto("/admin/orders/order/")
    for label, inside in (("Filters", "#changelist-filter"), ("Your account", "nav[x-show]")):
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
    page.get_by_role("button", name="Your account", exact=True).press("Enter")
    page.get_by_role("button", name="Dark", exact=True).press("Enter")
    expect(page.locator("html")).to_have_class(re.compile("dark"))
    sidebar = page.get_by_role("button", name="Sidebar")
    sidebar.press("Enter")
    expect(sidebar).to_have_attribute("aria-expanded", "false")


def test_no_icon_is_read_aloud(page: Page) -> None:
    for address in PAGES:
        page.goto(address)
        page.wait_for_function("document.querySelector('[role=button][aria-expanded]')")
        tree: Any = page.locator("body").aria_snapshot()
        for icon in ("play_arrow", "unfold_more", "dock_to_right", "monitor_heart", "more_vert"):
            assert icon not in tree, address
