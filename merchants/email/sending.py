"""Sending letters that are due: by Celery right after the commit, or by the sweep.

A letter may come twice, where a process dies between sending it and writing so; never not at all,
unless the mail server refuses it for two days.
"""

from datetime import timedelta

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db.models import F
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from merchants.email.secret_links import sign_invitation, sign_reset
from merchants.models import Email, EmailKind

logger = structlog.get_logger(__name__)

LEASE = timedelta(minutes=1)  # longer than a worker may take over one letter
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=2)
MAX_ATTEMPTS = 30  # about two days


def send_email(*, email_id: int) -> bool:
    """Sends one letter that is due; False where it was not sent by this call.

    Whoever moves `due_at` may send it; another worker finds it not due. No transaction is open
    while the mail server is talked to.
    """
    now = timezone.now()
    mine = Email.objects.filter(pk=email_id, sent_at=None, given_up_at=None, due_at__lte=now)
    if not mine.update(due_at=now + LEASE, attempts=F("attempts") + 1):
        return False
    email = Email.objects.get(pk=email_id)
    try:
        _compose(email).send()
    except Exception as error:
        # The server is away or refuses, or the letter cannot be written: none holds up the others.
        _put_off(email, cause=type(error).__name__)
        return False
    email.sent_at = timezone.now()
    email.save(update_fields=["sent_at"])
    return True


def sweep_emails() -> dict[str, int]:
    """Sends what is due; returns how many were due and how many were sent."""
    due = Email.objects.filter(sent_at=None, given_up_at=None, due_at__lte=timezone.now())
    letters = list(due.order_by("due_at").values_list("pk", flat=True)[:100])
    return {"due": len(letters), "sent": sum(send_email(email_id=letter) for letter in letters)}


def _compose(email: Email) -> EmailMessage:
    """The first line of a template is the subject."""
    context = {**email.facts, "base_url": settings.PUBLIC_URL, "link": _link(email)}
    text = render_to_string(f"merchants/email/{email.kind}.txt", context)
    subject, _, body = text.strip().partition("\n")
    return EmailMessage(subject=" ".join(subject.split()), body=body.strip() + "\n", to=[email.to])


def _link(email: Email) -> str:
    """The secret link of a letter, made only now: what is kept opens nothing."""
    match email.kind:
        case EmailKind.INVITATION:
            page, token = "merchants:join", sign_invitation(email.about or 0)
        case EmailKind.PASSWORD_RESET:
            page, token = "merchants:reset", sign_reset(User.objects.get(pk=email.about or 0))
        case _:
            return ""
    return f"{settings.PUBLIC_URL}{reverse(page)}?{urlencode({'token': token})}"


def _put_off(email: Email, *, cause: str) -> None:
    pause = min(FIRST_PAUSE * 2 ** min(email.attempts - 1, 10), LONGEST_PAUSE)
    email.due_at = timezone.now() + pause
    if email.attempts >= MAX_ATTEMPTS:
        email.given_up_at = timezone.now()
    email.save(update_fields=["due_at", "given_up_at"])
    logger.error("email_not_sent", email_id=email.pk, attempts=email.attempts, cause=cause)
