"""API keys: made, rotated, revoked and looked up.

A key reads `vk_<prefix>_<secret>`. The prefix finds the row and may be shown; the secret has 256
random bits, so a plain SHA-256 of the whole key is enough to store.
"""

import hashlib
import re
import secrets
from datetime import timedelta
from hmac import compare_digest

from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.models import Account, ApiClient, ApiKey
from config.database.functions import query

PREFIX_BYTES = 6
SECRET_BYTES = 32
KEY_PATTERN = re.compile(r"vk_(?P<prefix>[0-9a-f]{12})_[0-9a-f]{64}")


def issue_key(*, client: ApiClient) -> str:
    """Adds a key to the client and returns its secret, which nothing can show again."""
    prefix = secrets.token_hex(PREFIX_BYTES)
    key = f"vk_{prefix}_{secrets.token_hex(SECRET_BYTES)}"
    ApiKey.objects.create(client=client, prefix=prefix, digest=_digest(key))
    return key


def rotate_key(*, client: ApiClient, overlap: timedelta) -> str:
    """Issues a new key; the client's other keys end after `overlap` at the latest."""
    with transaction.atomic():
        # One rotation after another, or neither would see the new key of the other, and both live.
        ApiClient.objects.select_for_update(no_key=True).get(pk=client.pk)
        end = timezone.now() + overlap
        live_keys(client).filter(Q(expires_at=None) | Q(expires_at__gt=end)).update(expires_at=end)
        return issue_key(client=client)


def revoke_key(*, prefix: str) -> bool:
    """Ends a key at once. Returns False where no live key has this prefix."""
    return bool(
        ApiKey.objects.filter(prefix=prefix, revoked_at=None).update(revoked_at=timezone.now())
    )


def prefix_of(key: str) -> str:
    """The part of a key that may be shown; empty for what is no key."""
    match = KEY_PATTERN.fullmatch(key)
    return match["prefix"] if match else ""


def live_keys(client: ApiClient) -> QuerySet[ApiKey]:
    """The keys of a client that work now."""
    return client.keys.filter(_live())


def find_live_key(key: str) -> ApiClient | None:
    """The client, with its account, of the live key with this secret; one query, and none for
    junk."""
    match = KEY_PATTERN.fullmatch(key)
    if match is None:
        return None
    rows = query("accounts_find_key", match["prefix"])
    if not rows or not compare_digest(rows[0]["digest"], _digest(key)):
        return None
    found = rows[0]
    client = ApiClient.from_db(
        DEFAULT_DB_ALIAS,
        ["id", "account_id", "name", "enabled", "rate_limit_per_minute", "allowed_networks"],
        [
            found["client_id"],
            found["account_id"],
            found["client_name"],
            found["client_enabled"],
            found["rate_limit_per_minute"],
            found["allowed_networks"],
        ],
    )
    client.key_prefix = match["prefix"]
    if found["account_id"] is not None:
        client.account = Account.from_db(
            DEFAULT_DB_ALIAS,
            ["id", "currency", "enabled"],
            [found["account_id"], found["account_currency"], found["account_enabled"]],
        )
    return client


def _live() -> Q:
    now = timezone.now()
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
