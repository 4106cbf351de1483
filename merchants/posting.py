"""Sending letters that are due: by Celery right after the commit, or by the sweep.

A letter may come twice, where a process dies between sending it and writing so; never not at all,
unless the mail server refuses it for two days.
"""

from datetime import timedelta

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone

from merchants.models import Mail

logger = structlog.get_logger(__name__)

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=2)
MAX_ATTEMPTS = 30  # about two days


def send_mail(*, mail_id: int) -> bool:
    """Sends one letter unless it was sent before; False where it has to wait for another attempt.

    The row is locked meanwhile, so two workers do not both send it.
    """
    with transaction.atomic():
        mail = (
            Mail.objects.select_for_update(skip_locked=True)
            .filter(pk=mail_id, sent_at=None, given_up_at=None)
            .first()
        )
        if mail is None:
            return True
        try:
            _compose(mail).send()
        except OSError as error:  # the server is away, or refuses: smtplib's errors are OSErrors
            _put_off(mail, type(error).__name__)
            return False
        mail.sent_at = timezone.now()
        mail.save(update_fields=["sent_at"])
        return True


def sweep_mail() -> dict[str, int]:
    """Sends what is due; returns how many were sent and how many have to wait."""
    counts = {"sent": 0, "waiting": 0}
    due = Mail.objects.filter(sent_at=None, given_up_at=None, due_at__lte=timezone.now())
    for mail_id in due.order_by("due_at").values_list("pk", flat=True)[:100]:
        counts["sent" if send_mail(mail_id=mail_id) else "waiting"] += 1
    return counts


def _compose(mail: Mail) -> EmailMessage:
    """The first line of a template is the subject."""
    context = {**mail.facts, "base_url": settings.PUBLIC_URL}
    text = render_to_string(f"merchants/mail/{mail.kind}.txt", context)
    subject, _, body = text.strip().partition("\n")
    return EmailMessage(subject=subject.strip(), body=body.strip() + "\n", to=[mail.to])


def _put_off(mail: Mail, cause: str) -> None:
    mail.attempts += 1
    pause = min(FIRST_PAUSE * 2 ** min(mail.attempts - 1, 10), LONGEST_PAUSE)
    mail.due_at = timezone.now() + pause
    if mail.attempts >= MAX_ATTEMPTS:
        mail.given_up_at = timezone.now()
    mail.save(update_fields=["attempts", "due_at", "given_up_at"])
    logger.error("mail_not_sent", mail_id=mail.pk, attempts=mail.attempts, cause=cause)
