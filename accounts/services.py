"""Provisioning: clients, their keys and limits, and switching them or a whole account off."""

import re
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.keys import issue_key, prefix_of, rotate_key
from accounts.models import Account, ApiClient, ApiKey
from accounts.signals import key_issued, key_revoked, key_rotated
from config.database.columns import NAME_LENGTH
from config.inputs import InputProblem, clean_text, find_row

MAX_OVERLAP_HOURS = 24 * 365
PREFIX_PATTERN = re.compile(r"[0-9a-f]{12}")


def create_client(
    *,
    name: str,
    account_id: int | None = None,
    rate_limit: int | None = None,
    allowed_networks: Sequence[str] = (),
) -> tuple[ApiClient, str]:
    """A new client with its first key; returns both. The key's secret is not stored anywhere.

    `rate_limit` is in requests per minute. Raises InputProblem or ValidationError.
    """
    client = ApiClient(name=clean_text(name, what="name", max_length=NAME_LENGTH))
    if account_id is not None:
        client.account = find_row(Account.objects.all(), account_id)
    _set_limits(client, rate_limit=rate_limit, allowed_networks=allowed_networks)
    with transaction.atomic():
        client.save()
        key = issue_key(client=client)
        key_issued.send(sender=ApiKey, client=client, prefix=prefix_of(key))
    return client, key


@transaction.atomic
def change_client(
    *,
    client_id: int,
    enabled: bool | None = None,
    rate_limit: int | None = None,
    allowed_networks: Sequence[str] | None = None,
) -> ApiClient:
    """Changes what is given and leaves the rest. Networks replace the ones before.

    `rate_limit` is in requests per minute. Raises InputProblem or ValidationError.
    """
    client = find_row(ApiClient.objects.select_for_update(), client_id)
    if enabled is not None:
        client.enabled = enabled
    _set_limits(client, rate_limit=rate_limit, allowed_networks=allowed_networks)
    client.save()
    return client


@transaction.atomic
def change_account(*, account_id: int, enabled: bool | None = None) -> Account:
    """Switches an account, and with it all its clients, on or off. Raises InputProblem."""
    account = find_row(Account.objects.select_for_update(), account_id)
    if enabled is not None:
        account.enabled = enabled
        account.save(update_fields=["enabled"])
    return account


@transaction.atomic
def rotate_client_key(*, client_id: int, overlap_hours: int) -> str:
    """A new key for the same client; those before it work for `overlap_hours` more at most.

    Raises InputProblem.
    """
    if not 0 <= overlap_hours <= MAX_OVERLAP_HOURS:
        raise InputProblem(f"The overlap is from 0 to {MAX_OVERLAP_HOURS} hours.")
    client = find_row(ApiClient.objects.all(), client_id)
    key = rotate_key(client=client, overlap=timedelta(hours=overlap_hours))
    key_rotated.send(sender=ApiKey, client=client, prefix=prefix_of(key))
    return key


@transaction.atomic
def revoke_key_by_prefix(*, prefix: str) -> ApiKey:
    """Ends a key at once; one that has ended stays as it is. Raises InputProblem, which does not
    repeat what was typed: it may be a whole key."""
    if PREFIX_PATTERN.fullmatch(prefix) is None:
        raise InputProblem(
            "A prefix is the 12 letters and digits between the underscores of a key."
            " Do not type the whole key: it would stay in the history of your shell."
        )
    key = ApiKey.objects.select_for_update().filter(prefix=prefix).first()
    if key is None:
        raise InputProblem("There is no key with this prefix.")
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        key_revoked.send(sender=ApiKey, client=key.client, prefix=key.prefix)
    return key


def _set_limits(
    client: ApiClient, *, rate_limit: int | None, allowed_networks: Sequence[str] | None
) -> None:
    if rate_limit is not None:
        client.rate_limit_per_minute = rate_limit
    if allowed_networks is not None:
        client.allowed_networks = list(allowed_networks)
    client.full_clean()
