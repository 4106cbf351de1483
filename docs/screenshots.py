"""Takes the pictures in docs/images from a running service with some data in it.

    .venv/bin/python docs/screenshots.py http://127.0.0.1:8000 USERNAME [MERCHANT_EMAIL]

asks for the password of this member of staff, or reads it from SCREENSHOT_PASSWORD; and for that of
a merchant's owner, where one is named, or reads it from SCREENSHOT_MERCHANT_PASSWORD. It looks at
pages and changes nothing. CHROMIUM names another browser than Debian's.
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

# Picture: (path, what to click there to get to the page, if anything).
PICTURES = {
    "admin-index": ("/admin/", None),
    "desk": ("/admin/topups/fulfilment/", None),
    "desk-order": ("/admin/topups/fulfilment/", FIRST_ROW),
    "desk-reject": ("/admin/topups/fulfilment/", f"{FIRST_ROW} >> text=Reject and refund"),
    "package": ("/admin/topups/topupproduct/", FIRST_ROW),
    "products": ("/admin/catalogue/product/", None),
    "product": ("/admin/catalogue/product/", FIRST_ROW),
    "stock-levels": ("/admin/catalogue/shelf/", None),
    "orders": ("/admin/orders/order/", None),
    "order": ("/admin/orders/order/?kind=voucher", FIRST_ROW),
    "ledger": ("/admin/wallets/ledgerentry/", None),
    "client": ("/admin/accounts/apiclient/", FIRST_ROW),
    "issue-key": ("/admin/accounts/apiclient/", f"{FIRST_ROW} >> text=Issue key"),
}

DESK: ViewportSize = {"width": WIDTH, "height": HEIGHT}
PHONE: ViewportSize = {"width": 390, "height": 780}
MAIN_LINK = "main .table th a"
# Of the merchants' page; those whose names end in -phone or -dark are taken so.
MERCHANT_PICTURES = {
    "merchant-overview": ("/merchant/", None),
    "merchant-clients": ("/merchant/clients/", None),
    "merchant-client": ("/merchant/clients/", MAIN_LINK),
    "merchant-issue-key": ("/merchant/clients/", f"{MAIN_LINK} >> text=Issue a key"),
    "merchant-references": ("/merchant/references/", None),
    "merchant-wallet": ("/merchant/wallet/", None),
    "merchant-wallet-dark": ("/merchant/wallet/", None),
    "merchant-spend": ("/merchant/wallet/spend/", None),
    "merchant-orders": ("/merchant/orders/", None),
    "merchant-orders-phone": ("/merchant/orders/", None),
    "merchant-order": ("/merchant/orders/", MAIN_LINK),
    "merchant-docs": ("/merchant/docs/", None),
    "merchant-docs-retries": ("/merchant/docs/retries/", None),
}


def main(base_url: str, username: str, merchant: str = "") -> None:
    """Takes every picture, and stops at the first that is too large to keep."""
    password = os.environ.get("SCREENSHOT_PASSWORD") or getpass(f"Password of {username}: ")
    merchant_password = merchant and (
        os.environ.get("SCREENSHOT_MERCHANT_PASSWORD") or getpass(f"Password of {merchant}: ")
    )
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=BROWSER_OPTIONS
        )
        page = browser.new_page(base_url=base_url, viewport=DESK, color_scheme="light")
        _sign_in(page, username, password)
        for name, (path, click) in PICTURES.items():
            _take(page, name, path, click)
        page.context.clear_cookies()
        if merchant:
            _sign_in_merchant(page, merchant, merchant_password)
            for name, (path, click) in MERCHANT_PICTURES.items():
                phone, dark = name.endswith("-phone"), name.endswith("-dark")
                page.set_viewport_size(PHONE if phone else DESK)
                page.emulate_media(color_scheme="dark" if dark else "light")
                _take(page, name, path, click)
        browser.close()


def _sign_in(page: Page, username: str, password: str) -> None:
    page.goto("/admin/login/")
    page.fill("[name=username]", username)
    page.fill("[name=password]", password)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/")


def _sign_in_merchant(page: Page, email: str, password: str) -> None:
    page.goto("/merchant/sign-in/")
    page.fill("[name=username]", email)
    page.fill("[name=password]", password)
    page.click("main button")
    page.wait_for_url("**/merchant/")


def _take(page: Page, name: str, path: str, click: str | None) -> None:
    page.goto(path)
    for target in (click or "").split(" >> "):
        if target:
            page.click(f"{target} >> nth=0")
            page.wait_for_load_state()
    page.wait_for_timeout(300)  # menus and icons settle
    image = IMAGES / f"{name}.png"
    page.screenshot(path=image)
    if image.stat().st_size > MAX_BYTES:
        sys.exit(f"{image.name} is {image.stat().st_size} bytes; at most {MAX_BYTES} are kept.")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit((__doc__ or "").strip())
    main(*sys.argv[1:])
