"""API access of an account: its clients, their keys, and the addresses they may call from.

Each change is one transaction with its audit entry and the emails to the owners. The transactions
are durable, so a key is returned only after all of it is committed.
"""

from collections.abc import Iterable
from typing import TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.api_access import keys
from accounts.models import NAME_TAKEN, Account, ApiClient, ApiKey
from audit.models import AuditAction, AuditEntry
from audit.services import Changes, record_action
from core.database.columns import NAME_LENGTH
from core.inputs import InputProblem, clean_text
from merchants.email.outbox import email_members
from merchants.models import BookKey, Membership, Role

TAKES_KEY = gettext_noop(
    "An owner or a developer creates the key on the page of the client. It is shown there once, and"
    " our staff do not see it."
)
Key = TypeVar("Key", ApiKey, BookKey)
MAX_CLIENTS = 50
MAX_LIVE_KEYS = 10


def clients_of(account: Account) -> QuerySet[ApiClient]:
    """The account's clients, oldest first, with `live_keys`: how many of their keys work now."""
    clients = ApiClient.objects.filter(account=account).with_live_keys()
    return clients.select_related("account", "use").order_by("pk")


def with_makers(keys: Iterable[Key]) -> list[tuple[Key, str]]:
    """Each key with the email address of the member who created it, or `support`."""
    keys = list(keys)
    made = AuditEntry.objects.filter(
        action__in=(AuditAction.KEY_ISSUED, AuditAction.KEY_ROTATED),
        reference__in=[key.prefix for key in keys],
        actor__membership__isnull=False,
    )
    members = dict(made.values_list("reference", "actor__email"))
    return [(key, members.get(key.prefix, _("support"))) for key in keys]


def requests_today(client: ApiClient) -> int:
    """Requests since midnight UTC, without the last few seconds (accounts/api_access/usage.py)."""
    use = getattr(client, "use", None)
    return use.requests if use and use.day == timezone.now().date() else 0


@transaction.atomic(durable=True)
def add_client(*, account: Account, name: str, actor: User) -> ApiClient:
    """Creates a client without a key. Raises InputProblem for a bad or taken name, or at
    MAX_CLIENTS."""
    name = _free_name(name, account=account)
    if ApiClient.objects.filter(account=account).count() >= MAX_CLIENTS:
        raise InputProblem(
            _("An account has at most %(max_clients)s clients.") % {"max_clients": MAX_CLIENTS}
        )
    client = ApiClient.objects.create(account=account, name=name)
    _record(client, AuditAction.CLIENT_CREATED, gettext_noop("API client created"), actor)
    return client


def _free_name(name: str, *, account: Account, client: ApiClient | None = None) -> str:
    """The name without white space around it. Raises InputProblem if it is bad, or if another
    client of the account has it, in whatever case. Members cannot tell such clients apart.

    Locks the account, so two requests cannot both take a name, or add the last client.
    """
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    name = clean_text(name, what=gettext_noop("name"), max_length=NAME_LENGTH)
    same = ApiClient.objects.filter(account=account, name__iexact=name)
    if client is not None:
        same = same.exclude(pk=client.pk)
    if same.exists():
        raise InputProblem(str(NAME_TAKEN))
    return name


@transaction.atomic(durable=True)
def rename_client(*, client: ApiClient, name: str, actor: User) -> ApiClient:
    """Changes the client's name only. Raises InputProblem for a bad or taken name."""
    assert client.account is not None  # noqa: S101  clients_of and add_client return no others
    name = _free_name(name, account=client.account, client=client)
    before = client.name
    ApiClient.objects.filter(pk=client.pk).update(name=name)
    client.name = name
    _record(
        client, AuditAction.CLIENT_CHANGED, gettext_noop("API client renamed"), actor,
        changes={"name": (before, name)}, Before=before,
    )  # fmt: skip
    return client


@transaction.atomic(durable=True)
def switch_client(*, client: ApiClient, enabled: bool, actor: User) -> bool:
    """Switches the client on or off. Returns False if it already was."""
    changed = ApiClient.objects.filter(pk=client.pk, enabled=not enabled).update(enabled=enabled)
    if changed:
        on, off = gettext_noop("API client switched on"), gettext_noop("API client switched off")
        _record(
            client, AuditAction.CLIENT_CHANGED, on if enabled else off, actor,
            changes={"enabled": (not enabled, enabled)},
        )  # fmt: skip
    return bool(changed)


