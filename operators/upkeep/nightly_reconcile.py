"""The runs of `reconcile`: nightly or on request, and the reports of findings to staff.

A night costs what its day cost: the run looks at the rows since the last complete run, and at a
seventh of the history (docs/decisions/0082-nightly-slices.md).

A task asks every ten minutes whether last night's run is missing, so a lost message, a restart or
an outage only delays it. It also begins runs that people asked for. Each run is a row, and the
database allows one that waits or runs.
"""

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS, IntegrityError, connections, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import F, Min, Q, QuerySet
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import translation
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from accounts.preferences.languages import language_of
from audit.models import AuditAction
from audit.services import record_action
from core.backoffice.periods import Period
from core.backoffice.staff import staff_who_may
from core.database.functions import database_now
from core.inputs import InputProblem
from core.queue import enqueue
from merchants.email.outbox import write_email
from merchants.models import EmailKind
from operators.telegram.chats import Target, platform_settings
from operators.upkeep.backoffice import RECONCILE_AGE
from operators.upkeep.models import PROGRESS_LENGTH, ReconcileRun, RunState
from operators.upkeep.reconcile import CHECKS, reconcile
from wallets.models import LedgerEntry

logger = structlog.get_logger(__name__)

LIMIT = timedelta(hours=3)  # the longest run
ATTEMPTS = 3  # per night
OVERDUE_AFTER = timedelta(seconds=RECONCILE_AGE.red)
KEPT_FOR = timedelta(days=90)
SLICES = 7  # nights in which the whole history is looked at again
MAY_SEE = "upkeep.view_reconcilerun"
MAY_RUN = "upkeep.run_reconcile"
LINES, LINE_LENGTH = 10, 300  # of an email or a message; the page shows all findings
UNFINISHED = gettext_noop("The worker ended before the run did.")  # stored in English
PROGRESS = re.compile(r"Check (\d+) of (\d+): (.+)")  # as it is stored
COMPLETE = Q(state__in=[RunState.CLEAN, RunState.FINDINGS])


def run_if_due() -> ReconcileRun | None:
    """Runs `reconcile` if last night's run is missing. Returns the run, or None.

    Safe to call at any time and at the same time: the database allows one running row. Times are
    those of the database. A run of the future does not count: the clock was ahead when it began.
    """
    now = database_now()
    _end_lost_runs(now)
    tonight = ReconcileRun.objects.filter(started_at__range=(_due_since(now), now))
    attempts = tonight.filter(asked_by="").count()
    if tonight.filter(COMPLETE).exists() or attempts >= ATTEMPTS:
        return None
    try:
        run = ReconcileRun.objects.create()
    except IntegrityError:  # another worker runs it
        return None
    ReconcileRun.objects.filter(started_at__lt=now - KEPT_FOR).delete()
    _carry_out(run, now)
    return run


def ask_for_run(*, actor: User) -> ReconcileRun:
    """Asks a worker for a run now. Raises InputProblem if one waits or runs already."""
    _end_lost_runs(database_now())
    try:
        with transaction.atomic():
            run = ReconcileRun.objects.create(asked_by=actor.get_username())
            record_action(actor=actor, action=AuditAction.ADDED, on=run, note="Reconcile requested")
    except IntegrityError:
        raise InputProblem(_("A run waits or is going on already. Wait for its end.")) from None
    enqueue("operators.upkeep.tasks.reconcile_now")
    return run


def run_if_asked() -> ReconcileRun | None:
    """Begins the run that a person asked for, if one waits. Safe to call at the same time."""
    waiting = ReconcileRun.objects.filter(state=RunState.RUNNING).exclude(asked_by="")
    run = waiting.filter(begun_at=None).first()
    if run is None or not waiting.filter(pk=run.pk, begun_at=None).update(begun_at=Now()):
        return None
    _carry_out(run, database_now())
    return run


