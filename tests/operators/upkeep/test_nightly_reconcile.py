"""`reconcile` runs once a night, and staff hear of what it found."""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.core import mail
from django.core.exceptions import ObjectDoesNotExist
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from core.backoffice.staff_roles import StaffRole
from core.inputs import InputProblem
from idempotency.models import IdempotencyRecord
from merchants.email.sending import sweep_emails
from merchants.models import Email
from operators.upkeep import nightly_reconcile
from operators.upkeep.models import ReconcileRun, RunState
from operators.upkeep.nightly_reconcile import (
    ATTEMPTS,
    LIMIT,
    OVERDUE_AFTER,
    Plan,
    ask_for_run,
    is_overdue,
    plan_run,
    run_if_asked,
    run_if_due,
)
from operators.upkeep.tasks import reconcile_nightly, reconcile_now
from tests.concurrency.racing import execute, race
from tests.factories import make_merchant
from tests.operators.back_office import list_url, make_staff, signed_in, url
from tests.telegram.announcing import Place, operators_chat
from tests.telegram.fake_bot_api.faults import ERROR

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

FINDING = {"check": "a rule", "finding": "order <X> breaks it"}


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `reconcile` find one problem, in books that are healthy."""
    result = {"ok": False, "checked": {}, "findings": [FINDING], "warnings": []}
    monkeypatch.setattr(nightly_reconcile, "reconcile", lambda **options: result)


def age(run: ReconcileRun, by: timedelta) -> None:
    ReconcileRun.objects.filter(pk=run.pk).update(started_at=run.started_at - by)


def run_now() -> ReconcileRun:
    run = run_if_due()
    assert run is not None
    return run


def make_reader(email: str) -> None:
    reader = make_staff("upkeep.view_reconcilerun")
    reader.email = email
    reader.save()


def test_a_run_without_findings_is_recorded_and_not_reported() -> None:
    make_reader("finance@example.com")
    make_merchant()

    run = run_now()

    assert (run.state, run.findings, run.checked["wallets"]) == (RunState.CLEAN, [], 1)
    assert not Email.objects.exists()
    assert not run.telegram_due


def test_it_runs_once_a_night() -> None:
    first = run_now()
    assert run_if_due() is None

    age(first, timedelta(days=1))
    assert run_if_due() is not None


DAY = timedelta(days=1)


def nights(begin: datetime, number: int, monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans of the last nights, of a ledger that begins at `begin`. No run found anything."""
    monkeypatch.setattr(nightly_reconcile, "_first_entry", lambda: begin)
    plans = []
    for age in range(number, 0, -1):
        now = timezone.now() - age * DAY
        plans.append(plan_run(now))
        ReconcileRun.objects.create(
            state=RunState.CLEAN,
            started_at=now,
            finished_at=now,
            history_until=plans[-1].history_until,
        )
    return plans


