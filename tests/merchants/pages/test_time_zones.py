"""People read times in their own zone, on both sites and in files. The API stays in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Preferences
from accounts.preferences.time_zones import IN_SESSION, zone_names
from audit.models import AuditAction, AuditEntry
from merchants.email.outbox import write_email
from merchants.email.sending import sweep_emails
from merchants.frame.periods import PeriodForm
from merchants.models import EmailKind, Membership
from orders.models import Order
from tests.factories import Merchant, make_product
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours
from tests.operators.back_office import list_url, make_staff, signed_in, url

pytestmark = pytest.mark.django_db

PAGE = "/merchant/profile/time-zone/"
TOKYO = "Asia/Tokyo"  # nine hours ahead, without summer time


def body(answer: Any) -> str:
    parts = answer.streaming_content if answer.streaming else [answer.content]
    return b"".join(parts).decode()


@pytest.fixture
def order(merchant: Merchant) -> Order:
    answer = merchant.buy(product_id=make_product(codes=1).pk, quantity=1)
    assert answer.status_code == 201
    return ours(Order).get()


@pytest.fixture
def member(merchant: Merchant) -> Membership:
    return make_member(merchant.client.account)


def choose(browser: Client, name: str = TOKYO, page: str = PAGE) -> Any:
    return browser.post(page, {"time_zone": name})


def in_tokyo(moment: datetime, form: str = "%Y-%m-%d %H:%M") -> str:
    return f"{moment + timedelta(hours=9):{form}}"


def test_pages_and_files_of_a_member_use_their_zone(order: Order, member: Membership) -> None:
    browser, other = browser_of(member), browser_of(make_member(member.account))
    assert choose(browser).status_code == 302

    page = body(browser.get("/merchant/orders/"))
    assert in_tokyo(order.created_at) in page
    assert f"Times are {TOKYO}." in page
    assert f"From ({TOKYO})" in page
    for file in ("/merchant/orders/orders.csv", "/merchant/wallet/statement.csv"):
        text = body(browser.get(file))
        assert "time" in text.partition("\n")[0].split(",")
        assert f"{in_tokyo(order.created_at, '%Y-%m-%dT%H:%M')}" in text
        assert "+09:00" in text
    assert "+09:00" not in body(browser.get("/merchant/wallet/statement.json"))

    # Another person, in the same process, still reads UTC.
    page = body(other.get("/merchant/orders/"))
    assert "Times are UTC." in page
    assert f"{order.created_at:%Y-%m-%d %H:%M}" in page
    assert "+09:00" not in body(other.get("/merchant/orders/orders.csv"))


def test_the_api_stays_in_utc(merchant: Merchant, order: Order, member: Membership) -> None:
    choose(browser_of(member))
    shown = merchant.get(f"/orders/{order.reference}").json()["data"]["created_at"]
    assert datetime.fromisoformat(shown) == order.created_at
    assert shown.endswith(("Z", "+00:00"))


def test_staff_read_times_in_their_zone(order: Order) -> None:
    browser, page = signed_in(staff := make_staff(superuser=True)), reverse("time_zone")
    assert TOKYO in body(browser.get(page))
    choose(browser, page=page)

    assert f"times in {TOKYO}" in body(browser.get("/admin/"))
    shown = body(browser.get(url(order)))
    assert in_tokyo(order.created_at, "%H:%M") in shown
    assert f"Times are {TOKYO}." in body(browser.get(list_url(Order)))
    trail = body(browser.get(reverse("audit_trail_file")))
    assert "+09:00" in trail
    entry = AuditEntry.objects.filter(action=AuditAction.USER_CHANGED).latest("pk")
    assert (entry.actor, entry.note) == (staff, f"Time zone: {TOKYO}")


def test_a_new_session_uses_the_zone(member: Membership) -> None:
    choose(browser_of(member))
    assert browser_of(member).session[IN_SESSION] == TOKYO


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "Europe/Berlin\x00"])
def test_an_unknown_zone_is_refused(name: str, member: Membership) -> None:
    assert choose(browser_of(member), name).status_code == 200
    assert not Preferences.objects.exists()


def test_a_zone_that_is_no_longer_known_is_read_as_utc(order: Order, member: Membership) -> None:
    browser = browser_of(member)
    session = browser.session
    session[IN_SESSION] = "Mars/Olympus"
    session.save()
    assert "Times are UTC." in body(browser.get("/merchant/orders/"))


def test_a_period_has_the_days_of_the_zone() -> None:
    with timezone.override("Europe/Berlin"):  # on this day the clock goes forward
        form = PeriodForm({"since": "2026-03-29", "until": "2026-03-29"})
        assert form.is_valid()
        assert form.begins == datetime(2026, 3, 28, 23, tzinfo=UTC)
        assert form.ends == datetime(2026, 3, 29, 22, tzinfo=UTC)


def test_an_email_is_written_in_the_zone_of_its_reader(
    member: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    zones = []

    def render(*arguments: Any) -> str:
        zones.append(timezone.get_current_timezone_name())
        return "Subject\n\nText"

    monkeypatch.setattr("merchants.email.sending.render_to_string", render)
    choose(browser_of(member))
    for to in (member.user.email, "nobody@shop.example"):
        write_email(kind=EmailKind.CHANGE, to=to, facts={"change": "x", "account": "y"})
    sweep_emails()
    assert sorted(zones) == [TOKYO, TOKYO, "UTC", "UTC"], "a text and a page for each"


def test_places_can_be_chosen() -> None:
    assert {"UTC", TOKYO, "Europe/Berlin", "Africa/Cairo"} <= set(zone_names())
    assert not [name for name in zone_names() if name.startswith("Etc/")]
