"""Operators work on top-ups in real browsers while the merchant polls over HTTP."""

import re

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from accounts.models import Account
from tests.browsing import save_screenshot, take_session
from tests.concurrency.racing import holding_locks, wait_for_waiting
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_field,
    make_operator,
    make_topup_product,
    move_now,
)
from tests.live import LiveServer
from tests.operators.back_office import signed_in
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment, FulfilmentEvent, TopUpProduct

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone"),
]

QUEUE = "/admin/topups/fulfilment/"
DESKTOP: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture
def product(transactional_db: None) -> TopUpProduct:
    product = make_topup_product(name="Dragon gems 60", price="4.99")
    make_field(product, "dropdown", number=1, label="Server", options=["eu"])
    return product


@pytest.fixture
def page(server: LiveServer, chromium: Browser) -> Page:
    return page_of("olga", server, chromium)


@pytest.fixture
def merchant(server: LiveServer) -> Merchant:
    return Merchant(make_client(make_account(balance="100.00")), http=server.http)


def page_of(username: str, server: LiveServer, browser: Browser) -> Page:
    """A browser page that is signed in as a new operator."""
    operator = make_operator(username=username)
    page = browser.new_page(base_url=server.base_url, viewport=DESKTOP)
    take_session(page, server, signed_in(operator.user))
    page.goto("/admin/")
    return page


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_second_click_ends_no_order(
    merchant: Merchant, product: TopUpProduct, page: Page, size: ViewportSize
) -> None:
    """Not at the place of the first click, and not on the same button within two seconds."""
    page.set_viewport_size(size)
    first, second = (buy_topup(merchant, product, fields={"1": "eu"}) for _ in range(2))
    page.goto(QUEUE)
    claim = page.get_by_role("button", name="Claim next").bounding_box()
    assert claim
    page.mouse.click(claim["x"] + 5, claim["y"] + 5)
    deliver = page.get_by_role("button", name="Delivered, claim next")
    expect(deliver).to_be_visible()
    box = deliver.bounding_box()
    assert box
    right = box["x"] > claim["x"] + claim["width"]
    below = box["y"] > claim["y"] + claim["height"]
    assert right or below
    page.wait_for_timeout(2200)
    deliver.click()
    expect(page.get_by_role("textbox", name="Order reference")).to_have_value(second)
    box = deliver.bounding_box()
    assert box
    for _ in range(3):
        page.mouse.click(box["x"] + 5, box["y"] + 5)
        page.wait_for_timeout(400)

    states = {each.order_reference: each.status for each in Fulfilment.objects.all()}
    assert states == {first: "completed", second: "processing"}


def test_the_reference_of_an_order_is_in_one_line(
    merchant: Merchant, product: TopUpProduct, page: Page
) -> None:
    TopUpProduct.objects.update(name="Legends of the mobile, 1,000 diamonds")
    Account.objects.update(name="Corner Games of the North")
    buy_topup(merchant, product, fields={"1": "eu"}, player_id="1234567890123456")

    page.goto(QUEUE)

    box = page.locator(".field-order_reference a").bounding_box()
    assert box
    assert box["height"] < 25
    assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"]


def test_an_operator_works_with_the_keyboard(
    merchant: Merchant, product: TopUpProduct, page: Page
) -> None:
    first, second = (buy_topup(merchant, product, fields={"1": "eu"}) for _ in range(2))
    page.goto(QUEUE)
    page.keyboard.press("?")
    listed = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(listed).to_contain_text("Claim next")
    save_screenshot(page, "desk-keys")
    page.keyboard.press("n")  # nothing happens while the list is open
    page.keyboard.press("Escape")
    page.locator("#searchbar").press_sequentially("n?")
    assert set(Fulfilment.objects.values_list("status", flat=True)) == {"pending"}
    page.keyboard.press("Tab")

    with page.expect_navigation():  # waits until the next page listens to keys
        page.keyboard.press("n")
    page.keyboard.press("D")  # too early: nobody can have read the order
    expect(page.get_by_role("textbox", name="Order reference")).to_have_value(first)
    primary = page.locator("button.bg-primary-600:visible, a.bg-primary-600:visible")
    logo, *buttons = primary.all_inner_texts()
    assert (logo, len(buttons)) == ("confirmation_number", 1)  # one button stands out
    page.keyboard.press("?")
    expect(listed).to_contain_text("Delivered, claim next")
    expect(listed).to_contain_text("Reject and refund…")
    page.keyboard.press("?")
    expect(listed).to_be_hidden()
    page.wait_for_timeout(2300)
    assert Fulfilment.objects.get(order_reference=first).status == "processing"
    with page.expect_navigation():
        page.keyboard.press("D")
    expect(page.get_by_role("textbox", name="Order reference")).to_have_value(second)
    with page.expect_navigation():
        page.keyboard.press("x")  # asks first
    expect(page.get_by_role("button", name="Reject and refund", exact=True)).to_be_visible()
    states = {each.order_reference: each.status for each in Fulfilment.objects.all()}
    assert states == {first: "completed", second: "processing"}

    page.keyboard.press("?")
    page.get_by_role("button", name="Turn off").click()
    page.keyboard.press("Escape")
    page.goto(QUEUE)
    page.keyboard.press("n")
    page.wait_for_timeout(300)
    expect(page).to_have_url(re.compile(re.escape(QUEUE)))


