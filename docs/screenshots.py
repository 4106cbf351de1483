"""Takes the screenshots in docs/images from a running service that has data.

    .venv/bin/python docs/screenshots.py http://127.0.0.1:8000 USERNAME [MERCHANT_EMAIL]

USERNAME is a member of staff. MERCHANT_EMAIL is the owner of a merchant account; without it, the
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

# Screenshot: (path, selectors to click one after the other, if any).
BACK_OFFICE_PAGES = {
    "admin-index": ("/admin/", None),
    "desk": ("/admin/topups/fulfilment/", None),
    "desk-order": ("/admin/topups/fulfilment/", FIRST_ROW),
    "desk-reject": ("/admin/topups/fulfilment/", f"{FIRST_ROW} >> text=Reject and refund"),
    "topup-product": ("/admin/topups/topupproduct/", FIRST_ROW),
    "products": ("/admin/catalogue/product/", None),
    "product": ("/admin/catalogue/product/", FIRST_ROW),
    "stock-levels": ("/admin/catalogue/shelf/", None),
    "orders": ("/admin/orders/order/", None),
    "order": ("/admin/orders/order/?kind=voucher", FIRST_ROW),
    "ledger": ("/admin/wallets/ledgerentry/", None),
    "client": ("/admin/accounts/apiclient/", FIRST_ROW),
    "issue-key": ("/admin/accounts/apiclient/", f"{FIRST_ROW} >> text=Issue key"),
}

DESKTOP: ViewportSize = {"width": WIDTH, "height": HEIGHT}
PHONE: ViewportSize = {"width": 390, "height": 780}
MAIN_LINK = "main .table th a"
# A name that ends in -phone or -dark selects the viewport or the colour scheme.
MERCHANT_PAGES = {
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
                phone, dark = name.endswith("-phone"), name.endswith("-dark")
                page.set_viewport_size(PHONE if phone else DESKTOP)
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
    page.wait_for_timeout(300)  # until menus and icons are drawn
    image = IMAGES / f"{name}.png"
    page.screenshot(path=image)
    if image.stat().st_size > MAX_BYTES:
        sys.exit(f"{image.name} has {image.stat().st_size} bytes. The limit is {MAX_BYTES} bytes.")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit((__doc__ or "").strip())
    main(*sys.argv[1:])
