"""Takes the screenshots of the documents (docs/images) from a running service that has data.

    .venv/bin/python docs/screenshots.py http://127.0.0.1:8000 USERNAME [MERCHANT_EMAIL]

USERNAME is a member of staff who has set up a second factor; the script asks for its current code,
or reads SCREENSHOT_CODE. MERCHANT_EMAIL is the owner of a merchant account; without it, the
pages of the merchant site are left out. The passwords come from SCREENSHOT_PASSWORD and
SCREENSHOT_MERCHANT_PASSWORD, or from a prompt. The script only reads pages. CHROMIUM is the path of
the browser (default: /usr/bin/chromium).
"""

import os
import sys
from getpass import getpass
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH, HEIGHT = 1280, 640
MAX_BYTES = 150_000
BROWSER_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FIRST_ROW = "#result_list tbody tr th a"

# Screenshot: (path, selector of a link to click, if any).
BACK_OFFICE_PAGES = {
    "admin-index": ("/admin/", None),
    "desk": ("/admin/topups/fulfilment/", None),
    "desk-order": ("/admin/topups/fulfilment/", FIRST_ROW),
}

DESKTOP: ViewportSize = {"width": WIDTH, "height": HEIGHT}
MAIN_LINK = "main .table th a"
MERCHANT_PAGES = {
    "merchant-client": ("/merchant/clients/", MAIN_LINK),
    "merchant-docs-retries": ("/docs/retries/", None),
}


def main(base_url: str, username: str, merchant: str = "") -> None:
    """Takes every screenshot. Exits at the first one larger than MAX_BYTES."""
    password = os.environ.get("SCREENSHOT_PASSWORD") or getpass(f"Password of {username}: ")
    merchant_password = merchant and (
        os.environ.get("SCREENSHOT_MERCHANT_PASSWORD") or getpass(f"Password of {merchant}: ")
    )
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=BROWSER_OPTIONS
        )
        page = browser.new_page(base_url=base_url, viewport=DESKTOP, color_scheme="light")
        _sign_in(page, username, password)
        for name, (path, click) in BACK_OFFICE_PAGES.items():
            _take(page, name, path, click)
        page.context.clear_cookies()
        if merchant:
            _sign_in_merchant(page, merchant, merchant_password)
            for name, (path, click) in MERCHANT_PAGES.items():
                _take(page, name, path, click)
        browser.close()


def _sign_in(page: Page, username: str, password: str) -> None:
    page.goto("/admin/login/")
    page.fill("[name=username]", username)
    page.fill("[name=password]", password)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/**")
    if "/two-factor/" in page.url:
        code = os.environ.get("SCREENSHOT_CODE") or getpass(f"Code of {username}'s second factor: ")
        page.fill("[name=code]", code)
        page.press("[name=code]", "Enter")
    page.wait_for_url("**/admin/")


def _sign_in_merchant(page: Page, email: str, password: str) -> None:
    page.goto("/merchant/sign-in/")
    page.fill("[name=username]", email)
    page.fill("[name=password]", password)
    page.click("main button")
    page.wait_for_url("**/merchant/")


def _take(page: Page, name: str, path: str, click: str | None) -> None:
    page.goto(path)
    if click:
        page.click(f"{click} >> nth=0")
        page.wait_for_load_state()
    page.wait_for_timeout(300)  # until menus and icons are drawn
    image = IMAGES / f"{name}.png"
    page.screenshot(path=image)
    if image.stat().st_size > MAX_BYTES:
        sys.exit(f"{image.name} has {image.stat().st_size} bytes. The limit is {MAX_BYTES} bytes.")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit((__doc__ or "").strip())
    main(*sys.argv[1:])
