"""The quick views above a list, and what an empty list leads to, in a real browser."""

import re

import pytest
from playwright.sync_api import Browser, expect

from cases.models import Case
from operators.frame.base import list_url
from orders.models import Order
from tests.axe import axe
from tests.browsing import take_session
from tests.factories import buy_topup, make_merchant
from tests.live import LiveServer
from tests.operators.back_office import signed_in
from topups.models import Fulfilment
from wallets.models import LedgerEntry

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone"),
]


def test_quick_views_are_all_shown_and_have_a_name(live: LiveServer, chromium: Browser) -> None:
    page = chromium.new_page(base_url=live.base_url, viewport={"width": 390, "height": 800})
    take_session(page, live, signed_in())
    for model, last in ((Order, "Refunded or credited"), (Case, "All")):
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(list_url(model))
        page.wait_for_load_state("networkidle")
        views = page.get_by_role("navigation", name="Quick views")
        expect(views.get_by_role("link", name=last, exact=True)).to_be_in_viewport(ratio=1)
        page.set_viewport_size({"width": 1280, "height": 800})
        expect(views.get_by_role("link", name=last, exact=True)).to_be_in_viewport(ratio=1)
        expect(page.get_by_text("more_horiz")).to_be_hidden()
        found = axe.run(page).response["violations"]
        assert [one["id"] for one in found] == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_list_that_finds_nothing_leads_to_the_search(live: LiveServer, chromium: Browser) -> None:
    reference = buy_topup(make_merchant(), player_id="0077123")
    page = chromium.new_page(base_url=live.base_url)
    take_session(page, live, signed_in())
    page.goto(list_url(Order, q="0077123"))
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    page.get_by_role("button", name="Search everywhere for “0077123”").click()
    expect(page.get_by_role("main")).to_contain_text(reference)
    expect(page).not_to_have_url(re.compile("0077123"))


def test_a_row_on_a_phone_is_a_card_that_opens_the_row(live: LiveServer, chromium: Browser) -> None:
    reference = buy_topup(make_merchant())
    page = chromium.new_page(base_url=live.base_url, viewport={"width": 390, "height": 800})
    take_session(page, live, signed_in())
    for model, most in ((Order, 130), (Fulfilment, 130), (LedgerEntry, 150)):
        page.goto(list_url(model))
        card = page.locator(".data-row", has_text=reference)
        box = card.bounding_box()
        assert box is not None
        assert box["height"] < most, model
        expect(page.get_by_text("Next step")).to_be_hidden()
    page.goto(list_url(Order))
    card = page.locator(".data-row", has_text=reference)
    card.click(position={"x": 320, "y": 60})
    page.wait_for_url("**/change/**")
    expect(page.get_by_role("main")).to_contain_text(reference)
