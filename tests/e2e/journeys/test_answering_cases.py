"""Staff take over a case, write a note, answer and decide: in a browser, on desktop and phone."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User, update_last_login
from playwright.sync_api import Browser, Page, ViewportSize, expect

from cases.models import Case
from cases.services import answer_case
from core.backoffice.staff_roles import StaffRole
from merchants.models import Membership
from tests.axe import Inspector
from tests.browsing import save_screenshot, take_session
from tests.cases.complaints import make_complaint
from tests.keyboard import unreached
from tests.live import LiveServer
from tests.merchants.people import browser_of
from tests.operators.back_office import list_url, signed_in, staff_with

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 800},
    "phone": {"width": 390, "height": 844},
}
staff_pages, member_pages = Inspector(menu="#nav-sidebar"), Inspector(menu="nav")


def problems_of(page: Page, inspector: Inspector) -> list[Any]:
    """What axe finds, what Tab does not reach, and whether the page is too wide."""
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    found = [one["id"] for one in inspector.violations(page, "light")]
    return [*found, *unreached(page), *(["too wide"] if wide else [])]


@pytest.mark.parametrize("size", SIZES)
def test_a_case_is_taken_noted_answered_and_rejected(
    live: LiveServer, chromium: Browser, size: str
) -> None:
    complaint = make_complaint()
    case, support = complaint.open(0), staff_with(StaffRole.SUPPORT)
    update_last_login(User, support)  # an invited person has no cases before the first sign-in
    page = chromium.new_page(base_url=live.base_url, viewport=SIZES[size])
    take_session(page, live, signed_in(support))

    page.goto(list_url(Case, state="waits-for-us"))
    page.get_by_role("link", name=re.compile("Nobody's")).click()
    with page.expect_navigation():
        page.get_by_role("link", name=str(case), exact=True).click()
    page.get_by_role("button", name="Assign to me").click()
    expect(page.get_by_label("Assigned to")).to_have_value(str(support.pk))
    expect(page.get_by_role("button", name="Assign to me")).to_have_count(0)

    note, reply = page.get_by_label("Note"), page.locator("textarea[name=text]")
    expect(note).to_be_hidden()
    page.get_by_role("button", name="Internal note").click()
    expect(reply).to_be_hidden()
    note.fill("The supplier knows of it.")
    page.get_by_role("button", name="Add note").click()
    expect(page.locator(".talk-note")).to_contain_text("The supplier knows of it.")

    case.refresh_from_db()
    answer_case(case=case, version=case.version, actor=complaint.member, text="Are you there?")
    reply.fill("We ask the supplier.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".talk-merchant").last).to_contain_text("Are you there?")
    expect(reply).to_have_value("We ask the supplier.")
    save_screenshot(page, f"case {size}", whole=True)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".talk-staff")).to_contain_text("We ask the supplier.")
    assert problems_of(page, staff_pages) == []

    page.get_by_role("link", name="Close without credit…").click()
    page.fill("textarea[name=text]", "The code works.")
    page.get_by_role("button", name="Close without credit").click()
    expect(page.locator(".case-top")).to_contain_text("Closed without credit")
    expect(page.locator(".talk-staff").last).to_contain_text("The code works.")
    expect(reply).to_have_count(0)
    assert problems_of(page, staff_pages) == []

    page = chromium.new_page(base_url=live.base_url, viewport=SIZES[size])
    take_session(page, live, browser_of(Membership.objects.get(user=complaint.member)))
    page.goto(f"/merchant/cases/{case.pk}/")
    expect(page.locator(".theirs").last).to_contain_text("The code works.")
    expect(page.locator("main")).not_to_contain_text("The supplier knows of it.")
    assert problems_of(page, member_pages) == []