@pytest.mark.parametrize("days", [1, 3, 8, 100, 731])
def test_a_week_of_runs_looks_at_every_day(days: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = timezone.now() - timedelta(days=days + 20)
    first, *plans = nights(begin, 20, monkeypatch)
    assert first.periods == ()
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    for week in (plans[last - 6 : last + 1] for last in range(6, len(plans))):
        # The first of these runs looks at all that is younger.
        since = week[0].periods[0].since or begin
        looked_at = {
            (period.since or midnight) + n * DAY
            for plan in week
            for period in plan.periods
            for n in range(((period.until or since) - (period.since or midnight)).days)
        }
        assert {midnight + n * DAY for n in range((since - midnight).days)} <= looked_at
        assert any(plan.weekly for plan in week)


def test_a_night_looks_at_the_rows_since_the_last_run_and_a_seventh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = timezone.now() - timedelta(days=703)
    *_, before, plan = nights(begin, 4, monkeypatch)
    recent, history = plan.periods
    assert recent.until is None
    assert timedelta(days=2) <= timezone.now() - (recent.since or begin) <= timedelta(days=3)
    assert history.since == before.history_until
    assert history.since
    assert history.until == history.since + timedelta(days=701 // 7 + 1)
    assert not plan.weekly


def test_the_first_seventh_has_rows_older_than_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as keys whose purchase was refused before the first deposit."""
    begin = timezone.now() - timedelta(days=99)
    record = IdempotencyRecord.objects.create(
        client=make_merchant().client, key="k", fingerprint=b"", started_at=begin
    )
    IdempotencyRecord.objects.filter(pk=record.pk).update(created_at=begin - 9 * DAY)

    _, first, second, *_ = nights(begin, 9, monkeypatch)

    table = IdempotencyRecord._meta.db_table
    slices = [plan.periods[1].condition("id", table) for plan in (first, second)]
    found = [IdempotencyRecord.objects.extra(where=[one]).exists() for one in slices]
    assert found == [True, False]


def test_after_findings_a_run_looks_at_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    nights(timezone.now() - timedelta(days=99), 3, monkeypatch)
    assert plan_run(timezone.now()).periods != ()
    newest = ReconcileRun.objects.latest("pk")
    ReconcileRun.objects.filter(pk=newest.pk).update(state=RunState.FINDINGS, findings=[FINDING])

    plan = plan_run(timezone.now())

    assert plan.periods == ()
    assert plan.weekly


def test_a_failed_run_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    nights(timezone.now() - timedelta(days=99), 3, monkeypatch)
    _, before, newest = ReconcileRun.objects.order_by("pk")
    ReconcileRun.objects.filter(pk=newest.pk).update(state=RunState.FAILED, failure="X")

    recent, history = plan_run(timezone.now()).periods

    assert recent.since
    assert recent.since.date() == before.started_at.astimezone(UTC).date()
    assert history.since == before.history_until


def test_a_run_keeps_how_far_it_came() -> None:
    make_merchant()
    first = run_now()
    assert first.history_until is not None
    age(first, DAY)

    second = run_now()

    assert second.state == RunState.CLEAN
    assert second.history_until == first.history_until
    assert "codes" in second.checked  # a young ledger has its whole history in each run


def test_damage_is_found_and_recorded() -> None:
    make_merchant()
    execute("SET session_replication_role = replica")
    execute("UPDATE wallets_wallet SET balance = balance + 1")
    execute("SET session_replication_role = origin")

    assert run_now().state == RunState.FINDINGS


def test_only_one_run_is_active_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_parallel_runs(monkeypatch) == 1


def test_control_without_the_unique_index_two_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index"
            " WHERE indexrelid = 'upkeep_run_one_at_a_time'::regclass"
        )
        (definition,) = cursor.fetchone()
        cursor.execute("DROP INDEX upkeep_run_one_at_a_time")
    try:
        assert count_parallel_runs(monkeypatch) == 2
    finally:
        ReconcileRun.objects.all().delete()
        execute(definition)


def count_parallel_runs(monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs that were made by two workers at once. A run waits up to two seconds for the other."""
    meeting = threading.Barrier(2)

    def slow_reconcile(**options: Any) -> dict[str, Any]:
        with suppress(threading.BrokenBarrierError):
            meeting.wait(2)
        return {"ok": True, "checked": {}, "findings": [], "warnings": []}

    monkeypatch.setattr(nightly_reconcile, "reconcile", slow_reconcile)
    return sum(run is not None for run in race([run_if_due, run_if_due]))


def test_a_killed_run_is_recorded_and_tried_again() -> None:
    killed = ReconcileRun.objects.create()
    assert run_if_due() is None  # it may still be running
    age(killed, LIMIT + timedelta(minutes=1))

    again = run_if_due()

    killed.refresh_from_db()
    assert killed.state == RunState.FAILED
    assert "worker ended" in killed.failure
    assert again is not None


def test_a_run_that_always_fails_is_tried_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**options: Any) -> None:
        raise ObjectDoesNotExist

    monkeypatch.setattr(nightly_reconcile, "reconcile", fail)

    runs = [run_if_due() for _ in range(ATTEMPTS + 1)]

    assert [run and run.failure for run in runs] == ["ObjectDoesNotExist"] * ATTEMPTS + [None]


@pytest.mark.usefixtures("findings")
def test_staff_who_may_see_it_get_an_email(settings: Any) -> None:
    settings.PUBLIC_URL = "https://api.example.com"
    make_reader("finance@example.com")
    other = make_staff("orders.view_order")
    other.email = "other@example.com"
    other.save()

    run = run_now()
    sweep_emails()

    (sent,) = mail.outbox
    assert sent.to == ["finance@example.com"]
    assert sent.subject == "The nightly reconcile found 1 problem in the books."
    assert "a rule: order <X> breaks it" in sent.body
    assert f"https://api.example.com{url(run)}" in sent.body


@pytest.mark.usefixtures("findings")
def test_the_log_has_the_findings(caplog: pytest.LogCaptureFixture) -> None:
    run_now()

    assert "reconcile_reported" in caplog.text
    assert "order <X> breaks it" in caplog.text


@pytest.mark.usefixtures("findings")
def test_the_operators_chat_receives_one_report(settings: Any) -> None:
    with operators_chat(settings) as place:
        reconcile_nightly()
        reconcile_nightly()

        (message,) = place.posted()
    assert "a rule: order <X> breaks it" in message.text


@pytest.mark.usefixtures("findings")
def test_a_failed_post_to_telegram_is_repeated(settings: Any) -> None:
    with operators_chat(settings) as place:
        place.api.fault("sendMessage", ERROR(500))
        reconcile_nightly()
        assert told(place) == 0
        reconcile_nightly()
        assert told(place) == 1
    assert not ReconcileRun.objects.filter(telegram_due=True).exists()


def told(place: Place) -> int:
    return len(place.posted())


@pytest.mark.usefixtures("findings")
def test_the_page_shows_the_runs_and_what_they_found() -> None:
    run = run_now()
    browser = signed_in(make_staff("upkeep.view_reconcilerun"))

    assert "Findings" in browser.get(list_url(ReconcileRun)).content.decode()
    page = browser.get(url(run)).content.decode()
    assert "order &lt;X&gt; breaks it" in page
    assert "found problems in the books" in browser.get("/admin/").content.decode()


def test_a_run_that_did_not_happen_is_visible() -> None:
    browser = signed_in(make_staff("upkeep.view_reconcilerun"))
    run = run_now()
    assert not is_overdue()
    assert "has not finished" not in browser.get("/admin/").content.decode()

    age(run, OVERDUE_AFTER)

    assert is_overdue()
    assert "has not finished" in browser.get("/admin/").content.decode()
    assert "No run has finished" in browser.get(list_url(ReconcileRun)).content.decode()


def test_a_new_installation_has_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_overdue()
    monkeypatch.setattr(nightly_reconcile, "OVERDUE_AFTER", timedelta())
    assert is_overdue()


def test_the_message_of_the_task_is_acknowledged_before_the_run() -> None:
    """It may take longer than the broker's visibility timeout, which would start a second one."""
    assert reconcile_nightly.acks_late is False
    limit = reconcile_nightly.time_limit
    assert limit is not None
    assert settings.CELERY_TASK_TIME_LIMIT < limit < LIMIT.total_seconds()


def test_a_run_of_the_future_is_followed_by_one_of_tonight() -> None:
    """The clock of the database was ten days ahead during one run."""
    age(run_now(), timedelta(days=-10))

    assert run_now().state == RunState.CLEAN
    assert run_if_due() is None


def test_a_run_of_the_future_does_not_hide_that_runs_are_missing() -> None:
    age(run_now(), OVERDUE_AFTER + timedelta(hours=1))
    ahead = timezone.now() + timedelta(days=10)
    ReconcileRun.objects.create(state=RunState.CLEAN, started_at=ahead, finished_at=ahead)

    assert is_overdue()


def test_a_run_that_began_in_the_future_blocks_no_other() -> None:
    killed = ReconcileRun.objects.create()
    age(killed, timedelta(days=-10))

    assert run_now().state == RunState.CLEAN
    killed.refresh_from_db()
    assert killed.state == RunState.FAILED


def test_the_clock_of_a_worker_starts_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    run_now()
    ahead = timezone.now() + timedelta(days=10)
    monkeypatch.setattr(timezone, "now", lambda: ahead)

    assert run_if_due() is None
    assert not is_overdue()


def test_a_person_asks_for_a_run_and_sees_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    finance = make_staff()
    finance.groups.add(Group.objects.get(name=StaffRole.FINANCE))
    browser, asks = signed_in(finance), reverse("admin:upkeep_reconcilerun_run_now")
    assert "Run now" in browser.get(list_url(ReconcileRun)).content.decode()
    assert browser.get(asks).status_code == 200
    assert not ReconcileRun.objects.exists()

    page = browser.post(asks, follow=True).content.decode()
    run = ReconcileRun.objects.get()
    assert "waits for a worker" in page
    assert AuditEntry.objects.get(action=AuditAction.ADDED).actor == finance
    progress, seen = reverse("admin:upkeep_reconcilerun_progress", args=[run.pk]), []

    def look(*, report: Callable[[str], None], **options: Any) -> dict[str, Any]:
        report("every order has its debit")
        seen.append(browser.get(progress).content.decode())
        return {"ok": True, "checked": {}, "findings": [], "warnings": []}

    monkeypatch.setattr(nightly_reconcile, "reconcile", look)
    reconcile_now()

    run.refresh_from_db()
    assert (run.state, run.asked_by) == (RunState.CLEAN, finance.username)
    assert "Check 1 of " in seen[0]
    assert "every order has its debit" in seen[0]
    assert "data-ended" in browser.get(progress).content.decode()
    assert f"{finance} asked" in browser.get(url(run)).content.decode()


def test_a_requested_run_is_a_real_one() -> None:
    make_merchant()
    asked = ask_for_run(actor=make_staff())
    assert run_if_asked() == asked
    asked.refresh_from_db()
    assert (asked.state, asked.findings, asked.checked["wallets"]) == (RunState.CLEAN, [], 1)
    assert asked.progress.startswith("Check ")
    assert run_if_due() is None  # it counts as tonight's


def test_a_lost_message_only_delays_a_requested_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ask_for_run(actor=make_staff())
    assert run_if_due() is None  # it waits its turn
    reconcile_nightly()
    asked.refresh_from_db()
    assert asked.state == RunState.CLEAN
    assert run_if_asked() is None


def test_two_people_who_ask_at_once_get_one_run() -> None:
    people = [make_staff(), make_staff()]

    def ask(person: Any) -> bool:
        with suppress(InputProblem):
            return bool(ask_for_run(actor=person))
        return False

    assert sorted(race([partial(ask, person) for person in people])) == [False, True]
    assert ReconcileRun.objects.count() == 1


def test_two_workers_begin_a_requested_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ask_for_run(actor=make_staff())
    result = {"ok": True, "checked": {}, "findings": [], "warnings": []}
    monkeypatch.setattr(nightly_reconcile, "reconcile", lambda **options: result)
    assert sum(run is not None for run in race([run_if_asked, run_if_asked])) == 1


def test_failed_requests_do_not_use_up_the_attempts_of_the_night(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(**options: Any) -> None:
        raise ObjectDoesNotExist

    with monkeypatch.context() as patch:
        patch.setattr(nightly_reconcile, "reconcile", fail)
        for _ in range(ATTEMPTS):
            asked = ask_for_run(actor=make_staff())
            run_if_asked()
            asked.refresh_from_db()
            assert asked.failure == "ObjectDoesNotExist"
    assert run_now().state == RunState.CLEAN
