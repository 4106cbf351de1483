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
from merchants.models import Mail, MailKind

logger = structlog.get_logger(__name__)

LEASE = timedelta(minutes=1)  # longer than a worker may take over one letter
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=2)
MAX_ATTEMPTS = 30  # about two days


def send_mail(*, mail_id: int) -> bool:
    """Sends one letter that is due; False where it was not sent by this call.

    Whoever moves `due_at` may send it; another worker finds it not due. No transaction is open
    while the mail server is talked to.
    """
    now = timezone.now()
    mine = Mail.objects.filter(pk=mail_id, sent_at=None, given_up_at=None, due_at__lte=now)
    if not mine.update(due_at=now + LEASE, attempts=F("attempts") + 1):
        return False
    mail = Mail.objects.get(pk=mail_id)
    try:
        _compose(mail).send()
    except Exception as error:
        # The server is away or refuses, or the letter cannot be written: none holds up the others.
        _put_off(mail, cause=type(error).__name__)
        return False
    mail.sent_at = timezone.now()
    mail.save(update_fields=["sent_at"])
    return True


def sweep_mail() -> dict[str, int]:
    """Sends what is due; returns how many were due and how many were sent."""
    due = Mail.objects.filter(sent_at=None, given_up_at=None, due_at__lte=timezone.now())
    letters = list(due.order_by("due_at").values_list("pk", flat=True)[:100])
    return {"due": len(letters), "sent": sum(send_mail(mail_id=letter) for letter in letters)}


def _compose(mail: Mail) -> EmailMessage:
    """The first line of a template is the subject."""
    context = {**mail.facts, "base_url": settings.PUBLIC_URL, "link": _link(mail)}
    text = render_to_string(f"merchants/email/outbox/{mail.kind}.txt", context)
    subject, _, body = text.strip().partition("\n")
    return EmailMessage(subject=" ".join(subject.split()), body=body.strip() + "\n", to=[mail.to])


def _link(mail: Mail) -> str:
    """The secret link of a letter, made only now: what is kept opens nothing."""
    match mail.kind:
        case MailKind.INVITATION:
            page, token = "merchants:join", sign_invitation(mail.about or 0)
        case MailKind.PASSWORD_RESET:
            page, token = "merchants:reset", sign_reset(User.objects.get(pk=mail.about or 0))
        case _:
            return ""
    return f"{settings.PUBLIC_URL}{reverse(page)}?{urlencode({'token': token})}"


def _put_off(mail: Mail, *, cause: str) -> None:
    pause = min(FIRST_PAUSE * 2 ** min(mail.attempts - 1, 10), LONGEST_PAUSE)
    mail.due_at = timezone.now() + pause
    if mail.attempts >= MAX_ATTEMPTS:
        mail.given_up_at = timezone.now()
    mail.save(update_fields=["due_at", "given_up_at"])
    logger.error("mail_not_sent", mail_id=mail.pk, attempts=mail.attempts, cause=cause)
