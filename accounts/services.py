"""Creates and changes clients, and switches clients and accounts off and on.

`create_account` is in wallets/provisioning.py, because it opens a wallet.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext_noop

from accounts.addresses import clean_networks
from accounts.api_access.keys import issue_key, report_access_change
from accounts.models import Account, ApiClient
from accounts.signals import access_changed
from audit.models import AuditAction
from audit.services import find_changes, record_action
from core.database.columns import NAME_LENGTH
from core.inputs import clean_text, find_row


@transaction.atomic
def create_client(
    *,
    name: str,
    account_id: int | None = None,
    rate_limit: int | None = None,
    allowed_networks: Sequence[str] = (),
) -> tuple[ApiClient, str]:
    """Creates a client with its first key and returns both. The key cannot be shown again.

    `rate_limit` is in requests per minute; None is the default of new clients. Raises InputProblem
    or ValidationError.
    """
    client = ApiClient(name=clean_text(name, what=gettext_noop("name"), max_length=NAME_LENGTH))
    if account_id is not None:
        client.account = find_row(Account.objects.all(), account_id)
    _set_limits(client, rate_limit=rate_limit, allowed_networks=allowed_networks)
    client.save()
    record_action(
        actor=None,
        action=AuditAction.CLIENT_CREATED,
        on=client,
        reference=client.name,
        changes=find_changes({}, _values(client)),
    )
    return client, issue_key(client=client, actor=None)


@transaction.atomic
def change_client(
    *,
    client_id: int,
    enabled: bool | None = None,
    rate_limit: int | None = None,
    allowed_networks: Sequence[str] | None = None,
    actor: User | None = None,
    note: str = "",
) -> ApiClient:
    """Changes a client; None leaves a value as it is. Networks replace the allowlist.

    `rate_limit` is in requests per minute. The audit entry keeps `note`, the reason, and names
    `actor`, or for None who runs the command. Raises InputProblem or ValidationError.
    """
    client = find_row(ApiClient.objects.select_for_update(), client_id)
    before = _values(client)
    if enabled is not None:
        client.enabled = enabled
    _set_limits(client, rate_limit=rate_limit, allowed_networks=allowed_networks)
    changes = find_changes(before, _values(client))
    if changes:
        client.save()
        record_action(
            actor=actor,
            action=AuditAction.CLIENT_CHANGED,
            on=client,
            reference=client.name,
            note=note,
            changes=changes,
        )
        report_client_change(client, changes, actor=actor)
    return client


@transaction.atomic
def change_account(
    *, account_id: int, enabled: bool | None = None, actor: User | None = None, note: str = ""
) -> Account:
    """Switches an account with all its clients on or off; None changes nothing.

    The audit entry keeps `note`, the reason, and names `actor`, or for None who runs the command.
    Raises InputProblem.
    """
    account = find_row(Account.objects.select_for_update(), account_id)
    if enabled is not None and enabled != account.enabled:
        account.enabled = enabled
        account.save(update_fields=["enabled"])
        record_action(
            actor=actor,
            action=AuditAction.ACCOUNT_CHANGED,
            on=account,
            reference=account.name,
            note=note,
            changes={"enabled": (not enabled, enabled)},
        )
        on, off = gettext_noop("Account switched on"), gettext_noop("Account switched off")
        access_changed.send(
            Account, account=account, actor=actor, change=on if enabled else off, facts={}
        )
    return account


def report_client_change(client: ApiClient, changes: Iterable[str], *, actor: User | None) -> None:
    """Tells the members of the account what a client may do now. `changes` are names of fields."""
    texts = {
        "enabled": (gettext_noop("Switched on"), "yes" if client.enabled else "no"),
        "rate_limit_per_minute": (
            gettext_noop("Requests per minute"),
            str(client.rate_limit_per_minute),
        ),
        "allowed_networks": (
            gettext_noop("Allowed"),
            ", ".join(map(str, client.allowed_networks))[:300] or "anywhere",
        ),
        "account": (gettext_noop("Account"), str(client.account)),
    }
    facts = dict(texts[name] for name in texts if name in set(changes))
    if facts:
        change = gettext_noop("API client changed")
        report_access_change(client, change, actor=actor, facts=facts)


def _set_limits(
    client: ApiClient, *, rate_limit: int | None, allowed_networks: Sequence[str] | None
) -> None:
    if rate_limit is not None:
        client.rate_limit_per_minute = rate_limit
    if allowed_networks is not None:
        client.allowed_networks = _clean_allowlist(allowed_networks)
    client.full_clean()


def _clean_allowlist(networks: Sequence[str]) -> list[str]:
    try:
        return clean_networks(networks)
    except ValidationError as error:
        raise ValidationError({"allowed_networks": error}) from None


def _values(client: ApiClient) -> dict[str, Any]:
    """The values of a client that the audit trail records."""
    return {
        "name": client.name,
        "account": client.account_id,
        "enabled": client.enabled,
        "rate_limit_per_minute": client.rate_limit_per_minute,
        "allowed_networks": list(client.allowed_networks),
    }
