"""An operator delivers one top-up and rejects another, which a real worker refunds."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browsing import save_screenshot
from tests.e2e.test_desk_in_browser import QUEUE, page_of
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_field,
    make_topup_product,
)
from tests.live import LiveServer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone"),
]


def test_one_order_is_delivered_and_another_refunded(
    server: LiveServer, worker: None, chromium: Browser
) -> None:
    merchant = Merchant(make_client(make_account(balance="100.00")), http=server.http)
    product = make_topup_product(name="Dragon gems 60", price="4.99")
    make_field(product, "dropdown", number=1, label="Server", options=["eu"])
    page = page_of("olga", server, chromium)
    delivered = buy_topup(merchant, product, player_id="0012345", fields={"1": "eu"})
    rejected = buy_topup(merchant, product, player_id="wrong-one", fields={"1": "eu"})

    # Signing in leads to the queue, oldest order first.
    page.reload()
    rows = page.locator("#result_list tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text(delivered)
    expect(rows.first.locator("input.desk-copy")).to_have_value("0012345")
    save_screenshot(page, "desk")

    # One click claims the next order; a delivery asks for confirmation.
    page.get_by_role("button", name="Claim next").click()
    expect(page.locator("body")).to_contain_text("Processing")
    save_screenshot(page, "desk-order")
    page.get_by_role("link", name="Mark delivered…").click()
    save_screenshot(page, "desk-confirm")
    page.get_by_role("button", name="Mark delivered", exact=True).click()
    expect(page.locator("body")).to_contain_text("Delivered.")
    assert merchant.get(f"/orders/{delivered}").json()["data"]["status"] == "completed"

    # The other order is rejected, and its page shows the refund.
    page.goto(QUEUE)
    page.get_by_role("link", name=rejected).click()
    page.get_by_role("link", name="Reject and refund…").click()
    page.select_option("[name=reason]", "wrong_id")
    page.get_by_role("button", name="Reject and refund").click()
    expect(page.locator("body")).to_contain_text("Rejected. The price goes back")
    for _ in range(60):
        if "4.99 USD refunded" in page.locator("body").inner_text():
            break
        page.wait_for_timeout(500)
        page.reload()
    expect(page.locator("body")).to_contain_text("4.99 USD refunded")

    order = merchant.get(f"/orders/{rejected}").json()["data"]
    assert (order["status"], order["refunded"]) == ("failed", True)
    assert merchant.get("/balance").json()["data"]["balance"] == 95.01
