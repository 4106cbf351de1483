"""Which Telegram account belongs to which member of staff, and who may act."""

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Model
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from config.inputs import InputProblem
from operators.models import TelegramLink, TelegramLinkCode
from topups.fulfilments import Operator
from topups.models import Channel
from topups.transitions import FULFIL

CODE_LIFETIME = timedelta(minutes=15)
CODE_BYTES = 10
MAX_TELEGRAM_ID = 2**52  # "at most 52 significant bits", says the Bot API
REFUSALS_APART = timedelta(minutes=1)


class NotAnOperator(Exception):
    """Whoever wrote may not act; the message tells them, politely, and nothing else."""


def operator_of(telegram_user_id: int) -> Operator:
    """The member of staff behind a Telegram account. Raises NotAnOperator."""
    link = TelegramLink.objects.select_related("user").filter(telegram_user_id=telegram_user_id)
    found = link.first()
    if found is None:
        raise NotAnOperator(
            "Sorry, this Telegram account is not linked to a member of staff."
            " The back office shows how: your name, then Telegram."
        )
    if not may_operate(found.user):
        raise NotAnOperator("Sorry, you may not work on top-up orders.")
    return Operator(user=found.user, channel=Channel.TELEGRAM)


def may_operate(user: User) -> bool:
    """Whether this is active staff with the permission for the desk."""
    return user.is_active and user.is_staff and user.has_perm(FULFIL)


def record_refusal(
    *, telegram_user_id: int, on: Model, reference: str = "", note: str = ""
) -> None:
    """Keeps that somebody was refused; once a minute for each person and object, so that nobody
    fills the audit trail by pressing. `note` says what they tried."""
    linked = TelegramLink.objects.select_related("user").filter(telegram_user_id=telegram_user_id)
    link = linked.first()
    text = f"Telegram user {telegram_user_id}: {note}"[:500]
    lately = AuditEntry.objects.filter(
        object_type=on._meta.label_lower,
        object_id=str(on.pk),
        action=AuditAction.TELEGRAM_REFUSED,
        note=text,
        created_at__gt=timezone.now() - REFUSALS_APART,
    )
    if not lately.exists():
        record_action(
            actor=link.user if link else None,
            action=AuditAction.TELEGRAM_REFUSED,
            on=on,
            reference=reference,
            note=text,
        )


def link_user(*, user: User, telegram_user_id: int, actor: User | None) -> TelegramLink:
    """Links the account to this member of staff, instead of any other account of theirs.

    Safe to run again. Raises InputProblem where the user may not work at the desk, or the account
    is somebody else's.
    """
    if not 0 < telegram_user_id <= MAX_TELEGRAM_ID:
        raise InputProblem("A Telegram user id is a positive whole number.")
    if not may_operate(user):
        raise InputProblem(f"{user} is not active staff with the permission for top-up orders.")
    try:
        with transaction.atomic():
            link = TelegramLink.objects.filter(user=user).first()
            if link is not None and link.telegram_user_id == telegram_user_id:
                return link
            link, _ = TelegramLink.objects.update_or_create(
                user=user,
                defaults={"telegram_user_id": telegram_user_id, "linked_at": timezone.now()},
            )
            record_action(
                actor=actor,
                action=AuditAction.TELEGRAM_LINKED,
                on=user,
                reference=user.get_username()[:64],
                note=f"Telegram user {telegram_user_id}",
            )
    except IntegrityError:
        raise InputProblem("This Telegram account is linked to somebody else.") from None
    return link


def unlink_user(*, user: User, actor: User | None) -> bool:
    """Ends what this person can do from Telegram; returns whether there was a link."""
    with transaction.atomic():
        TelegramLinkCode.objects.filter(user=user).delete()
        link = TelegramLink.objects.select_for_update().filter(user=user).first()
        if link is None:
            return False
        link.delete()
        record_action(
            actor=actor,
            action=AuditAction.TELEGRAM_UNLINKED,
            on=user,
            reference=user.get_username()[:64],
            note=f"Telegram user {link.telegram_user_id}",
        )
    return True


def issue_code(*, user: User) -> str:
    """A code that links the first who sends it to the bot within CODE_LIFETIME; it takes the place
    of the person's last one, and nothing can show it again. Raises InputProblem."""
    if not may_operate(user):
        raise InputProblem("Only staff who work on top-up orders can use the bot.")
    code = secrets.token_hex(CODE_BYTES)
    with transaction.atomic():
        TelegramLinkCode.objects.update_or_create(
            user=user,
            defaults={"digest": _digest(code), "expires_at": timezone.now() + CODE_LIFETIME},
        )
        record_action(
            actor=user,
            action=AuditAction.TELEGRAM_CODE_ISSUED,
            on=user,
            reference=user.get_username()[:64],
        )
    return code


def consume_code(*, code: str, telegram_user_id: int) -> TelegramLink:
    """Links whoever sends a code that is good. A code works once, of two who send it one wins.

    Raises InputProblem with what to tell the sender.
    """
    with transaction.atomic():
        live = TelegramLinkCode.objects.select_for_update().select_related("user")
        found = live.filter(digest=_digest(code), expires_at__gt=timezone.now()).first()
        if found is None:
            raise InputProblem("This code is wrong, used or expired. Get a new one.")
        found.delete()
        return link_user(user=found.user, telegram_user_id=telegram_user_id, actor=found.user)


def void_code(code: str) -> None:
    """Whoever has seen the code shall not use it."""
    TelegramLinkCode.objects.filter(digest=_digest(code)).delete()


def _digest(code: str) -> str:
    return hashlib.sha256(code.strip().lower().encode(errors="replace")).hexdigest()
