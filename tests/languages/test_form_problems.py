"""German forms report mistakes in German."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.contrib.messages import get_messages
from django.urls import reverse
from django.utils.html import strip_tags

from operators.telegram.models import PlatformSettings
from operators.warnings.models import WarningRule
from operators.warnings.raising import rules
from tests.factories import make_account, make_batch, make_merchant, make_product, own_shelf
from tests.languages.test_german_pages import GERMAN, english_words
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import form_of, make_approval, make_case, signed_in, url
from wallets.models import BookingLimit, EntryKind

pytestmark = pytest.mark.django_db


def test_a_cost_without_a_currency_is_refused_in_german() -> None:
    batch = make_batch(own_shelf(make_product()))
    assert "Geben Sie Kosten von mindestens 0" in answer_to(batch, unit_cost="-1")
    assert "Verwenden Sie drei Großbuchstaben" in answer_to(batch, unit_cost="1", cost_currency="x")


def test_negative_limits_are_refused_in_german() -> None:
    group = Group.objects.create(name="Bookers")
    limit = BookingLimit.objects.create(group=group, kind=EntryKind.DEPOSIT, amount=Decimal(5))
    page = answer_to(limit, amount="-1", per_day="-1")
    assert "Geben Sie einen Betrag von mindestens 0 ein." in page
    assert "Die Summe eines Tages muss mindestens 0 sein." in page
    rules()
    page = answer_to(WarningRule.objects.earliest("pk"), limit="-1")
    assert "Geben Sie ein Limit von mindestens 0 ein." in page


def test_a_wrong_time_zone_is_refused_in_german() -> None:
    settings, _created = PlatformSettings.objects.get_or_create()
    assert "Das ist keine Zeitzone." in answer_to(settings, time_zone="nowhere")


def test_a_booking_above_the_balance_is_refused_in_german() -> None:
    payout = make_approval(make_account(balance="5"), amount="-20000", kind=EntryKind.PAYOUT)
    answer = signed_in().post(url(payout, "approve"), headers=GERMAN, follow=True)
    [message] = map(str, answer.context["messages"])
    assert message.startswith("Nichts wurde gebucht: Das Guthaben der Wallet reicht nicht")


def test_a_message_names_the_saved_row_in_german() -> None:
    batch = make_batch(own_shelf(make_product()), 2)
    assert f"„Charge {batch.pk}“" in message_after(batch, supplier="Valve")
    rules()
    rule = WarningRule.objects.earliest("pk")
    assert str(rule) not in message_after(rule, limit="7")


def message_after(row: Any, **changes: str) -> str:
    """The message to German staff who saved a row with these changes, as plain text."""
    browser = signed_in()
    data = {**form_of(browser, url(row)), **changes}
    answer = browser.post(url(row), data, headers=GERMAN)
    [message] = get_messages(answer.wsgi_request)
    return strip_tags(str(message))


def answer_to(row: Any, **changes: str) -> str:
    """The German page after the form of a row was sent with these changes."""
    browser = signed_in()
    data = {**form_of(browser, url(row)), **changes}
    page: str = browser.post(url(row), data, headers=GERMAN).text
    assert "_ist nicht erfüllt" not in page  # names a constraint of the database
    return page


def test_a_wrong_email_address_is_refused_politely() -> None:
    page = signed_in().post(reverse("staff_forgotten"), {"email": "x"}, headers=GERMAN).text
    assert "Gib " not in page
    assert "Geben Sie eine gültige E-Mail-Adresse ein." in page


@pytest.mark.parametrize("reference", ["!?", "a!", "x" * 65, "\u200b"])
def test_a_wrong_reference_is_refused_in_german(reference: str) -> None:
    browser, product = browser_of(make_member()), make_product()
    sent = {"product": product.pk, "reference": reference}
    page = browser.post(reverse("merchants:set_reference"), sent, headers=GERMAN, follow=True).text
    assert "Eine Referenz " in page
    assert english_words(page) == []


def test_the_name_of_a_case_is_in_german() -> None:
    merchant = make_merchant()
    order = merchant.buy(product_id=make_product(codes=1).pk, quantity=1).json()["data"]
    case = make_case(order["reference"])
    browser = browser_of(make_member(merchant.account))
    for page in ("", f"{case.pk}/"):
        text = browser.get(f"/merchant/cases/{page}", headers=GERMAN).text
        assert f"Fall {case.pk}" in text
        assert f"Case {case.pk}" not in text
    page = browser.get(f"/merchant/orders/{order['reference']}/", headers=GERMAN).text
    assert f"Fall {case.pk}" in page
