"""An operator works two top-ups in a real browser, while the merchant polls over real HTTP."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections
from playwright.sync_api import Page, expect

from config.embedded.environment import PROJECT
from config.embedded.processes import Process
from config.embedded.supervisor import CELERY
from tests.browsing import PASSWORD, open_browser, sign_in
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_field,
    make_operator,
    make_topup_product,
)
from tests.live import LiveServer, database_url, live_server
from topups.fulfilments import claim_next
from topups.models import TopUpProduct

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def broker() -> str:
    """A broker that no other test's worker listens to."""
    number = 2 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 14
    return os.environ["CELERY_BROKER_URL"].rpartition("/")[0] + f"/{number}"


@pytest.fixture
def server(broker: str) -> Iterator[LiveServer]:
    with live_server({"CELERY_BROKER_URL": broker}) as server:
        yield server


@pytest.fixture
def worker(broker: str, tmp_path: Path) -> Iterator[None]:
    """A real Celery worker on the test's database."""
    environment = {**os.environ, "DATABASE_URL": database_url(), "CELERY_BROKER_URL": broker}
    with (tmp_path / "worker.log").open("wb") as output:
        process = Process(
            "worker",
            [*CELERY, "worker", "--loglevel=info", "--concurrency=1", "--without-gossip"],
            environment=environment,
            folder=PROJECT,
            output=output,
        )
        try:
            yield
        finally:
            process.stop()


@pytest.fixture
def product(transactional_db: None) -> TopUpProduct:
    product = make_topup_product(name="Dragon gems 60", price="4.99")
    make_field(product, "dropdown", number=1, label="Server", options=["eu"])
    return product


@pytest.fixture
def page(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    # Playwright runs an event loop in this thread, which the ORM takes for asynchronous code.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    operator = make_operator(username="olga")
    operator.user.set_password(PASSWORD)
    operator.user.save()
    with open_browser() as browser:
        page = browser.new_page(base_url=server.base_url, viewport={"width": 1280, "height": 720})
        sign_in(page, "olga")
        yield page
        connections.close_all()  # those that the ORM opened beside Playwright's event loop


def take_picture(page: Page, name: str) -> None:
    """Keeps a picture where somebody asked for pictures."""
    if folder := os.environ.get("TEST_PICTURES"):
        page.wait_for_timeout(300)
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_an_order_is_claimed_and_delivered_and_another_rejected_and_refunded(
    server: LiveServer, worker: None, product: TopUpProduct, page: Page
) -> None:
    merchant = Merchant(make_client(make_account(balance="100.00")), http=server.http)
    delivered = buy_topup(merchant, product, player_id="0012345", fields={"1": "eu"})
    rejected = buy_topup(merchant, product, player_id="wrong-one", fields={"1": "eu"})

    # Signing in leads straight to the queue, the oldest order first.
    page.reload()
    rows = page.locator("#result_list tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text(delivered)
    expect(rows.first.locator("input.desk-copy")).to_have_value("0012345")
    take_picture(page, "desk")

    # One click claims the next order; delivering it asks once more.
    page.get_by_role("button", name="Claim next").click()
    expect(page.locator("body")).to_contain_text("Processing")
    take_picture(page, "desk-order")
    page.get_by_role("link", name="Delivered…").click()
    take_picture(page, "desk-confirm")
    page.get_by_role("button", name="Delivered").click()
    expect(page.locator("body")).to_contain_text("1 done")
    assert merchant.get(f"/orders/{delivered}").json()["data"]["status"] == "completed"

    # The other one is rejected, and the wallet is credited while the page is watched.
    page.goto("/admin/topups/fulfilment/")
    page.get_by_role("link", name=rejected).click()
    page.get_by_role("link", name="Reject and refund…").click()
    page.select_option("[name=reason]", "wrong_id")
    page.get_by_role("button", name="Reject and refund").click()
    expect(page.locator("body")).to_contain_text("1 done")
    for _ in range(60):
        if "credited" in page.locator("body").inner_text():
            break
        page.wait_for_timeout(500)
        page.reload()
    expect(page.locator("body")).to_contain_text("credited")

    order = merchant.get(f"/orders/{rejected}").json()["data"]
    assert (order["status"], order["refunded"]) == ("failed", True)
    assert merchant.get("/balance").json()["data"]["balance"] == 95.01


def test_the_slower_operator_is_told(server: LiveServer, product: TopUpProduct, page: Page) -> None:
    merchant = Merchant(make_client(make_account(balance="100.00")), http=server.http)
    reference = buy_topup(merchant, product, fields={"1": "eu"})
    page.goto("/admin/topups/fulfilment/")
    page.get_by_role("link", name=reference).click()
    expect(page.get_by_role("button", name="Claim")).to_be_visible()

    claim_next(operator=make_operator(username="faster"))
    page.get_by_role("button", name="Claim").click()

    expect(page.locator("body")).to_contain_text("claimed by faster")
