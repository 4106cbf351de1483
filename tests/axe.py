"""What axe finds on the pages of one site in a real browser."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

axe = Axe()
# Fields whose description is missing or empty: a screen reader says nothing.
UNDESCRIBED = """[...document.querySelectorAll("[aria-describedby]:not([type=hidden])")]
    .filter(one => one.getAttribute("aria-describedby").split(" ").some(
        id => !document.getElementById(id)?.textContent.trim()))
    .map(one => one.name)"""


class Inspector:
    """Inspects one page after the other.

    The menu is the same on each page of a site. It is inspected on the first page of each look (a
    theme and a size), because the contrast of its colours takes most of the time.
    """

    def __init__(self, menu: str) -> None:
        """`menu` is a selector."""
        self._menu = menu
        self._seen: set[str] = set()

    def violations(self, page: Page, look: str, **options: Any) -> list[dict[str, Any]]:
        """The violations on the page that is open, as axe describes them."""
        context = {"exclude": [self._menu]} if look in self._seen else None
        if page.locator(self._menu).is_visible():
            self._seen.add(look)
        found: list[dict[str, Any]] = axe.run(page, context, **options).response["violations"]
        return found
