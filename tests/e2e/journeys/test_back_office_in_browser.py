"""A real browser opens every back office page without an error or a policy violation."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    TimeoutError,
    ViewportSize,
    expect,
)

from accounts.models import Account, SecondFactor
from catalogue.models import Category, PriceList, Product, VoucherCode
from merchants.models import CompanyProposal, PreparedFile
from operators.admin.action_forms import ACTION_FORMS
from operators.telegram.models import PlatformSettings
from orders.models import Order
from tests.axe import UNDESCRIBED, Inspector
from tests.browsing import PASSWORD, save_screenshot, sign_in, take_session
from tests.factories import make_merchant
from tests.keyboard import unreached
from tests.live import LiveServer
from tests.operators.back_office import (
    World,
    list_url,
    make_proof,
    make_staff,
    shown_models,
    signed_in,
    url,
)
from tests.operators.pages.test_role_matrix import (
    MODELS,
    OF_MODELS,
    address_of,
    names_of_pages,
)
from tests.operators.stocked_shop import PIN, StockedShop
from topups.fulfilment.transitions import Move
from topups.models import DeliveryProof, Fulfilment, TopUpProduct

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SECTIONS = shown_models()
DESKTOP: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 800}

PARTS = 3
# Pages of people who have not signed in yet, which have tests of their own.
SIGNING_IN = {"admin:login", "staff_forgotten", "staff_password", "two_factor", "two_factor_enrol"}
# Addresses that show no page of their own: files, parts of pages, and what leads to another page.
NO_PAGES = {
    *("admin:cases_case_assign", "admin:cases_case_file"),
    *("admin:catalogue_batch_recall_file", "audit_trail_file"),
    *("admin:topups_fulfilment_proof_file", "admin:topups_fulfilment_add_proof"),
    *("admin:imports_fileimport_export", "admin:imports_fileimport_problems", "margins_file"),
    *("admin:jsi18n", "otp_webauthn:js-i18n-catalog", "admin:wallets_wallet_statement"),
    *("admin:topups_fulfilment_glance", "admin:topups_fulfilment_strip", "system_now"),
    "admin:topups_fulfilment_viewers",
    *("admin:imports_fileimport_progress", "admin:upkeep_reconcilerun_progress", "admin:search"),
    *("admin:accounts_account_switch_on", "admin:accounts_apiclient_switch_on"),
    *("admin:catalogue_product_import_catalogue", "admin:catalogue_shelf_import_codes"),
    *("admin:catalogue_shelf_change_price", "admin:topups_topupproduct_change_price"),
    *("admin:catalogue_shelf_new_prices", "admin:topups_topupproduct_new_prices"),
    *("admin:catalogue_shelf_withdraw_price", "admin:topups_topupproduct_withdraw_price"),
    *("admin:catalogue_vouchercode_import_codes", "admin:imports_fileimport_new_catalogue"),
    *("admin:catalogue_pricelist_import_prices", "admin:imports_fileimport_new_prices"),
    *("admin:catalogue_pricelist_import_prices_of_list", "admin:catalogue_pricelist_compare_list"),
    "admin:catalogue_pricelist_set_prices",
    *("admin:figures_exchangerate_import_rates", "admin:imports_fileimport_new_rates"),
    *("admin:imports_fileimport_new_codes", "admin:imports_fileimport_part"),
    *("admin:imports_fileimport_step", "admin:topups_fulfilment_deliver_next"),
    "admin:imports_fileimport_changes",
    *("admin:topups_fulfilment_move", "admin:topups_fulfilment_next", "note", "passkey_remove"),
    *("admin:wallets_announcedtransfer_confirm", "admin:view_on_site", "admin:autocomplete"),
    *("admin:logout", "begin", "find_batches", "prepared_file", "prepared_file_part"),
    *("cancel_prepared_file", "end_request"),
    *SIGNING_IN,
    *(
        f"otp_webauthn:credential-{what}-{step}"
        for what in ("authentication", "registration")
        for step in ("begin", "complete")
    ),
}

inspector = Inspector(menu="#nav-sidebar")


@pytest.fixture
def page(live: LiveServer, chromium: Browser) -> Page:
    """A page of a superuser, in a service with one object of every kind."""
    make_proof(make_merchant())
    World().grow(1)
    owner = User.objects.create_user("owner@shop.example")
    account = Account.objects.latest("pk")
    CompanyProposal.objects.create(account=account, legal_name="Shop Ltd", proposed_by=owner)
    page = chromium.new_page(base_url=live.base_url, viewport=DESKTOP)
    page.on("console", record_error)
    page.on("pageerror", lambda error: ERRORS.append(str(error)))
    ERRORS.clear()
    take_session(page, live, signed_in())
    page.goto("/admin/")
    return page


ERRORS: list[str] = []


def record_error(message: ConsoleMessage) -> None:
    if message.type in ("error", "warning"):
        ERRORS.append(message.text)


def visit(page: Page, address: str) -> None:
    """Opens a page, again if the network interfaces of the machine changed meanwhile: containers of
    other tests do that, and the browser then gives up its requests or waits for their answers."""
    if not _open(page, address) or any("ERR_NETWORK_CHANGED" in error for error in ERRORS):
        ERRORS.clear()
        assert _open(page, address), f"{address}: its requests do not end"
    assert ERRORS == [], address


def _open(page: Page, address: str) -> bool:
    """Whether all requests of the page have ended."""
    answer = page.goto(address)
    assert answer is not None, address
    assert answer.status == 200, address
    try:
        page.wait_for_load_state("networkidle")
    except TimeoutError:
        return False
    return True


PROBLEMS: list[tuple[str, str, str]] = []
# The names of icons that our font lacks are shown as words, which are wider than an icon.
MISSING_ICONS = """() => document.fonts.ready.then(
    () => [...document.querySelectorAll(".material-symbols-outlined")]
        .filter((icon) => icon.scrollWidth > 1.5 * parseFloat(getComputedStyle(icon).fontSize))
        .map((icon) => icon.textContent.trim()))"""

# Style sheets draw icons too, behind fields of dates and times. Names are wider than an icon.
MISSING_DRAWN_ICONS = """() => document.fonts.load("20px 'Material Symbols Outlined'").then(() => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "20px 'Material Symbols Outlined'";
    const rules = [...document.styleSheets].flatMap(function all(list) {
        return [...list.cssRules].flatMap((one) => one.cssRules?.length ? [one, ...all(one)] : one);
    });
    const texts = rules.flatMap((rule) => [
        rule.style?.content, rule.style?.getPropertyValue("--tw-content")]);
    const names = new Set(texts.map((text) => text?.trim().match(/^["']([a-z]\\w+)["']$/)?.[1]));
    if (!names.has("calendar_today")) return ["the names were not found"];
    return [...names].filter((name) => name && pen.measureText(name).width > 30);
})"""


# By how many pixels tables are wider than their frames.
WIDER = """[...document.querySelectorAll(".simplebar-content-wrapper")]
    .map((frame) => frame.scrollWidth - frame.clientWidth).filter((more) => more > 0)"""


def inspect(page: Page, address: str, look: Literal["light", "dark"]) -> None:
    """Opens a page in these colours, and notes what axe finds. The page fits a phone, and each list
    its frame."""
    page.emulate_media(color_scheme=look)
    visit(page, address)
    inspect_open(page, address, look)


def inspect_open(page: Page, address: str, look: Literal["light", "dark"]) -> None:
    """Notes the same of the page that is open, which may have no address of its own."""
    note(page, address, look)
    PROBLEMS.extend((address, "not reached with Tab", each) for each in unreached(page))
    PROBLEMS.extend((address, "icon", name) for name in page.evaluate(MISSING_ICONS))
    if (wide := page.evaluate("document.documentElement.scrollWidth")) > DESKTOP["width"]:
        PROBLEMS.append((address, "width", str(wide)))
    PROBLEMS.extend((address, "list", f"+{more}") for more in page.evaluate(WIDER))
    page.set_viewport_size(PHONE)
    try:
        page.wait_for_function(f"document.documentElement.scrollWidth <= {PHONE['width']}")
    except TimeoutError:
        wide = page.evaluate("document.documentElement.scrollWidth")
        PROBLEMS.append((address, "width of a phone", str(wide)))
    page.set_viewport_size(DESKTOP)


def note(page: Page, address: str, look: str, **options: Any) -> None:
    """Notes what axe finds on the page that is open."""
    found = inspector.violations(page, look, **options)
    PROBLEMS.extend((address, one["id"], one["nodes"][0]["html"][:200]) for one in found)


def note_other_colours(page: Page, address: str) -> None:
    """Notes too little contrast in the other colours. They are the only difference."""
    page.evaluate(
        """() => {
            document.documentElement.classList.toggle("dark");
            const changing = document.getAnimations().filter((one) => one instanceof CSSTransition);
            changing.forEach((one) => one.finish());
        }"""
    )
    only_contrast = {"runOnly": ["color-contrast"]}
    note(page, f"{address} in other colours", "other colours", options=only_contrast)


def test_every_list_and_row_opens_without_errors(page: Page) -> None:
    PROBLEMS.clear()
    page.context.clear_cookies()
    staff = make_staff(superuser=True)
    staff.set_password(PASSWORD)
    staff.save()
    sign_in(page, staff.username)
    for model in SECTIONS:
        inspect(page, list_url(model), "dark")
        inspect(page, url(model.objects.latest("pk")), "light")
    SecondFactor.objects.all().delete()
    inspect(page, reverse("two_factor_enrol"), "dark")
    assert PROBLEMS == []
    assert page.locator("img[alt^='QR code']").evaluate("image => image.naturalWidth") > 0


def other_pages() -> Iterator[tuple[str, str]]:
    """The names and addresses of all pages beside the lists and rows of models. The page that
    deletes a row, and the one with its history, are the same for each model."""
    of_rows = {f"admin:{label.replace('.', '_')}_{page}" for label in MODELS for page in OF_MODELS}
    for label, (_, may_add, _, _) in MODELS.items():
        if may_add:
            name = f"admin:{label.replace('.', '_')}_add"
            yield name, reverse(name)
    for name in sorted(names_of_pages() - of_rows - NO_PAGES):
        yield name, address_of(name)
    category, shelf = Category.objects.latest("pk"), VoucherCode.objects.latest("pk").shelf_id
    yield from ((page, url(category, page)) for page in ("delete", "history"))
    yield from ((f"begin {name}", reverse("begin", args=[name])) for name in ACTION_FORMS)
    yield "import a catalogue", reverse("admin:imports_fileimport_upload", args=["catalogue"])
    yield "prices of shelves", f"/admin/catalogue/shelf/prices/?row={shelf}"
    price_list = url(PriceList.objects.latest("pk"), "set_prices")
    yield "prices of a list", f"{price_list}?row=shelf-{shelf}"
    product = TopUpProduct.objects.latest("pk")
    yield "prices of top-ups", f"/admin/topups/topupproduct/prices/?row={product.pk}"
    reader = User.objects.filter(is_superuser=True).latest("pk")
    file, _ = PreparedFile.objects.get_or_create(user=reader, name="orders.csv", sealed=b"")
    yield "prepared file", reverse("prepared_file", args=[file.token])
    delivered = DeliveryProof.objects.latest("pk").fulfilment
    yield from ((page, url(delivered, page)) for page in ("change", "add_proof"))
    for move in (Move.REJECT, Move.COMPLETE):
        row = Fulfilment.objects.latest("pk")
        yield move, reverse("admin:topups_fulfilment_move", args=[row.pk, move])


def test_the_exceptions_are_addresses() -> None:
    assert names_of_pages() >= NO_PAGES


@pytest.mark.parametrize("part", range(PARTS))
def test_every_other_page_opens_without_errors(page: Page, part: int) -> None:
    PROBLEMS.clear()
    PlatformSettings.objects.get_or_create()
    for name, address in islice(other_pages(), part, None, PARTS):
        inspect(page, address, "dark" if name.endswith("_add") else "light")
        assert page.url.endswith(address), f"{name} leads elsewhere"
        note_other_colours(page, address)
    assert PROBLEMS == []


def test_the_pages_of_signing_in_open_without_errors(page: Page) -> None:
    PROBLEMS.clear()
    page.context.clear_cookies()
    staff = make_staff(superuser=True)
    staff.set_password(PASSWORD)
    staff.save()
    SecondFactor.objects.create(user=staff)
    for name in ("staff_forgotten", "staff_password", "admin:login"):
        inspect(page, reverse(name), "light")
        note_other_colours(page, name)

    for password in ("wrong", PASSWORD):
        page.fill("[name=username]", staff.username)
        page.fill("[name=password]", password)
        send(page, "[name=password]")
        inspect_open(page, f"after the password {password}", "light")
    expect(page).to_have_url(re.compile("/admin/two-factor/"))
    note_other_colours(page, "two_factor")
    page.fill("[name=code]", "000000")
    send(page, "[name=code]")
    inspect_open(page, "after a wrong code", "light")

    assert (PROBLEMS, ERRORS) == ([], [])


def test_what_a_form_leads_to_opens_without_errors(page: Page) -> None:
    PROBLEMS.clear()
    for model, action in ((Fulfilment, "reject_selected"), (VoucherCode, "hold_selected")):
        visit(page, list_url(model))
        page.locator("input.action-select").first.check()
        page.select_option("[name=action]", action)
        with page.expect_navigation():
            page.get_by_role("button", name="Run").first.click()
        expect(page.locator("[name=reason]")).to_be_visible()
        inspect_open(page, action, "light")
        note_other_colours(page, action)

    visit(page, address_of("admin:accounts_account_book"))
    page.fill("[name=amount]", "25")
    page.fill("[name=reason]", "bank transfer")
    page.fill("[name=reference]", "transfer 4711")
    send(page, "[name=reference]")
    expect(page.locator("[name=amount]")).to_be_hidden()  # asks for a confirmation
    inspect_open(page, "confirm a booking", "light")
    note_other_colours(page, "confirm a booking")

    assert (PROBLEMS, ERRORS) == ([], [])


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_stock_and_prices_open_without_errors(page: Page, size: ViewportSize) -> None:
    """With rows in every table, in both sizes."""
    PROBLEMS.clear()
    page.set_viewport_size(size)
    shop = StockedShop()
    for name, address in shop.pages.items():
        visit(page, address)
        inspect_at(page, name, size)

    visit(page, reverse("search"))
    page.fill("#search-text", PIN)
    page.press("#search-text", "Enter")  # a script shows what is found
    expect(page.locator(".search-hits a")).to_have_count(5)
    inspect_at(page, "codes found", size)

    visit(page, shop.prices)
    page.select_option("[name=change]", "percent")
    page.fill("[name=percent]", "-30")
    send(page, "[name=percent]")
    inspect_at(page, "new prices", size)
    visit(page, shop.prices)
    page.locator("form:has([name=percent])").evaluate("form => form.noValidate = true")
    page.select_option("[name=change]", "prices")
    prices = page.locator("[name^=price-]")
    prices.first.fill("-1")
    send(page, f"[name={prices.last.get_attribute('name')}]")
    inspect_at(page, "wrong prices", size)

    assert (PROBLEMS, ERRORS) == ([], [])


def inspect_at(page: Page, name: str, size: ViewportSize) -> None:
    """Notes what is wrong with the open page at this size, and what axe finds in both colours. The
    menu of a phone is closed."""
    note(page, name, f"light, {size['width']} pixels")
    save_screenshot(page, f"{name} {size['width']} light", whole=True)
    PROBLEMS.extend((name, "not reached with Tab", each) for each in unreached(page))
    PROBLEMS.extend((name, "no description", field) for field in page.evaluate(UNDESCRIBED))
    PROBLEMS.extend((name, "icon", icon) for icon in page.evaluate(MISSING_ICONS))
    if (wide := page.evaluate("document.documentElement.scrollWidth")) > size["width"]:
        PROBLEMS.append((name, "width", str(wide)))
    PROBLEMS.extend((name, "list", f"+{more}") for more in page.evaluate(WIDER))
    note_other_colours(page, name)
    save_screenshot(page, f"{name} {size['width']} dark", whole=True)


def send(page: Page, field: str) -> None:
    """Sends the form of a field with Enter, and waits for the page that it leads to."""
    with page.expect_navigation():
        page.press(field, "Enter")
    page.wait_for_load_state("networkidle")


def test_a_phone_labels_each_value_and_style_sheets_draw_known_icons(page: Page) -> None:
    page.set_viewport_size(PHONE)
    visit(page, list_url(Order))
    at = page.locator("tbody .field-created_at").first
    expect(at).to_have_attribute("data-label", "Created at")
    label = at.evaluate("cell => getComputedStyle(cell, '::before').textTransform")
    assert label == "none"
    assert page.evaluate(MISSING_DRAWN_ICONS) == []


def test_chart_autocomplete_and_dark_colours_work(page: Page) -> None:
    visit(page, reverse("admin:topups_fulfilment_dashboard"))
    drawn = "Chart.getChart(document.querySelector('canvas.chart')).data.labels.length"
    assert page.evaluate(drawn) == 24

    # An autocomplete field, and the dark colours.
    visit(page, list_url(Product) + "add/")
    page.locator(".select2-selection").first.click()
    expect(page.locator(".select2-results")).to_contain_text("Category")
    page.emulate_media(color_scheme="dark")
    visit(page, reverse("admin:index"))
    expect(page.locator("html")).to_have_class("dark")
    assert ERRORS == []


def test_the_search_finds_while_typing_and_keeps_the_text_out_of_addresses(page: Page) -> None:
    order = Order.objects.latest("pk")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    visit(page, reverse("admin:index"))
    results = page.locator("#command-results")
    expect(page.get_by_role("link", name="Voucher & top-up", exact=True)).to_have_count(2)

    page.keyboard.press("Control+k")
    field = page.get_by_role("searchbox", name="Search", exact=True)
    expect(field).to_be_focused()
    field.press_sequentially("Ledger")
    expect(results).to_contain_text("Page Ledger Money")
    field.fill(order.reference[-8:])
    expect(results).to_contain_text(order.reference)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{url(order)}")
    expect(page.locator("#timeline")).to_be_visible()

    # Enter at once leads to the first result.
    page.get_by_title("Search (Ctrl+K)").click()
    expect(field).to_have_value(order.reference[-8:])  # the words of the last search
    page.get_by_role("searchbox", name="Search", exact=True).fill(order.reference)
    with page.expect_navigation(url=f"**{url(order)}"):  # it is open already
        page.keyboard.press("Enter")
    assert not [address for address in asked if order.reference[-8:] in address]
    assert ERRORS == []


def test_a_note_is_added_to_a_timeline_and_is_in_the_audit_trail(page: Page) -> None:
    order = Order.objects.latest("pk")
    visit(page, url(order))

    page.get_by_label("Note").fill("asked the merchant")
    page.get_by_role("button", name="Add note").click()

    expect(page.locator(".entries")).to_contain_text("asked the merchant")
    visit(page, reverse("audit_trail", query={"about": order.reference}))
    expect(page.locator(".entries")).to_contain_text("asked the merchant")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all as CSV").click()
    assert download.value.suggested_filename == "audit-trail.csv"
    page.set_viewport_size({"width": 390, "height": 844})
    for address in (url(order), reverse("audit_trail"), reverse("search")):
        visit(page, address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, address


def test_control_policy_violations_are_refused_and_recorded(page: Page) -> None:
    """Control: the policy is in force, and violations are recorded as errors."""

    def is_refusal(message: ConsoleMessage) -> bool:
        return "Content Security Policy" in message.text

    with page.expect_console_message(is_refusal):
        page.evaluate(
            """() => {
                const script = document.createElement("script");
                script.textContent = "window.injected = true";
                document.head.append(script);
            }"""
        )
    assert page.evaluate("window.injected") is None
    with page.expect_console_message(is_refusal):
        assert page.evaluate("fetch('https://elsewhere.example/').then(() => 1, () => 'refused')")
    assert sum("Content Security Policy" in error for error in ERRORS) >= 2
