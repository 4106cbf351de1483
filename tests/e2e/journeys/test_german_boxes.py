"""What scripts and the theme write on pages of the back office is in the reader's language."""

import pytest
from django.contrib.auth.models import Group
from playwright.sync_api import Browser, expect

from operators.warnings.raising import rules
from tests.browsing import take_session
from tests.live import LiveServer
from tests.operators.back_office import signed_in, url

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone"),
]


def test_boxes_that_choose_rows_and_delete_are_german(live: LiveServer, chromium: Browser) -> None:
    page = chromium.new_page(base_url=live.base_url, locale="de-DE")
    take_session(page, live, signed_in())

    page.goto(url(next(iter(rules().values()))))
    boxes = page.locator(".selector").first
    expect(boxes).to_contain_text("Alle Rollen auswählen")
    for text in ("Choose", "Remove", "click"):
        expect(boxes).not_to_contain_text(text)

    page.goto(url(Group.objects.create(name="Tellers")))
    expect(page.locator("#main a[href$='/delete/']")).to_have_text("Rolle löschen")
