"""The System page: what is red, for whom, and what to do next."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.backoffice.staff_roles import StaffRole
from figures.sales_counting import count_sales
from operators.staff.roles import permissions_of
from operators.upkeep.models import Copy, CopyKind, Heartbeat, HeartbeatKind, ReconcileRun, RunState
from operators.upkeep.monitoring import gauges, system_lines, system_page
from tests.factories import Merchant, buy_topup, make_product
from tests.metrics.test_gauges_of_the_service import age
from tests.operators.back_office import make_staff, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

PAGE = "/admin/system/"
LINK = 'href="/admin/system/"'


@pytest.fixture(autouse=True)
def _read_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test reads its own gauges."""
    monkeypatch.setattr(system_page, "reader", gauges.Reader())


@pytest.fixture
def healthy(settings: Any) -> None:
    settings.TELEGRAM_BOT_TOKEN = ""
    for kind in HeartbeatKind:
        Heartbeat.objects.create(kind=kind, host="one")
    now = timezone.now()
    ReconcileRun.objects.create(state=RunState.CLEAN, started_at=now, finished_at=now)
    Copy.objects.bulk_create([Copy(kind=kind, host="db1") for kind in CopyKind])


def shown(browser: Client, page: str = PAGE) -> str:
    """The text of the page, without tags."""
    answer = browser.get(page)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_all_is_well(healthy: None) -> None:
    text = shown(signed_in())

    assert "All is well." in text
    assert "Telegram bot" not in text  # no token is set, so there is none
    assert "voucher_refunds_due" in text


def test_what_is_red_comes_first_and_says_what_to_do(healthy: None, merchant: Merchant) -> None:
    Heartbeat.objects.filter(kind=HeartbeatKind.WORKER).delete()
    buy_topup(merchant)
    age("topups_fulfilment", "created_at", 700)
    browser = signed_in()

    text = shown(browser)

    assert "Red: 1 of" in text
    worker, desk = (
        text.index("Worker last seen never act now"),
        text.index("nobody has claimed 11 min"),
    )
    assert worker < desk < text.index("Scheduler")
    assert "Start a worker on at least one host" in text
    assert text.count("Step by step: docs/operate/runbooks/worker-missing.md") == 1
    assert "Claim orders at the desk" in text
    page = browser.get(f"{PAGE}now/").content.decode()
    assert 'href="/admin/topups/fulfilment/"' in page


def test_before_the_first_reconcile_the_age_is_that_of_the_installation(
    healthy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    age("upkeep_reconcilerun", "started_at", 7200)
    assert "none yet" not in shown(signed_in())
    ReconcileRun.objects.all().delete()
    monkeypatch.setattr(system_page, "reader", gauges.Reader())

    text = shown(signed_in())

    assert re.search(r"Last complete reconcile none yet; installed [\w .]+ ago", text)


def test_the_shelf_that_runs_out_is_named(healthy: None, merchant: Merchant) -> None:
    product = make_product(codes=10, price="0.10", name="Card")
    merchant.buy(product_id=product.pk, quantity=9)
    count_sales()

    assert "first shelf is sold out 0.1 days (Card) act now" in shown(signed_in())


def test_people_see_the_lines_of_what_they_may_view(healthy: None) -> None:
    operator = shown(signed_in(make_staff(*permissions_of(StaffRole.OPERATOR))))
    manager = shown(signed_in(make_staff(*permissions_of(StaffRole.ADMINISTRATOR))))
    nobody = signed_in(make_staff("audit.view_auditentry"))

    assert "nobody has claimed" in operator
    assert "Worker" not in operator
    assert "voucher_refunds_due" not in operator
    assert "Worker" in manager
    assert "nobody has claimed" not in manager
    assert "voucher_refunds_due" in manager
    for page in (PAGE, f"{PAGE}now/"):
        assert nobody.get(page).status_code == 403
        assert Client().get(page).status_code == 302
    assert LINK not in nobody.get("/admin/").content.decode()
    assert LINK in signed_in().get("/admin/").content.decode()


def test_the_part_that_renews_itself_is_a_part(healthy: None) -> None:
    part = signed_in().get(f"{PAGE}now/").content.decode()

    assert "<html" not in part
    assert "All is well." in part


def test_what_cannot_be_read_is_not_shown_as_well(
    healthy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gauges, "GAUGES", gauges.GAUGES[:1])

    text = shown(signed_in())

    assert "Not known: " in text
    assert "Worker last seen not known" in text


def test_a_copy_never_seen_outside_is_red_once_another_was(
    healthy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    Copy.objects.filter(kind=CopyKind.BACKUP).delete()
    text = shown(signed_in())
    assert "Red: 1 of" in text
    assert "Last backup never act now" in text

    Copy.objects.all().delete()
    monkeypatch.setattr(system_page, "reader", gauges.Reader())
    text = shown(signed_in())
    assert "All that runs is well. Not set up yet: 4 of" in text
    assert "Last backup never not set up yet Needed before you sell with real money" in text
    assert "run deploy/backup/check-files with it" in text


def test_a_shop_that_sells_without_copies_is_red(
    healthy: None, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    Copy.objects.all().delete()
    buy_topup(merchant)
    assert "Last backup never not set up yet" in shown(signed_in()), "the first order is new"

    age("orders_order", "created_at", 91 * 86_400)
    assert "Last backup never not set up yet" in shown(signed_in()), "the service is new"

    monkeypatch.setattr(system_lines, "SET_UP_WITHIN", timedelta(0))

    text = shown(signed_in())
    assert "Red: 4 of" in text
    assert "Last backup never act now" in text


def test_the_age_of_the_shop_is_read_once(healthy: None, merchant: Merchant) -> None:
    Copy.objects.all().delete()
    buy_topup(merchant)
    browser = signed_in()
    with CaptureQueriesContext(connection) as queries:
        assert "Not set up yet: 4 of" in shown(browser)
    assert sum('ORDER BY "django_migrations"' in query["sql"] for query in queries) == 1


def test_technical_lines_are_folded_while_they_are_good(
    healthy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert text_behind_details("Oldest transaction id")

    worse = [replace(one, amber=-2, red=-1) for one in system_lines.COMPONENTS if one.technical]
    others = [one for one in system_lines.COMPONENTS if not one.technical]
    monkeypatch.setattr(system_lines, "COMPONENTS", worse + others)
    assert not text_behind_details("Oldest transaction id")


def text_behind_details(text: str) -> bool:
    part = signed_in().get(f"{PAGE}now/").content.decode()
    before, _details, after = part.partition('class="system-folded"')
    return text in after and text not in before


def test_a_lost_cache_is_red(healthy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(key: str) -> None:
        raise ConnectionError

    browser = signed_in()
    monkeypatch.setattr(cache, "get", fail)

    assert "Cache does not answer act now" in shown(browser, f"{PAGE}now/")
