"""Sends the emails that are due: a task right after the commit, or the sweep.

An email arrives at least once, unless the mail server refuses it for two days. It arrives twice if
the process dies after sending it and before recording that.
"""

import re
from datetime import date, timedelta

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.db import transaction
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from accounts.preferences.time_zones import preferences_of
from audit.models import AuditAction
from audit.services import record_action
from core.formats import local_facts
from merchants.email.reports import file_of
from merchants.email.secret_links import sign_invitation, sign_reset, sign_staff_invitation
from merchants.models import Email, EmailedReport, EmailKind

logger = structlog.get_logger(__name__)

LEASE = timedelta(minutes=1)  # longer than a worker may take for one email
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=2)
MAX_ATTEMPTS = 30  # about two days


def send_email(*, email_id: int) -> bool:
    """Sends one email if it is due. Returns whether this call sent it.

    The worker that moves `due_at` sends the email; other workers then find it not due. No
    transaction is open during the conversation with the mail server.
    """
    now = timezone.now()
    mine = Email.objects.filter(pk=email_id, sent_at=None, given_up_at=None, due_at__lte=now)
    if not mine.update(due_at=now + LEASE, attempts=F("attempts") + 1):
        return False
    email = Email.objects.get(pk=email_id)
    if email.is_to_a_stranger:
        email.given_up_at = timezone.now()
        email.save(update_fields=["given_up_at"])
        return False
    try:
        report = _report_of(email)
        message = _compose(email, report)
        message.send()
    except Exception as error:
        # Any failure, of the mail server or of the template, must not hold up the other emails.
        _postpone(email, cause=type(error).__name__)
        return False
    with transaction.atomic():
        email.sent_at = timezone.now()
        email.save(update_fields=["sent_at"])
        if report and message.attachments:
            _record_file(report, str(message.attachments[0][0]))
    return True


def sweep_emails() -> dict[str, int]:
    """Sends up to 100 emails that are due; returns how many were due and how many were sent."""
    due = Email.objects.filter(sent_at=None, given_up_at=None, due_at__lte=timezone.now())
    ids = list(due.order_by("due_at").values_list("pk", flat=True)[:100])
    return {"due": len(ids), "sent": sum(send_email(email_id=email_id) for email_id in ids)}


def _compose(email: Email, report: EmailedReport | None) -> EmailMessage:
    """The message, as text and as HTML. The first line of a template is the subject."""
    reader = preferences_of(User.objects.filter(email=email.to).first())
    language = reader.language_of_emails or email.facts.get("language") or settings.LANGUAGE_CODE
    with timezone.override(reader.time_zone), translation.override(language):
        context = {
            **local_facts(email.facts),
            "base_url": settings.PUBLIC_URL,
            "link": _link(email),
        }
        attached = report and _file(email, report)
        text = render_to_string(f"merchants/email/{email.kind}.txt", {**context, "file": attached})
        subject, _, body = text.strip().partition("\n")
        subject, body = " ".join(subject.split()), body.strip() + "\n"
        page = render_to_string(
            "merchants/email/page.html", {"title": subject, "body": _link_addresses(body)}
        )
    message = EmailMultiAlternatives(subject=subject, body=body, to=[email.to])
    message.attach_alternative(page, "text/html")
    if attached:
        message.attach(*attached)
    return message


def _link_addresses(text: str) -> SafeString:
    """The text as HTML, with links to the addresses of the service. Other addresses stay text: they
    are in names that people chose, such as that of an inviter."""
    own = rf"({re.escape(settings.PUBLIC_URL)}/\S*[^\s.,])"
    parts = enumerate(re.split(own, text))  # each second one is an address
    return format_html_join(
        "",
        "{}",
        ((format_html('<a href="{0}">{0}</a>', one) if at % 2 else one,) for at, one in parts),
    )


def _report_of(email: Email) -> EmailedReport | None:
    """The report that an email brings. None if it was ended, or if the person has another address
    by now: the old one may be somebody else's."""
    if email.kind != EmailKind.REPORT or email.about is None:
        return None
    reports = EmailedReport.objects.select_related("user")
    return reports.filter(pk=email.about, user__email=email.to).first()


def _file(email: Email, report: EmailedReport) -> tuple[str, bytes] | None:
    """The file of a report by email. It is made only now, and stored nowhere."""
    first, end = (date.fromisoformat(email.facts[name]["day"]) for name in ("first", "end"))
    return file_of(report, first, end)


def _record_file(report: EmailedReport, name: str) -> None:
    record_action(
        actor=report.user,
        action=AuditAction.EXPORTED,
        on=report.user,
        reference=name,
        note="by email",
    )


def _link(email: Email) -> str:
    """The secret link of an email. It is made only now, so no stored row opens anything.

    The token is behind a `#`, so it is sent to no server and stands in no log.
    """
    match email.kind:
        case EmailKind.INVITATION:
            page, token = "merchants:join", sign_invitation(email.about or 0)
        case EmailKind.PASSWORD_RESET:
            page, token = "merchants:reset", sign_reset(User.objects.get(pk=email.about or 0))
        case EmailKind.STAFF_NOTICE if email.about:
            page, token = "", sign_staff_invitation(User.objects.get(pk=email.about))
        case _:
            return ""
    return f"{settings.PUBLIC_URL}{email.facts.get('path') or reverse(page)}#{token}"


def _postpone(email: Email, *, cause: str) -> None:
    pause = min(FIRST_PAUSE * 2 ** min(email.attempts - 1, 10), LONGEST_PAUSE)
    email.due_at = timezone.now() + pause
    if email.attempts >= MAX_ATTEMPTS:
        email.given_up_at = timezone.now()
    email.save(update_fields=["due_at", "given_up_at"])
    logger.error("email_not_sent", email_id=email.pk, attempts=email.attempts, cause=cause)