def test_one_of_two_concurrent_claims_wins(
    server: LiveServer, merchant: Merchant, product: TopUpProduct, page: Page, chromium: Browser
) -> None:
    reference = buy_topup(merchant, product, fields={"1": "eu"})
    pages = {"olga": page, "ben": page_of("ben", server, chromium)}
    for each in pages.values():
        each.goto(QUEUE)
        each.get_by_role("link", name=reference).click()
        expect(each.get_by_role("button", name="Claim", exact=True)).to_be_visible()

    # Both operators press the button before either claim can succeed.
    with holding_locks(
        "SELECT FROM topups_fulfilment WHERE order_reference = %s FOR UPDATE", reference
    ):
        for each in pages.values():
            each.get_by_role("button", name="Claim", exact=True).click(no_wait_after=True)
        wait_for_waiting(2)
    for each in pages.values():
        expect(each.locator("body")).to_contain_text(
            re.compile("Claimed\\. The|Nothing was changed")
        )

    winner = Fulfilment.objects.get(order_reference=reference).claimed_by
    assert winner is not None
    won, lost = pages.pop(winner.username), pages.popitem()[1]
    expect(won.locator("body")).to_contain_text("Claimed. The order is assigned to you.")
    expect(won.get_by_role("button", name="Release")).to_be_visible()
    expect(lost.locator("body")).to_contain_text(f"claimed by {winner.username}")
    expect(lost.get_by_role("link", name="Mark delivered…")).to_have_count(0)
    assert FulfilmentEvent.objects.filter(move="claim").count() == 1


def test_a_double_click_delivers_once_and_a_late_form_moves_nothing(
    merchant: Merchant, product: TopUpProduct, page: Page
) -> None:
    first, second = (buy_topup(merchant, product, fields={"1": "eu"}) for _ in range(2))
    page.goto(QUEUE)
    page.get_by_role("link", name=first).click()
    page.get_by_role("link", name="Mark delivered…").click()
    page.get_by_role("button", name="Mark delivered").dblclick()
    expect(page.locator("body")).to_contain_text("Delivered.")
    assert FulfilmentEvent.objects.filter(move="complete").count() == 1

    page.goto(QUEUE)
    page.get_by_role("link", name=second).click()
    page.get_by_role("link", name="Reject and refund…").click()
    page.select_option("[name=reason]", "wrong_id")
    anna = make_operator(username="anna")
    for move in (Move.CLAIM, Move.REVIEW):
        move_now(reference=second, move=move, operator=anna)
    page.get_by_role("button", name="Reject and refund").click()
    expect(page.locator("body")).to_contain_text("claim by anna, review by anna")
    save_screenshot(page, "desk-late")
    page.set_viewport_size(PHONE)
    save_screenshot(page, "desk-late-phone")

    moves = FulfilmentEvent.objects.exclude(move="open").order_by("pk")
    assert list(moves.values_list("move", flat=True)) == ["complete", "claim", "review"]


