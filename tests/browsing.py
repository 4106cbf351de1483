"""A real browser for tests of pages: Debian's Chromium, driven by Playwright.

`chromium-headless-shell` is the same engine without the windows of a desktop. A page of its own
takes a quarter of the processor time.

With BROWSER_SLOWDOWN=5, pages have a fifth of the processor's time. A test that does not wait for
what it needs then fails as it would on a busy machine.

Tests that use it have the marker `browser` (tests/programs.py).
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from time import sleep
from typing import ParamSpec, TypeVar

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django_otp.oath import totp
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

from accounts.models import SecondFactor
from tests.live import LiveServer
from tests.programs import find_browser

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
P = ParamSpec("P")
R = TypeVar("R")
PASSWORD = "correct horse battery staple"
expect.set_options(timeout=30_000)  # as long as a click waits; Playwright's 5 seconds are too short


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Starts a browser. `new_context` of it has its own cookies and cache."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright runs an event loop in this thread, so the ORM assumes asynchronous code.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        patch.setattr(Page, "goto", retry_after_change_of_network(Page.goto))
        browser = playwright.chromium.launch(executable_path=find_browser(), args=ARGUMENTS)
        if slowdown := os.environ.get("BROWSER_SLOWDOWN"):
            browser.on("context", lambda each: each.on("page", partial(slow_down, float(slowdown))))
        try:
            yield browser
        finally:
            browser.close()
            connections.close_all()  # the ORM opened them beside Playwright's event loop


def retry_after_change_of_network(goto: Callable[P, R]) -> Callable[P, R]:
    """Opens a page again if the network interfaces of the machine changed meanwhile. Containers of
    other tests do that. The browser then gives up its requests, those to loopback, too, and soon
    opens the page once more by itself, which may interrupt the second try."""

    @wraps(goto)
    def goto_again(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(4):
            try:
                return goto(*args, **kwargs)
            except Error as error:
                if not re.search("ERR_NETWORK_CHANGED|interrupted by another", error.message):
                    raise
                sleep(1)
        return goto(*args, **kwargs)

    return goto_again


def slow_down(rate: float, page: Page) -> None:
    """Makes the scripts and the parser of a page `rate` times slower."""
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": rate})


def save_screenshot(page: Page, name: str, *, whole: bool = False) -> None:
    """Saves a screenshot, of the whole page if asked, when TEST_SCREENSHOTS names a folder."""
    if folder := os.environ.get("TEST_SCREENSHOTS"):
        page.wait_for_timeout(300)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)


def take_session(page: Page, server: LiveServer, browser: Client) -> None:
    """Signs the page in as the person who is signed in with this client. Filling in the forms takes
    four pages and a slow hash."""
    cookie = browser.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": server.base_url}])


def sign_in(page: Page, username: str) -> None:
    """Fills in the forms that sign a member of staff in: the password, and the second factor, which
    is made if needed."""
    user = User.objects.get(username=username)
    factor, _ = SecondFactor.objects.get_or_create(user=user)
    SecondFactor.objects.update(last_step=-1)  # accepts the code of an earlier sign-in again
    page.goto("/admin/")
    page.fill("[name=username]", username)
    page.fill("[name=password]", PASSWORD)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/two-factor/?next=*")
    page.fill("[name=code]", f"{totp(factor.key):06d}")
    page.press("[name=code]", "Enter")
    page.wait_for_url(lambda address: "two-factor" not in address)  # operators start at the desk
