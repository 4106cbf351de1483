"""Links between Telegram accounts and staff, and who may act."""

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Model
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from core.inputs import InputProblem
from operators.sign_in.models import CompanyIdentity
from operators.telegram.models import TelegramLink, TelegramLinkCode
from topups.fulfilment.fulfilments import Operator
from topups.fulfilment.transitions import FULFIL
from topups.models import Channel

CODE_LIFETIME = timedelta(minutes=15)
CODE_BYTES = 10
MAX_TELEGRAM_ID = 2**52  # the Bot API promises at most 52 significant bits
REFUSALS_APART = timedelta(minutes=1)


class NotAnOperator(Exception):
    """The sender may not act. The message tells them so, and discloses nothing else."""


def operator_of(telegram_user_id: int) -> Operator:
    """The member of staff behind a Telegram account. Raises NotAnOperator."""
    link = _link_of(telegram_user_id)
    if link is None:
        raise NotAnOperator(
            "You cannot use this bot: your Telegram account is not linked to a staff account. To"
            " link it, open the back office and choose Telegram below your name."
        )
    if not may_operate(link.user):
        raise NotAnOperator(
            "You cannot use this bot: you do not have permission to work on top-up orders, or you"
            " have not signed in to the back office with your company account today."
        )
    return Operator(user=link.user, channel=Channel.TELEGRAM)


def may_operate(user: User) -> bool:
    """Whether the user is active staff with the permission to work on orders, and has signed in
    lately if they have a company account."""
    return (
        user.is_active
        and user.is_staff
        and user.has_perm(FULFIL)
        and _company_account_is_current(user)
    )


def _company_account_is_current(user: User) -> bool:
    """Whether the company vouched for this person within the longest time of a session.

    Telegram has no sessions: without this, a person who left the company could go on there. True
    for people without a company account, if they may sign in with a password.
    """
    identity = CompanyIdentity.objects.filter(user=user).first()
    if identity is None:
        company = settings.COMPANY_SIGN_IN
        return company is None or company.allows_password(user.username)
    hours = timedelta(hours=settings.STAFF_SESSION_HOURS)
    return identity.signed_in_at is not None and identity.signed_in_at > timezone.now() - hours


def record_refusal(
    *, telegram_user_id: int, on: Model, reference: str = "", note: str = ""
) -> None:
    """Writes an audit entry about a refused attempt; `note` says what was tried.

    At most one entry a minute for each person and object, so that presses cannot flood the audit
    trail.
    """
    link = _link_of(telegram_user_id)
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
    """Links the Telegram account to this user, in place of any other account of theirs.

    Safe to run again. Raises InputProblem if the user may not work on orders, or if the account is
    linked to another user.
    """
    if not 0 < telegram_user_id <= MAX_TELEGRAM_ID:
        raise InputProblem("A Telegram user id is a positive whole number of at most 52 bits.")
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
                reference=user.get_username(),
                note=f"Telegram user {telegram_user_id}",
            )
    except IntegrityError:
        raise InputProblem("This Telegram account is linked to another user.") from None
    return link


def unlink_user(*, user: User, actor: User | None) -> bool:
    """Removes the user's link and code; returns whether there was a link."""
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
            reference=user.get_username(),
            note=f"Telegram user {link.telegram_user_id}",
        )
    return True


def issue_code(*, user: User) -> str:
    """A code that links the first Telegram account that sends it to the bot within CODE_LIFETIME.

    It replaces the user's previous code and is not stored in readable form. Raises InputProblem if
    the user may not work on orders.
    """
    if not may_operate(user):
        raise InputProblem(
            _("You cannot use the bot: you do not have permission to work on top-up orders.")
        )
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
            reference=user.get_username(),
        )
    return code


def consume_code(*, code: str, telegram_user_id: int) -> TelegramLink:
    """Links the sender of a valid code. A code works once: of two senders, one wins.

    Raises InputProblem with the answer for the sender.
    """
    with transaction.atomic():
        live = TelegramLinkCode.objects.select_for_update().select_related("user")
        link_code = live.filter(digest=_digest(code), expires_at__gt=timezone.now()).first()
        if link_code is None:
            raise InputProblem(
                "This code is wrong, used or expired. Get a new one in the back office."
            )
        link_code.delete()
        user = link_code.user
        return link_user(user=user, telegram_user_id=telegram_user_id, actor=user)


def void_code(code: str) -> None:
    """Cancels a code that others have seen."""
    TelegramLinkCode.objects.filter(digest=_digest(code)).delete()


def _link_of(telegram_user_id: int) -> TelegramLink | None:
    links = TelegramLink.objects.select_related("user")
    return links.filter(telegram_user_id=telegram_user_id).first()


def _digest(code: str) -> str:
    return hashlib.sha256(code.strip().lower().encode(errors="replace")).hexdigest()
