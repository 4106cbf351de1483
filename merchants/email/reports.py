"""Reports by email: a person chooses a report and how often it comes.

A sweep writes one email for each period that has ended. The file is made when the email is sent,
and only if the person may still have it. Nothing is sent for periods before the choice.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from audit.models import AuditAction
from audit.services import record_action
from core.backoffice.declarations import Report
from core.backoffice.registry import reports
from core.database.functions import database_now
from core.formats import day_fact
from merchants.email.outbox import write_email
from merchants.models import EmailedReport, EmailKind, Frequency, SentReport

AFTER_MIDNIGHT = timedelta(hours=3)  # days are closed by then
DAY = timedelta(days=1)
MOST_BYTES = 5_000_000  # mail servers refuse much larger ones


def reports_for(user: User) -> list[Report]:
    """The reports that the person may receive now."""
    return [report for report in reports().values() if user.is_active and report.may(user)]


@transaction.atomic
def choose_report(*, user: User, kind: str, every: Frequency) -> EmailedReport:
    """Sends this report from now on. Returns the row that is there if it was chosen before."""
    report, made = EmailedReport.objects.get_or_create(user=user, kind=kind, every=every)
    if made:
        _record(report, "Chosen", actor=user)
    return report


@transaction.atomic
def end_report(*, report: EmailedReport, actor: User) -> None:
    """Stops sending this report."""
    _record(report, "Ended", actor=actor)
    report.delete()


def last_period(every: str, now: datetime) -> tuple[date, date]:
    """The newest period that has ended: its first day, and the first day after it (UTC)."""
    today = (now - AFTER_MIDNIGHT).astimezone(UTC).date()
    if every == Frequency.DAY:
        return today - DAY, today
    if every == Frequency.WEEK:
        monday = today - today.weekday() * DAY
        return monday - 7 * DAY, monday
    end = today.replace(day=1)
    return (end - DAY).replace(day=1), end


def sweep_reports() -> int:
    """Writes the emails of periods that have ended. Returns how many were written."""
    now, written = database_now(), 0
    for report in EmailedReport.objects.select_related("user").order_by("pk").iterator():
        first, end = last_period(report.every, now)
        if report.created_at.astimezone(UTC).date() < end:
            written += _write(report, first, end)
    return written


def file_of(report: EmailedReport, first: date, end: date) -> tuple[str, bytes] | None:
    """The file; None if there is none, if it is too large, or if the person may not have it now."""
    kind = reports().get(report.kind)
    if kind is None or not report.user.is_active or not kind.may(report.user):
        return None
    built = kind.build(report.user, first, end)
    if built is None:
        return None
    name, parts = built
    content = _join(parts)
    return None if content is None else (name, content)


def _record(report: EmailedReport, note: str, *, actor: User) -> None:
    record_action(
        actor=actor, action=AuditAction.CHANGED, on=report, reference=str(report), note=note
    )


def _join(parts: Iterable[bytes]) -> bytes | None:
    content = bytearray()
    for part in parts:
        content += part
        if len(content) > MOST_BYTES:
            return None
    return bytes(content)


def _write(report: EmailedReport, first: date, end: date) -> bool:
    kind = reports().get(report.kind)
    user = report.user
    if kind is None or not user.is_active or not user.email or not kind.may(user):
        return False
    try:
        with transaction.atomic():
            SentReport.objects.create(report=report, first_day=first)
            facts = {
                "title": kind.title,
                "first": day_fact(first),
                "last": day_fact(end - DAY),
                "end": day_fact(end),
                "path": "/admin/" if user.is_staff else "/merchant/reports/",
            }
            write_email(kind=EmailKind.REPORT, to=user.email, facts=facts, about=report.pk)
    except IntegrityError:
        return False  # another worker has written it, or it was ended
    return True