def test_the_queue_announces_new_orders_and_keeps_the_operators_input(
    merchant: Merchant, product: TopUpProduct, page: Page
) -> None:
    buy_topup(merchant, product, fields={"1": "eu"})
    page.goto(QUEUE)
    page.locator("input.action-select").check()
    page.get_by_placeholder("Order reference or player ID").fill("half typed")
    news = page.get_by_role("status").filter(has=page.locator("a"))
    expect(page.locator(".desk-strip")).to_contain_text("1 pending")
    expect(page.locator(".desk-news a")).to_be_hidden()
    page.locator(".desk-strip a").first.focus()

    buy_topup(merchant, product, fields={"1": "eu"})

    expect(news).to_have_text("Show 1 new order")
    expect(page.locator(".desk-strip a").first).to_be_focused()
    expect(page.locator(".desk-strip")).to_contain_text("1 pending")  # not updated while focused
    page.get_by_placeholder("Order reference or player ID").focus()
    expect(page.locator(".desk-strip")).to_contain_text("2 pending")
    expect(page.locator("input.action-select")).to_be_checked()
    expect(page.get_by_placeholder("Order reference or player ID")).to_have_value("half typed")
    save_screenshot(page, "desk-news")
    page.locator(".desk-news a").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(2)


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_queue_fits_a_small_screen(
    server: LiveServer, chromium: Browser, language: str
) -> None:
    account = make_account()
    Account.objects.update(name="Northern Lights Entertainment and Digital Distribution")
    merchant = Merchant(make_client(account), http=server.http)
    product = make_topup_product(name="Dragon gems 6,480 and 320 for the first purchase")
    make_field(product, "dropdown", number=1, label="Server", options=["Europe (Frankfurt)"])
    body = {"fields": {"1": "Europe (Frankfurt)"}, "player_id": "1234567890123456789012"}
    first, _ = (buy_topup(merchant, product, **body) for _ in range(2))
    operator = make_operator(username="konstantin.weber")
    move_now(reference=first, move=Move.CLAIM, operator=operator)
    page = chromium.new_page(base_url=server.base_url, viewport=DESKTOP, locale=language)
    take_session(page, server, signed_in(operator.user))
    page.goto(QUEUE)
    expect(page.locator("#result_list tbody tr")).to_have_count(2)

    page.wait_for_timeout(300)
    save_screenshot(page, f"desk-{language}")
    wider = """[...document.querySelectorAll(".simplebar-content-wrapper")]
        .map((frame) => frame.scrollWidth - frame.clientWidth).filter((more) => more > 0)"""
    assert page.evaluate(wider) == []


def test_an_operator_hears_and_sees_that_an_order_arrives(
    merchant: Merchant, product: TopUpProduct, page: Page
) -> None:
    """Only when they want it, and after a reload as well."""
    page.add_init_script(
        "window.tones = 0; OscillatorNode.prototype.start = () => { window.tones += 1; };"
        "OscillatorNode.prototype.stop = () => {};"
    )
    page.goto(QUEUE)
    title = page.title()
    buy_topup(merchant, product, fields={"1": "eu"})
    news = page.locator(".desk-news a")
    expect(news).to_have_text("Show 1 new order")
    assert (page.title(), page.evaluate("tones")) == (title, 0)

    page.get_by_label("Tell me when an order arrives").check()
    assert page.evaluate("tones") == 2  # so that the person knows the sound
    page.reload()
    expect(page.get_by_label("Tell me when an order arrives")).to_be_checked()
    buy_topup(merchant, product, fields={"1": "eu"})
    page.wait_for_function("document.title.startsWith('(1) ')")
    page.wait_for_timeout(2500)
    assert page.evaluate("tones") == 2  # once for each order

    page.get_by_label("Tell me when an order arrives").uncheck()
    expect(page).to_have_title(title)


def test_an_order_says_who_else_looks_at_it(
    server: LiveServer, merchant: Merchant, product: TopUpProduct, page: Page, chromium: Browser
) -> None:
    reference = buy_topup(merchant, product, fields={"1": "eu"})
    page.goto(QUEUE)
    page.get_by_role("link", name=reference).click()
    expect(page.get_by_role("button", name="Claim", exact=True)).to_be_visible()
    expect(page.locator(".desk-viewers")).to_have_count(0)

    other = page_of("ben", server, chromium)
    other.goto(page.url)

    expect(other.locator(".desk-viewers")).to_contain_text("olga has looked at this")
    expect(page.locator(".desk-viewers")).to_contain_text("ben has looked at this")
    other.goto(QUEUE)
    expect(page.locator(".desk-viewers")).to_have_count(0)


def test_the_dashboard_updates_and_shows_when_it_cannot(
    merchant: Merchant, product: TopUpProduct, page: Page
) -> None:
    references = [buy_topup(merchant, product, fields={"1": "eu"}) for _ in range(2)]
    page.goto(f"{QUEUE}dashboard/")
    expect(page.locator(".desk-card").first).to_have_text("2Pending")
    ended = """() => Chart.getChart(document.querySelector("canvas.chart")).data.datasets
        .flatMap(series => series.data).reduce((sum, each) => sum + each, 0)"""
    assert page.evaluate(ended) == 0

    move_now(reference=references[0], move=Move.COMPLETE, operator=make_operator())

    expect(page.locator(".desk-card").first).to_have_text("1Pending")
    page.wait_for_function(f"({ended})() === 1")
    page.context.clear_cookies()  # the session ends
    expect(page.locator(".desk-stale")).to_contain_text("1Pending")
    expect(page.locator(".desk-stale")).to_have_attribute("title", re.compile("Reload"))
