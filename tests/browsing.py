"""A real browser for tests of pages: Debian's Chromium, driven by Playwright.

Tests that use it carry the marker `browser`. Where no browser is installed they are left out, and
the run says so; with CI=true that is an error instead.
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
    """Where Chromium is, if it is."""
    return (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    )


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser without a past."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        yield browser
        browser.close()


def sign_in(page: Page, username: str) -> None:
    """Logs a member of staff in, as a person does."""
    page.goto("/admin/")
    page.fill("[name=username]", username)
    page.fill("[name=password]", PASSWORD)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/**")