@transaction.atomic(durable=True)
def change_allowlist(
    *, client: ApiClient, networks: list[str], before: list[str], actor: User
) -> bool:
    """Replaces the allowlist; an empty list allows calls from anywhere.

    Returns False and changes nothing if the allowlist is no longer `before`.
    """
    unchanged = ApiClient.objects.filter(pk=client.pk, allowed_networks=before)
    if not unchanged.update(allowed_networks=networks):
        return False
    allowed = shorten(", ".join(networks)) or "anywhere"
    _record(
        client, AuditAction.CLIENT_CHANGED, gettext_noop("Allowlist changed"), actor,
        changes={"allowed_networks": (before, networks)}, Allowed=allowed,
    )  # fmt: skip
    return True


@transaction.atomic(durable=True)
def issue_key(*, client: ApiClient, actor: User, form: UUID | None = None) -> str:
    """Adds a key to the client and returns it. The key cannot be shown again.

    Raises AlreadyIssued if `form` has issued a key before, or InputProblem if the client has
    MAX_LIVE_KEYS keys that work.
    """
    keys.refuse_repeated_form(form)
    _lock_and_check_live_keys(client)
    return keys.issue_key(client=client, actor=actor, form=form)


@transaction.atomic(durable=True)
def rotate_key(
    *, client: ApiClient, overlap_hours: int, actor: User, form: UUID | None = None
) -> str:
    """Adds a key to the client and returns it. The client's other keys expire after the overlap.

    Raises AlreadyIssued if `form` has issued a key before, or InputProblem for a bad overlap, or if
    the client has MAX_LIVE_KEYS and they stay live.
    """
    keys.refuse_repeated_form(form)
    if overlap_hours:
        _lock_and_check_live_keys(client)
    return keys.rotate_key(client=client, overlap_hours=overlap_hours, actor=actor, form=form)


@transaction.atomic
def start_key(
    *, client: ApiClient, overlap_hours: int | None = None, actor: User, note: str = ""
) -> None:
    """Asks the members to create a key, or to rotate the keys with this overlap.

    Staff start a key, and see none: a member creates it on the page of the client.
    """
    change = gettext_noop("Creation of an API key started")
    facts = {gettext_noop("What happens"): TAKES_KEY}
    if overlap_hours is not None:
        change = gettext_noop("Rotation of API keys started")
        facts = {gettext_noop("Overlap"): f"{overlap_hours} h", **facts}
        note = f"{overlap_hours} h overlap. {note}".strip()
    record_action(
        actor=actor, action=AuditAction.KEY_STARTED, on=client, reference=client.name, note=note
    )
    keys.report_access_change(client, change, actor=actor, facts=facts)


def may_take_keys(account: Account) -> bool:
    """Whether the account has an active member who may create keys."""
    members = Membership.objects.filter(account=account, user__is_active=True)
    return any(
        Role(role).includes(Role.DEVELOPER) for role in members.values_list("role", flat=True)
    )


@transaction.atomic(durable=True)
def revoke_key(*, key: ApiKey, actor: User) -> bool:
    """Ends a key at once. Returns False if it was already revoked."""
    return keys.revoke_key(key=key, actor=actor)


def shorten(text: str, limit: int = 300) -> str:
    """The first `limit` characters, with an ellipsis if there are more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def _lock_and_check_live_keys(client: ApiClient) -> None:
    """Raises InputProblem if the client has MAX_LIVE_KEYS. Locks the client, so that two requests
    cannot both issue the last key."""
    ApiClient.objects.select_for_update(no_key=True).get(pk=client.pk)
    if client.keys.live().count() >= MAX_LIVE_KEYS:
        raise InputProblem(
            _("This client already has %(max_live_keys)s keys that work: revoke one first.")
            % {"max_live_keys": MAX_LIVE_KEYS}
        )


def _record(
    client: ApiClient,
    action: AuditAction,
    change: str,
    actor: User,
    *,
    changes: Changes | None = None,
    **facts: str,
) -> None:
    """Writes the audit entry of a change and the emails about it."""
    note = ", ".join([change, *(f"{name}: {value}" for name, value in facts.items())])
    record_action(actor=actor, action=action, on=client, note=note, changes=changes)
    assert client.account is not None  # noqa: S101  clients_of and add_client return no others
    email_members(
        account=client.account,
        change=change,
        actor=actor,
        facts={gettext_noop("Client"): client.name, **facts},
    )
