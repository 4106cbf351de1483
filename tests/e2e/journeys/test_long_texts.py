"""Texts stay in their boxes in a generated language whose texts are 1.4 times as long."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, ViewportSize

from figures.sales_counting import count_sales
from operators.telegram.models import PlatformSettings
from tests.browsing import save_screenshot, take_session
from tests.factories import make_account, make_batch, make_merchant, make_product, own_shelf
from tests.languages.test_pseudo_language import FOLDER, LANGUAGE, write_catalogue
from tests.live import LiveServer, live_server, with_settings
from tests.merchants.pages.test_accessibility import PAGES as MERCHANT_PAGES
from tests.merchants.pages.test_identity_matrix import ROWS, make_world
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import (
    World,
    list_url,
    make_close,
    make_proof,
    shown_models,
    signed_in,
    url,
)
from tests.operators.pages.test_role_matrix import address_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DAY = date(2026, 3, 14)
SIZES: list[ViewportSize] = [{"width": 1280, "height": 720}, {"width": 390, "height": 800}]
SCROLLED = ".simplebar-content"  # in a frame that scrolls
UNREAD = "script, style, option, select, canvas, .material-symbols-outlined, .sr-only, .skip-link"
OTHERS = [
    *("margins", "month_end", "system", "audit_trail", "admin:accounts_account_book"),
    *("admin:topups_fulfilment_dashboard", "admin:topups_fulfilment_report"),
    *("admin:catalogue_pricelist_add_price", "admin:catalogue_pricelist_compare"),
    "admin:cases_case_reject",
]
# Texts that are cut off or leave their box, and by how many pixels the page is too wide.
BROKEN = """([unread, scrolled]) => {
    const {scrollWidth, clientWidth} = document.documentElement;
    const found = scrollWidth > clientWidth ? ["the page is wider than its window"] : [];
    const seen = {visibilityProperty: true, opacityProperty: true};
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode, words = text.textContent.trim().replace(/\\s+/g, " ");
        let box = text.parentElement;
        if (words.length < 2 || box.closest(unread) || !box.checkVisibility(seen)) continue;
        const range = document.createRange();
        range.selectNodeContents(text);
        const place = range.getBoundingClientRect();
        for (; place.width > 2 && box !== document.body; box = box.parentElement) {
            const style = getComputedStyle(box), edge = box.getBoundingClientRect();
            if (["auto", "scroll"].includes(style.overflowX)) break;
            if (["inline", "contents"].includes(style.display)) continue;
            if (box.matches(scrolled)) continue;
            const by = Math.round(Math.max(place.right - edge.right, edge.left - place.left));
            if (by > 1 && edge.width > 2) {
                found.push(`${words.slice(0, 60)} +${by} in ${box.tagName} ${box.className}`);
                break;
            }
            if (["absolute", "fixed"].includes(style.position)) break;
        }
    }
    return found;
}"""


@pytest.fixture
def server(django_db_setup: None, tmp_path: Path) -> Iterator[LiveServer]:
    """A server that knows the language."""
    write_catalogue(tmp_path / FOLDER / "LC_MESSAGES" / "django.mo")
    environment = with_settings(
        LANGUAGES=[*settings.LANGUAGES, (LANGUAGE, "Pseudo")],
        LOCALE_PATHS=[*map(str, settings.LOCALE_PATHS), str(tmp_path)],
    )
    with live_server(environment, workers=1) as server:
        yield server


@pytest.fixture
def page(server: LiveServer, chromium: Browser) -> Page:
    page = chromium.new_page(base_url=server.base_url)
    page.set_extra_http_headers({"Accept-Language": LANGUAGE})
    return page


def broken(page: Page, addresses: dict[str, str]) -> dict[str, list[str]]:
    """What is wrong, and on which pages at which width."""
    found = dict[str, list[str]]()
    for name, address in addresses.items():
        answer = page.goto(address)
        assert answer is not None, name
        assert answer.status == 200, name
        page.wait_for_load_state("networkidle")
        assert page.locator(f"html[lang={LANGUAGE}]").count() == 1, name
        for size in SIZES:
            page.set_viewport_size(size)
            page.wait_for_timeout(100)
            save_screenshot(page, f"long {name} {size['width']}", whole=True)
            for text in page.evaluate(BROKEN, [UNREAD, SCROLLED]):
                found.setdefault(text, []).append(f"{name} {size['width']}")
    return found


def test_long_texts_fit_the_pages_of_staff(page: Page, server: LiveServer) -> None:
    make_proof(merchant := make_merchant(balance="100"))
    shelf = own_shelf(make_product(price="1"))
    make_batch(shelf, 30, expires_on=datetime.now(UTC).date() + timedelta(days=3))
    for _ in range(14):  # stock that expires first has the longest text
        merchant.buy(product_id=shelf.product_id, quantity=1)
    count_sales()
    World().grow(1)
    PlatformSettings.objects.get_or_create()
    take_session(page, server, signed_in())
    make_close(make_account(), DAY)
    addresses = {"overview": "/admin/"}
    for model in shown_models():
        name: Any = model._meta.label_lower
        addresses |= {
            name: list_url(model),
            f"{name} row": url(model._default_manager.latest("pk")),
        }
    addresses |= {name: address_of(name) for name in OTHERS}
    addresses["closes of a month"] = f"{address_of('month_end')}?month={DAY:%Y-%m}"
    found = broken(page, addresses)
    assert found == {}, "\n".join(map(str, found.items()))


def test_long_texts_fit_the_pages_of_a_merchant(page: Page, server: LiveServer) -> None:
    world = make_world()
    take_session(page, server, browser_of(make_member(world.account)))
    addresses = {name: ROWS[name].path(name, world.ids) for name in MERCHANT_PAGES}
    found = broken(page, addresses)
    assert found == {}, "\n".join(map(str, found.items()))
