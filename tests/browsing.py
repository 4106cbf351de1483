"""A real browser for tests of pages: Debian's Chromium, driven by Playwright.

Tests that use it have the marker `browser`. Without a browser they are skipped, and the run reports
that; with CI=true it is an error.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PASSWORD = "correct horse battery staple"


def find_browser() -> str | None:
    """The path of Chromium; None if it is not installed."""
    return (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Opens a browser with a new profile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        yield browser
        browser.close()


def sign_in(page: Page, username: str) -> None:
    """Logs a member of staff in through the log-in page."""
    page.goto("/admin/")
    page.fill("[name=username]", username)
    page.fill("[name=password]", PASSWORD)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/**")
