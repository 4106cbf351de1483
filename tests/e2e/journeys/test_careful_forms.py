"""Forms of the back office that are easily sent by mistake, or twice, in a real browser."""

import re

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, FilePayload, Page, expect

from accounts.models import ApiClient, ApiKey
from catalogue.models import Category, Product
from orders.models import Order
from tests.browsing import take_session
from tests.cases.complaints import PNG
from tests.factories import (
    buy_topup,
    make_account,
    make_category,
    make_client,
    make_merchant,
    make_operator,
    make_product,
    move_now,
    own_shelf,
)
from tests.live import LiveServer
from tests.operators.back_office import signed_in, url
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment
from wallets.models import LedgerEntry

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone"),
]


@pytest.fixture
def page(live: LiveServer, chromium: Browser) -> Page:
    page = chromium.new_page(base_url=live.base_url, viewport={"width": 1280, "height": 800})
    take_session(page, live, signed_in())
    return page


def test_a_careless_click_or_a_repeated_one_does_no_harm(page: Page) -> None:
    ask_before_a_large_price_change(page)
    add_a_product_with_its_price(page)
    offer_delete_only_where_it_works(page)
    ask_before_switching_off(page)
    issue_one_key_and_reload(page)
    book_once_and_go_back(page)
    keep_in_a_range_what_was_chosen(page)
    keep_the_name_of_a_file_out_of_other_fields(page)


def ask_before_a_large_price_change(page: Page) -> None:
    shelf = own_shelf(make_product(price="10.00"))
    page.goto(url(shelf))
    page.get_by_label("Price", exact=False).first.fill("14.00")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("from 10.00 to 14.00")
    shelf.refresh_from_db()
    assert shelf.price == 10

    page.get_by_label("Yes, the new price is 14.00").check()
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(re.compile("/shelf/$"))
    shelf.refresh_from_db()
    assert shelf.price == 14


def add_a_product_with_its_price(page: Page) -> None:
    page.goto("/admin/catalogue/product/add/")
    page.locator("[name=name]").fill("New card")
    page.locator("[name=currency]").fill("USD")
    page.locator("[name=price]").fill("3.50")
    page.get_by_role("button", name="Create product", exact=True).click()
    page.wait_for_url(re.compile(r"/product/\d+/change/$"))
    assert own_shelf(Product.objects.get(name="New card")).price == 3.5


def offer_delete_only_where_it_works(page: Page) -> None:
    used, empty = make_category(), Category.objects.create(name="Empty")
    make_product(category=used)
    delete = page.locator("#main a[href$='/delete/']")
    page.goto(url(used))
    expect(delete).to_have_count(0)
    page.goto(url(empty))
    expect(delete).to_have_count(1)


def ask_before_switching_off(page: Page) -> None:
    client = make_client(make_account())
    for row in (client, client.account):
        assert row is not None
        page.goto(url(row))
        page.get_by_role("link", name="Switch off").click()
        expect(page.get_by_role("main")).to_contain_text(f"Switch {row} off?")
        row.refresh_from_db()
        assert row.enabled
        page.get_by_label("Reason").fill("does not pay")
        page.get_by_role("button", name="Switch off").click()
        expect(page.locator("body")).to_contain_text(f"{row} is switched off.")
        row.refresh_from_db()
        assert not row.enabled


def issue_one_key_and_reload(page: Page) -> None:
    client: ApiClient = make_client(make_account())
    page.goto(url(client))
    page.get_by_role("link", name="Create an API key").click()
    page.get_by_role("button", name="Create an API key").click()
    expect(page.get_by_label("API key")).to_have_value(re.compile("^vk_"))
    page.reload()
    expect(page.locator("body")).to_contain_text("already created")
    expect(page.get_by_label("API key")).to_have_count(0)
    assert ApiKey.objects.filter(client=client).count() == 1


def book_once_and_go_back(page: Page) -> None:
    account = make_account(balance="0")
    page.goto(url(account))
    page.get_by_role("link", name="Book money").click()
    page.get_by_label("Amount").fill("25")
    page.get_by_label("Reason").fill("bank transfer")
    page.get_by_label("Reference").fill("bank 4711")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("main")).to_contain_text("Balance after: 25.00")
    page.get_by_role("button", name="Confirm deposit").click()
    page.wait_for_url(re.compile(url(account)))

    page.go_back()
    expect(page.locator("body")).to_contain_text("25.00")
    assert "Resubmission" not in page.content()
    assert page.get_by_role("button", name="Confirm deposit").count() == 0
    assert LedgerEntry.objects.filter(wallet=account.pk).count() == 1


def keep_in_a_range_what_was_chosen(page: Page) -> None:
    page.goto("/admin/margins/")
    page.get_by_label("Lines by").select_option("merchant")
    page.get_by_role("link", name="Last week").click()
    expect(page).to_have_url(re.compile("by=merchant"))
    expect(page.get_by_role("link", name="Last week")).to_have_attribute("aria-current", "page")


def keep_the_name_of_a_file_out_of_other_fields(page: Page) -> None:
    merchant = make_merchant()
    reference, problems = buy_topup(merchant), list[str]()
    move_now(reference=reference, move=Move.COMPLETE, operator=make_operator())
    order = Fulfilment.objects.get(order_reference=reference)
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    picture: FilePayload = {"name": "p.png", "mimeType": "image/png", "buffer": PNG}
    proof = reverse("admin:topups_fulfilment_add_proof", args=[order.pk])
    case = reverse("admin:orders_order_open_case", args=[Order.objects.get(reference=reference).pk])
    for address in (proof, case, reverse("admin:accounts_owncompany_changelist")):
        page.goto(address)
        texts = page.locator("#main input[type=text]")
        before = [text.input_value() for text in texts.all()]
        page.set_input_files("#main [type=file]", picture)
        assert [text.input_value() for text in texts.all()] == before
    assert not problems
