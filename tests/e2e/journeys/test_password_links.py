"""A member of staff opens the link of an email in a real browser, and sets a password."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from merchants.email.secret_links import sign_reset
from tests.axe import axe
from tests.keyboard import unreached
from tests.live import LiveServer
from tests.operators.back_office import make_staff

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PASSWORD = "a long enough phrase"


def check(page: Page) -> None:
    """Fails for what axe finds and Tab misses, on a phone and a desktop, in light and dark."""
    page.wait_for_load_state("networkidle")
    for colours, width in (("light", 390), ("dark", 1280)):
        page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 800})
        assert axe.run(page).response["violations"] == [], (page.url, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert unreached(page) == [], (page.url, width)


@pytest.fixture
def nina(transactional_db: None) -> User:
    return make_staff("wallets.move_money")


def test_a_link_leads_to_a_password_and_then_to_a_second_factor(
    nina: User, live: LiveServer, chromium: Browser
) -> None:
    page = chromium.new_page(base_url=live.base_url)
    page.goto("/admin/login/")
    page.get_by_role("link", name="Forgot your password?").click()
    check(page)

    page.goto("/admin/new-password/")
    check(page)
    link = f"/admin/new-password/#{sign_reset(nina)}"
    page.goto("about:blank")
    page.goto(link)
    first = page.locator("[name=new_password1]")
    expect(first).to_be_visible()
    assert "#" not in page.url
    check(page)
    first.fill(PASSWORD)
    page.fill("[name=new_password2]", PASSWORD)
    page.get_by_role("button", name="Set password").click()
    page.wait_for_url("**/admin/two-factor/enrol/**")
    assert User.objects.get(pk=nina.pk).check_password(PASSWORD)

    # The link worked once.
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("body")).to_contain_text("This link is not valid")
    expect(page.locator("[name=new_password1]")).to_have_count(0)
    check(page)
