"""People choose the language of pages and emails. What programs read stays in English."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import CommonPasswordValidator
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from accounts.models import Preferences
from audit.models import AuditAction, AuditEntry
from figures.models import ExchangeRate
from merchants.email.outbox import email_members
from merchants.email.sending import sweep_emails
from merchants.models import Membership, Role
from orders.models import Order
from tests.factories import Merchant, make_product
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import form_of, signed_in, url

pytestmark = pytest.mark.django_db

GERMAN = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.8"}


@pytest.fixture
def member(merchant: Merchant) -> Membership:
    return make_member(merchant.client.account, role=Role.OWNER)


def choose(browser: Client, page: str, language: str, **options: Any) -> Any:
    return browser.post(page, {"time_zone": "UTC", "language": language}, **options)


@pytest.mark.parametrize("path", ["/", "/merchant/sign-in/", "/merchant/password/forgotten/"])
def test_a_guest_chooses_the_language_and_keeps_the_rest_of_the_address(path: str) -> None:
    browser = Client()
    page = browser.get(f"{path}?next=/merchant/wallet/").text
    assert (
        '<a href="?next=%2Fmerchant%2Fwallet%2F&amp;language=de" lang="de" hreflang="de">' in page
    )

    assert '<html lang="de">' in browser.get(f"{path}?language=de").text

    assert '<html lang="de">' in browser.get("/merchant/sign-in/").text
    assert '<html lang="de">' in browser.get(f"{path}?language=xx").text


def test_pages_before_the_sign_in_follow_the_browser(client: Client) -> None:
    german = client.get("/merchant/sign-in/", headers=GERMAN)
    assert "Anmelden" in german.text
    assert '<html lang="de">' in german.text
    assert german["Content-Language"] == "de"
    assert "Accept-Language" in german["Vary"]
    assert "Dokumentation" in client.get("/", headers=GERMAN).text
    for other in ({}, {"Accept-Language": "fr"}):
        english = client.get("/merchant/sign-in/", headers=other)
        assert "Sign in" in english.text
        assert '<html lang="en">' in english.text


def test_sentences_of_django_are_right_in_german() -> None:
    with override("de"):
        form = SetPasswordForm(User())
        assert "dasselbe Passwort" in form.fields["new_password2"].help_text
        assert "zu viele andere" in CommonPasswordValidator().get_help_text()


def test_a_choice_wins_over_the_browser(member: Membership) -> None:
    browser, page = browser_of(member), reverse("merchants:time_zone")
    assert "Übersicht" in browser.get("/merchant/", headers=GERMAN).text
    assert choose(browser, page, "de").status_code == 302
    shown = browser.get("/merchant/profile/").text
    assert "Zeiten werden jetzt in UTC angezeigt." in shown
    assert "Übersicht" in shown
    assert "Übersicht" in browser_of(member).get("/merchant/").text  # in a new session, too
    choose(browser, page, "en")
    assert "Overview" in browser.get("/merchant/", headers=GERMAN).text
    choose(browser, page, "")
    assert "Übersicht" in browser.get("/merchant/", headers=GERMAN).text


def test_staff_choose_their_language_beside_their_time_zone(client: Client) -> None:
    sign_in = client.get("/admin/login/", headers=GERMAN)
    assert '<html lang="de"' in sign_in.text
    assert sign_in["Content-Language"] == "de"
    assert '<html lang="en"' in client.get("/admin/login/").text
    browser, page = signed_in(), reverse("time_zone")
    assert choose(browser, page, "de").status_code == 302
    first = browser.get("/admin/")
    assert "Zeiten werden jetzt in UTC angezeigt." in first.text
    assert '<html lang="de"' in first.text
    assert '<html lang="de"' in browser.get("/admin/nowhere/").text
    assert "Heute" in browser.get(reverse("admin:jsi18n")).text
    assert '<html lang="de">' in browser.get(reverse("docs:start")).text
    choose(browser, page, "en")
    assert '<html lang="en"' in browser.get("/admin/", headers=GERMAN).text


def test_staff_who_read_german_see_german_figures_and_may_type_them(
    merchant: Merchant,
) -> None:
    assert merchant.buy(product_id=make_product(codes=1).pk, quantity=1).status_code == 201
    order, browser = Order.objects.latest("pk"), signed_in()
    choose(browser, reverse("time_zone"), "de")
    page = browser.get(url(order)).text
    assert f"{order.created_at:%d.%m.%Y %H:%M:%S}" in page
    assert "9,99 USD" in page

    rate = {"currency": "EUR", "into": "USD", "day": "2026-11-25", "rate": "1.234,56"}
    assert browser.post(reverse("admin:figures_exchangerate_add"), rate).status_code == 302
    stored = ExchangeRate.objects.get()
    assert stored.rate == Decimal("1234.56")
    shown = browser.get(url(stored)).text
    assert 'value="1234,56' in shown
    assert 'value="2026-11-25"' in shown


def test_what_staff_save_is_recorded_in_english(db: None) -> None:
    """Also the names of rows below the row that was saved."""
    product, browser = make_product(), signed_in()
    choose(browser, reverse("time_zone"), "de")
    form = form_of(browser, url(product))
    form |= {"variations-TOTAL_FORMS": "1", "variations-0-name": "Large"}
    assert browser.post(url(product), form).status_code == 302
    entry = AuditEntry.objects.latest("pk")
    assert any(name.startswith("variation ") for name in entry.changes)


def test_the_trail_is_in_english(member: Membership) -> None:
    browser, page = browser_of(member), reverse("merchants:time_zone")
    choose(browser, page, "de")
    browser.post(page, {"time_zone": "Asia/Tokyo", "language": "de"})
    entry = AuditEntry.objects.filter(action=AuditAction.USER_CHANGED).latest("pk")
    assert entry.note == "Time zone: Asia/Tokyo, language: de"


def test_an_unknown_language_is_refused(member: Membership) -> None:
    browser = browser_of(member)
    assert choose(browser, reverse("merchants:time_zone"), "fr").status_code == 200
    assert not Preferences.objects.exists()


def test_a_language_that_is_no_longer_known_is_that_of_the_browser(member: Membership) -> None:
    browser = browser_of(member)
    session = browser.session
    session["language"] = "xx"
    session.save()
    assert "Overview" in browser.get("/merchant/").text


def test_the_api_and_files_are_in_english(merchant: Merchant, member: Membership) -> None:
    assert merchant.buy(product_id=make_product(codes=1).pk, quantity=1).status_code == 201
    refused = merchant.post("{}", key="x", **GERMAN).json()["error"]
    assert refused == merchant.post("{}", key="x").json()["error"]
    assert refused["message"].startswith("The request is not valid")
    browser = browser_of(member)
    choose(browser, reverse("merchants:time_zone"), "de")
    for name in ("/merchant/orders/orders.csv", "/merchant/wallet/statement.csv"):
        answer: Any = browser.get(name)
        parts = answer.streaming_content if answer.streaming else [answer.content]
        rows = b"".join(parts).decode().splitlines()
        assert len(rows) > 1
        assert "currency" in rows[0]
        assert any("purchase" in row or "completed" in row for row in rows)
    program = browser.get(reverse("docs:snippet", args=["buy.py"]), headers=GERMAN)
    assert program["Content-Language"] == "en"
    assert program.text == browser.get(reverse("docs:snippet", args=["buy.py"])).text
    document = browser.get("/api/v1/openapi.json", headers=GERMAN).json()
    assert document == browser.get("/api/v1/openapi.json").json()


def test_an_email_is_in_the_language_of_its_reader(member: Membership) -> None:
    other = make_member(member.account, role=Role.OWNER)
    choose(browser_of(member), reverse("merchants:time_zone"), "de")
    mail.outbox.clear()
    email_members(
        account=member.account, change="API key issued", actor=other.user, facts={"Key": "ab12"}
    )
    sweep_emails()
    german, english = (
        next(one for one in mail.outbox if one.to == [person.user.email])
        for person in (member, other)
    )
    assert german.subject == f"API-Schlüssel ausgestellt: {member.account}"
    assert f"API-Schlüssel ausgestellt von {other.user}." in german.body
    assert "Schlüssel: ab12" in german.body
    assert english.subject == f"API key issued: {member.account}"
    assert f"API key issued by {other.user}." in english.body
