"""API access of an account: its clients, their keys, and where they may call from.

Each change is written with its audit entry and the letters to the owners in one transaction, and
only then is a key in anybody's hand.
"""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from accounts import keys
from accounts.models import Account, ApiClient, ApiKey
from audit.models import AuditAction
from audit.services import record_action
from config.database.columns import NAME_LENGTH
from config.inputs import InputProblem, clean_text
from merchants.email.outbox import tell_owners

MAX_CLIENTS = 50
MAX_LIVE_KEYS = 10
MAX_OVERLAP_HOURS = 24 * 90


def clients_of(account: Account) -> QuerySet[ApiClient]:
    """The account's clients with `live_keys`, how many of their keys work now."""
    now = timezone.now()
    live = Q(keys__revoked_at=None) & (Q(keys__expires_at=None) | Q(keys__expires_at__gt=now))
    clients = ApiClient.objects.filter(account=account).select_related("account", "use")
    return clients.annotate(live_keys=Count("keys", filter=live & Q(keys__isnull=False))).order_by(
        "pk"
    )


def requests_today(client: ApiClient) -> int:
    """Since midnight UTC, but for the last seconds (accounts/usage.py)."""
    use = getattr(client, "use", None)
    return use.requests if use and use.day == timezone.now().date() else 0


@transaction.atomic(durable=True)
def add_client(*, account: Account, name: str, actor: User) -> ApiClient:
    """A client without a key. Raises InputProblem for a bad name and for one too many."""
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    name = clean_text(name, what="name", max_length=NAME_LENGTH)
    if ApiClient.objects.filter(account=account).count() >= MAX_CLIENTS:
        raise InputProblem(f"An account has at most {MAX_CLIENTS} clients.")
    client = ApiClient.objects.create(account=account, name=name)
    _tell(client, AuditAction.CLIENT_CREATED, "API client created", actor)
    return client


@transaction.atomic(durable=True)
def rename_client(*, client: ApiClient, name: str, actor: User) -> ApiClient:
    """Its keys and orders stay what they are. Raises InputProblem."""
    name = clean_text(name, what="name", max_length=NAME_LENGTH)
    before = client.name
    ApiClient.objects.filter(pk=client.pk).update(name=name)
    client.name = name
    _tell(client, AuditAction.CLIENT_CHANGED, "API client renamed", actor, Before=before)
    return client


@transaction.atomic(durable=True)
def switch_client(*, client: ApiClient, enabled: bool, actor: User) -> bool:
    """Switches all calls of a client off or on; False where they were so before."""
    changed = ApiClient.objects.filter(pk=client.pk, enabled=not enabled).update(enabled=enabled)
    if changed:
        word = "on" if enabled else "off"
        _tell(client, AuditAction.CLIENT_CHANGED, f"API client switched {word}", actor)
    return bool(changed)


@transaction.atomic(durable=True)
def change_allowlist(
    *, client: ApiClient, networks: list[str], before: list[str], actor: User
) -> bool:
    """Replaces where the client may call from; no networks mean anywhere. False, and nothing is
    changed, where the list is not any more what it was `before`."""
    unchanged = ApiClient.objects.filter(pk=client.pk, allowed_networks=before)
    if not unchanged.update(allowed_networks=networks):
        return False
    _tell(
        client, AuditAction.CLIENT_CHANGED, "Allowlist changed", actor,
        Allowed=shorten(", ".join(networks)) or "anywhere",
    )  # fmt: skip
    return True


@transaction.atomic(durable=True)
def issue_key(*, client: ApiClient, actor: User) -> str:
    """One more key, returned this once. Raises InputProblem where enough are live."""
    _limit_keys(client)
    key = keys.issue_key(client=client)
    _tell(client, AuditAction.KEY_ISSUED, "API key issued", actor, Key=keys.prefix_of(key))
    return key


@transaction.atomic(durable=True)
def rotate_keys(*, client: ApiClient, overlap_hours: int, actor: User) -> str:
    """A new key, returned this once; those before it end after the overlap at the latest.

    Raises InputProblem where enough would be live.
    """
    if overlap_hours:
        _limit_keys(client)
    key = keys.rotate_key(client=client, overlap=timedelta(hours=overlap_hours))
    _tell(
        client, AuditAction.KEY_ROTATED, "API keys rotated", actor,
        Key=keys.prefix_of(key), Overlap=f"{overlap_hours} h",
    )  # fmt: skip
    return key


@transaction.atomic(durable=True)
def revoke_key(*, key: ApiKey, actor: User) -> bool:
    """Ends a key at once; False where it was revoked before."""
    revoked = keys.revoke_key(prefix=key.prefix)
    if revoked:
        _tell(key.client, AuditAction.KEY_REVOKED, "API key revoked", actor, Key=key.prefix)
    return revoked


def _limit_keys(client: ApiClient) -> None:
    ApiClient.objects.select_for_update(no_key=True).get(pk=client.pk)  # one after the other
    if keys.live_keys(client).count() >= MAX_LIVE_KEYS:
        raise InputProblem(f"{MAX_LIVE_KEYS} keys of this client work already: revoke one first.")


def shorten(text: str, limit: int = 300) -> str:
    """At most so many characters, for a note."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def _tell(client: ApiClient, action: AuditAction, change: str, actor: User, **facts: str) -> None:
    assert client.account is not None  # noqa: S101  every client here is one of an account
    note = ", ".join(
        [change, *(f"{name}: {value}" for name, value in facts.items() if name != "Key")]
    )
    record_action(
        actor=actor, action=action, on=client, reference=facts.get("Key", ""), note=note[:500]
    )
    tell_owners(
        account=client.account, change=change, actor=actor, facts={"Client": client.name, **facts}
    )