def _carry_out(run: ReconcileRun, now: datetime) -> None:
    plan = plan_run(now)
    of = sum(plan.weekly or not check.weekly for check in CHECKS)
    made = 0
    # The checks read a snapshot, so another connection writes how far they are.
    with closing(connections[DEFAULT_DB_ALIAS].copy()) as beside:

        def report(check: str) -> None:
            nonlocal made
            made += 1
            words = f"Check {made} of {of}: {check}"[:PROGRESS_LENGTH]
            with beside.cursor() as cursor:
                cursor.execute(
                    "UPDATE upkeep_reconcilerun SET progress = %s WHERE id = %s", [words, run.pk]
                )

        try:
            result = reconcile(periods=plan.periods, weekly=plan.weekly, report=report)
        except Exception as error:
            logger.exception("reconcile_failed")
            _finish(run, RunState.FAILED, failure=type(error).__name__)
            return
    state = RunState.CLEAN if result["ok"] else RunState.FINDINGS
    run.checked, run.findings = result["checked"], result["findings"]
    run.warnings = result["warnings"]
    run.history_until = plan.history_until
    _finish(run, state)


@dataclass(frozen=True)
class Plan:
    """The scope of a run: all rows without periods. `weekly` adds checks that can only read all."""

    history_until: datetime
    periods: Sequence[Period] = ()
    weekly: bool = True


def plan_run(now: datetime) -> Plan:
    """The rows that are new since the last complete run, and one of SLICES parts of the history.

    The first run looks at everything, and so do the runs after one with findings: a finding stays
    until it is repaired.
    """
    begin = _midnight(_first_entry() or now)
    last = _complete_runs().first()
    if last is None or last.findings or last.history_until is None:
        return Plan(begin)
    since = _midnight(last.started_at)
    first = last.history_until if begin < last.history_until < since else begin
    days = (since - begin).days // SLICES + 1  # it grows by a day each night
    until = min(first + timedelta(days=days), since)
    # Some rows are older than the first entry of the ledger: the first slice has no beginning.
    history = [Period(None if first == begin else first, until)] if first < until else []
    at_end = until == since
    return Plan(begin if at_end else until, [Period(since), *history], weekly=first == begin)


def _first_entry() -> datetime | None:
    return LedgerEntry.objects.order_by("pk").values_list("created_at", flat=True).first()


def _midnight(moment: datetime) -> datetime:
    """The beginning of the day in UTC."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _complete_runs() -> QuerySet[ReconcileRun]:
    """The runs that were complete, the newest first. A run of the future does not count."""
    return ReconcileRun.objects.filter(COMPLETE, started_at__lte=Now()).order_by("-started_at")


def is_overdue() -> bool:
    """Whether no run has read everything for more than a day, or since the installation."""
    age, _findings = _last_complete_run()
    return age > OVERDUE_AFTER


def describe_problem() -> str:
    """A problem of the nightly runs in one line; empty when all is well."""
    age, findings = _last_complete_run()
    if age > OVERDUE_AFTER:
        return _("The nightly reconcile has not finished for more than a day")
    if findings:
        return _("The last reconcile found problems in the books")
    return ""


def tell_telegram() -> None:
    """Posts runs with findings in the operators' chat. A post that fails is repeated for a day."""
    due = ReconcileRun.objects.filter(telegram_due=True).order_by("pk")
    for run in due:
        if _tell(run):
            ReconcileRun.objects.filter(pk=run.pk).update(telegram_due=False)


def report_lines(run: ReconcileRun) -> list[str]:
    """The run in a few lines: what happened, then the first findings, which are in English."""
    if run.state == RunState.FAILED:
        return [
            _("%(run)s did not finish: %(cause)s") % {"run": _name(run), "cause": _(run.failure)}
        ]
    problems = len(run.findings)
    words = ngettext(
        "%(run)s found %(count)s problem in the books.",
        "%(run)s found %(count)s problems in the books.",
        problems,
    )
    lines = [words % {"run": _name(run), "count": problems}]
    lines += [f"{_(one['check'])}: {one['finding']}"[:LINE_LENGTH] for one in run.findings[:LINES]]
    if len(run.findings) > LINES:
        lines.append(_("… and %(count)s more.") % {"count": len(run.findings) - LINES})
    return lines


