"""A real browser opens every back office page without an error or a policy violation."""

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from accounts.models import SecondFactor
from catalogue.models import Product, VoucherCode
from tests.browsing import PASSWORD, sign_in
from tests.live import LiveServer
from tests.operators.back_office import World, list_url, make_staff, shown_models, url
from topups.models import Fulfilment, TopUpProduct

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SECTIONS = shown_models()


@pytest.fixture
def page(live: LiveServer, chromium: Browser) -> Page:
    """A page of a superuser, in a service with one object of every kind."""
    World().grow(1)
    staff = make_staff(superuser=True)
    staff.set_password(PASSWORD)
    staff.save()
    page = chromium.new_page(base_url=live.base_url, viewport={"width": 1280, "height": 720})
    page.on("console", record_error)
    page.on("pageerror", lambda error: ERRORS.append(str(error)))
    ERRORS.clear()
    sign_in(page, staff.username)
    return page


ERRORS: list[str] = []


def record_error(message: ConsoleMessage) -> None:
    if message.type in ("error", "warning"):
        ERRORS.append(message.text)


def visit(page: Page, address: str) -> None:
    """Opens a page, again if the network interfaces of the machine changed meanwhile: containers of
    other tests do that, and the browser then gives up its requests."""
    _open(page, address)
    if any("ERR_NETWORK_CHANGED" in error for error in ERRORS):
        ERRORS.clear()
        _open(page, address)
    assert ERRORS == [], address


def _open(page: Page, address: str) -> None:
    answer = page.goto(address)
    assert answer is not None, address
    assert answer.status == 200, address
    page.wait_for_load_state("networkidle")


def test_every_page_opens_without_errors(page: Page) -> None:
    for model in SECTIONS:
        visit(page, list_url(model))
        visit(page, url(model.objects.latest("pk")))
    for model in (Product, TopUpProduct):
        visit(page, list_url(model) + "add/")
    fulfilment, code = Fulfilment.objects.latest("pk"), VoucherCode.objects.latest("pk")
    for address in (
        reverse("admin:index"),
        reverse("admin:topups_fulfilment_dashboard"),
        reverse("system"),
        reverse("admin:topups_fulfilment_move", args=[fulfilment.pk, "reject"]),
        url(code).replace("change/", "reveal/"),
        reverse("admin:password_change"),
    ):
        visit(page, address)
    SecondFactor.objects.all().delete()
    visit(page, reverse("two_factor_enrol"))
    assert page.locator("img[alt^='QR code']").evaluate("image => image.naturalWidth") > 0


def test_chart_search_autocomplete_and_dark_colours_work(page: Page) -> None:
    visit(page, reverse("admin:topups_fulfilment_dashboard"))
    drawn = "Chart.getChart(document.querySelector('canvas.chart')).data.labels.length"
    assert page.evaluate(drawn) == 24

    # The search through all sections, an autocomplete field, and the dark colours.
    page.keyboard.press("Control+k")
    page.get_by_placeholder("Type to search").press_sequentially("Orders")
    expect(page.locator("#command-results")).to_contain_text("Orders")
    visit(page, list_url(Product) + "add/")
    page.locator(".select2-selection").first.click()
    expect(page.locator(".select2-results")).to_contain_text("Category")
    page.emulate_media(color_scheme="dark")
    visit(page, reverse("admin:index"))
    expect(page.locator("html")).to_have_class("dark")
    assert ERRORS == []


def test_control_policy_violations_are_refused_and_recorded(page: Page) -> None:
    """Control: the policy is in force, and violations are recorded as errors."""
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.injected = true";
            document.head.append(script);
        }"""
    )
    assert page.evaluate("window.injected") is None
    assert page.evaluate("fetch('https://elsewhere.example/').then(() => 1, () => 'refused')")
    page.wait_for_timeout(100)
    assert sum("Content Security Policy" in error for error in ERRORS) >= 2
