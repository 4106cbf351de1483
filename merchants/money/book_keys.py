"""Keys for books: a program of a merchant downloads statements, transfers, orders and prices.

A key reads `bk_<prefix>_<secret>` and is stored as an API key is. It belongs to an account, opens
the files of merchants/frame/exports.py, and changes nothing.
"""

import re
from hmac import compare_digest
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.api_access.keys import PREFIX_PATTERN, SECRET_LENGTH, digest_of, random_key
from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from core.inputs import InputProblem
from merchants.email.outbox import email_members
from merchants.models import BookKey

KIND = "bk"
KEY_PATTERN = re.compile(
    rf"{KIND}_(?P<prefix>{PREFIX_PATTERN.pattern})_[0-9a-f]{{{SECRET_LENGTH}}}"
)
MAX_LIVE_KEYS = 5


@transaction.atomic(durable=True)
def issue_book_key(*, account: Account, actor: User, form: UUID | None = None) -> str:
    """Adds a key to the account and returns it. The key cannot be shown again.

    Raises InputProblem if `form` has issued a key before, or at MAX_LIVE_KEYS.
    """
    # Locked, so that two requests cannot both issue the last key.
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    if account.book_keys.filter(revoked_at=None).count() >= MAX_LIVE_KEYS:
        raise InputProblem(
            _("The account already has %(max_live_keys)s keys for books: revoke one first.")
            % {"max_live_keys": MAX_LIVE_KEYS}
        )
    prefix, key = random_key(KIND)
    try:
        with transaction.atomic():
            row = BookKey.objects.create(
                account=account, prefix=prefix, digest=digest_of(key), form=form
            )
    except IntegrityError:
        raise InputProblem(
            _(
                "No other key was created: this form has already created one. A key is shown only"
                " once."
                " If you did not copy it, revoke it and create another."
            )
        ) from None
    _record(AuditAction.KEY_ISSUED, row, gettext_noop("Key for books created"), actor)
    return key


@transaction.atomic(durable=True)
def revoke_book_key(*, key: BookKey, actor: User) -> bool:
    """Ends a key at once. Returns False if it was already revoked."""
    live = BookKey.objects.filter(pk=key.pk, revoked_at=None)
    revoked = bool(live.update(revoked_at=timezone.now()))
    if revoked:
        _record(AuditAction.KEY_REVOKED, key, gettext_noop("Key for books revoked"), actor)
    return revoked


def find_book_key(key: str) -> BookKey | None:
    """The live key with this text, with its account; None if there is none."""
    match = KEY_PATTERN.fullmatch(key)
    if match is None:
        return None
    rows = BookKey.objects.select_related("account")
    row = rows.filter(prefix=match["prefix"], revoked_at=None).first()
    return row if row and compare_digest(row.digest, digest_of(key)) else None


def _record(action: AuditAction, key: BookKey, change: str, actor: User) -> None:
    record_action(actor=actor, action=action, on=key.account, reference=key.prefix, note=change)
    email_members(
        account=key.account, change=change, actor=actor, facts={gettext_noop("Key"): key.prefix}
    )