def describe_progress(run: ReconcileRun) -> str:
    """How far a running run is, in the reader's language; empty before its first check."""
    match = PROGRESS.fullmatch(run.progress)
    if match is None:
        return run.progress
    made, of, check = match.groups()
    return _("Check %(made)s of %(of)s: %(check)s") % {"made": made, "of": of, "check": _(check)}


def _name(run: ReconcileRun) -> str:
    return _("The requested reconcile") if run.asked_by else _("The nightly reconcile")


def _due_since(now: datetime) -> datetime:
    today = now.replace(hour=settings.RECONCILE_HOUR, minute=0, second=0, microsecond=0)
    return today if today <= now else today - timedelta(days=1)


def _last_complete_run() -> tuple[timedelta, list[Any]]:
    """The age of the newest complete run, and its findings; without one, the age of the
    installation."""
    last: tuple[timedelta, list[Any]] | None = (
        _complete_runs().values_list(Now() - F("started_at"), "findings").first()
    )
    if last is not None:
        return last
    migrations = MigrationRecorder.Migration.objects.aggregate(age=Now() - Min("applied"))
    return migrations["age"] or timedelta(), []


def _end_lost_runs(now: datetime) -> None:
    """Ends runs whose worker was killed, so that another can start.

    A run that began far in the future began while the clock was ahead. It would block all others
    until then.
    """
    possible = (now - LIMIT, now + LIMIT)
    running = ReconcileRun.objects.filter(state=RunState.RUNNING)
    for run in running.exclude(started_at__range=possible):
        _finish(run, RunState.FAILED, failure=UNFINISHED)


@transaction.atomic
def _finish(run: ReconcileRun, state: RunState, *, failure: str = "") -> None:
    """Ends a running run once. The report is written in the same transaction."""
    ended = ReconcileRun.objects.filter(pk=run.pk, state=RunState.RUNNING).update(
        state=state,
        finished_at=Now(),
        checked=run.checked,
        findings=run.findings,
        warnings=run.warnings,
        failure=failure,
        history_until=run.history_until,
        telegram_due=state != RunState.CLEAN,
    )
    run.refresh_from_db()
    if not ended or state == RunState.CLEAN:
        return
    with translation.override(settings.LANGUAGE_CODE):
        lines = report_lines(run)
    logger.error("reconcile_reported", run=run.pk, state=state.value, lines=lines)
    path = reverse("admin:upkeep_reconcilerun_change", args=[run.pk])
    for address in _readers():
        with translation.override(language_of(address)):
            lines = report_lines(run)
        write_email(
            kind=EmailKind.STAFF_NOTICE,
            to=address,
            facts={"title": lines[0], "lines": lines[1:], "path": path},
        )


def _readers() -> list[str]:
    """The email addresses of the staff who may see the runs."""
    readers = staff_who_may(MAY_SEE).exclude(email="")
    return sorted(set(readers.values_list("email", flat=True)))


def _tell(run: ReconcileRun) -> bool:
    """Posts the report in the operators' chat. Returns False to try again later."""
    from operators.telegram import bot_api, chats  # noqa: PLC0415  as in operators/telegram/tasks.py
    from operators.telegram.messages.message import Message  # noqa: PLC0415

    platform = platform_settings()
    too_old = run.started_at < database_now() - timedelta(days=1)
    if not settings.TELEGRAM_BOT_TOKEN or platform.chat_id is None or too_old:
        return True
    lines = [escape(line) for line in report_lines(run)]
    message = Message(text="\n".join(["<b>⚠️ " + lines[0] + "</b>", *lines[1:]]), rows=[], version=0)
    if not chats.take_slot(platform.chat_id):
        return False
    try:
        bot_api.send(target=Target(platform.chat_id, platform.topic_id), message=message)
    except bot_api.Refused as error:
        logger.error("reconcile_not_told", cause=bot_api.describe(error))
        return True
    except bot_api.Trouble as error:
        logger.warning("reconcile_not_told", cause=bot_api.describe(error))
        return False
    return True
