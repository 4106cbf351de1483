"""API keys: which keys are live, and the audit entry that every change writes."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.utils import timezone

from accounts.api_access.keys import (
    MAX_OVERLAP_HOURS,
    find_client,
    issue_key,
    prefix_of,
    revoke_key,
    rotate_key,
)
from accounts.models import ApiClient, ApiKey, KeyState
from audit.models import AuditAction, AuditEntry
from core.inputs import InputProblem
from tests.audited import recorded
from tests.factories import Merchant, make_account, make_client, make_key, make_operator
from tests.neighbour import ours

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def test_a_new_key_names_its_row() -> None:
    client = make_client()
    key = issue_key(client=client, actor=None)
    prefix = client.keys.get().prefix

    assert key.startswith(f"vk_{prefix}_")
    assert prefix_of(key) == prefix
    assert find_client(key) == client
    assert find_client(f"vk_{prefix}_{'0' * 64}") is None  # the digest is of the whole key


@pytest.mark.parametrize("with_account", [True, False])
def test_the_client_of_a_key_is_a_stored_row(
    with_account: bool, django_assert_num_queries: Any
) -> None:
    """It has the values of its row and of its account, and reads no other until they are needed."""
    account = make_account() if with_account else None
    stored = make_client(account, allowed_networks=["10.0.0.0/8"], rate_limit_per_minute=7)
    key = make_key(stored)
    with django_assert_num_queries(1):
        client = find_client(key)
        assert client is not None
        found = (client.account, client.account_id, client.name, client.enabled)
        assert found == (account, stored.account_id, stored.name, True)
        assert (client.rate_limit_per_minute, client.allowed_networks) == (7, ["10.0.0.0/8"])
    with django_assert_num_queries(1):
        assert client.created_at is not None
    client.name = "Renamed"
    client.save(update_fields=["name"])
    assert ApiClient.objects.get(pk=stored.pk).name == "Renamed"
    if account is not None and client.account is not None:
        with django_assert_num_queries(1):
            assert client.account.name == account.name
            assert (client.account.currency, client.account.enabled) == ("USD", True)


@pytest.mark.parametrize("start", ["", "vk", "VK_", "vk__", "vk_b_", "vk_é_"])
def test_what_begins_otherwise_is_no_key(start: str) -> None:
    assert prefix_of(f"{start}{'0' * 12}_{'0' * 64}") == ""


@pytest.mark.parametrize(
    ("expires_in", "revoked_ago", "state", "live"),
    [
        (None, None, KeyState.LIVE, True),
        (HOUR, None, KeyState.ENDING, True),
        (timedelta(0), None, KeyState.EXPIRED, False),
        (-HOUR, None, KeyState.EXPIRED, False),
        (None, HOUR, KeyState.REVOKED, False),
        (HOUR, HOUR, KeyState.REVOKED, False),
        (-HOUR, HOUR, KeyState.REVOKED, False),
    ],
)
def test_the_api_queries_and_pages_agree_on_live_keys(
    merchant: Merchant,
    expires_in: timedelta | None,
    revoked_ago: timedelta | None,
    state: KeyState,
    live: bool,
) -> None:
    now = timezone.now()
    ApiKey.objects.update(
        expires_at=None if expires_in is None else now + expires_in,
        revoked_at=None if revoked_ago is None else now - revoked_ago,
    )

    key = ours(ApiKey).get()
    assert (key.state, key.is_live) == (state, live)
    assert ApiKey.objects.live().exists() is live
    assert live_key_counts() == {merchant.client: int(live)}
    assert (find_client(merchant.key) == merchant.client) is live


def test_live_keys_are_counted_for_each_client() -> None:
    busy, idle = make_client(), make_client()
    for _ in range(3):
        make_key(busy)
    revoke_key(key=busy.keys.earliest("pk"), actor=None)

    assert live_key_counts() == {busy: 2, idle: 0}


def live_key_counts() -> dict[ApiClient, int]:
    clients = ApiClient.objects.with_live_keys().filter(pk__in=ours(ApiClient))
    return {client: vars(client)["live_keys"] for client in clients}


def test_each_change_writes_an_entry_with_its_actor() -> None:
    client, user = make_client(), make_operator().user
    issued = prefix_of(issue_key(client=client, actor=user, note="for the shop"))
    rotated = prefix_of(rotate_key(client=client, overlap_hours=2, actor=user, note="leaked"))
    again = prefix_of(rotate_key(client=client, overlap_hours=0, actor=None))
    revoke_key(key=ApiKey.objects.get(prefix=again), actor=user, note="closed")

    entries = AuditEntry.objects.filter(object_id=str(client.pk)).order_by("pk")
    assert [(one.action, one.actor, one.reference, one.note) for one in entries] == [
        (AuditAction.KEY_ISSUED, user, issued, "for the shop"),
        (AuditAction.KEY_ROTATED, user, rotated, "2 h overlap. leaked"),
        (AuditAction.KEY_ROTATED, None, again, "0 h overlap."),
        (AuditAction.KEY_REVOKED, user, again, "closed"),
    ]


def test_a_second_revocation_changes_nothing() -> None:
    make_key(make_client())
    key, stale = ours(ApiKey).get(), ours(ApiKey).get()
    assert revoke_key(key=key, actor=None)

    assert not revoke_key(key=stale, actor=None)

    assert stale.revoked_at == key.revoked_at is not None
    assert recorded().count() == 1


@pytest.mark.parametrize("hours", [-1, MAX_OVERLAP_HOURS + 1, 10**30])
def test_an_overlap_out_of_range_changes_nothing(hours: int) -> None:
    client = make_client()
    make_key(client)

    with pytest.raises(InputProblem, match=f"from 0 to {MAX_OVERLAP_HOURS} hours"):
        rotate_key(client=client, overlap_hours=hours, actor=None)

    assert (ours(ApiKey).get().expires_at, recorded().count()) == (None, 0)


def test_the_longest_overlap_is_accepted() -> None:
    client = make_client()

    rotate_key(client=client, overlap_hours=MAX_OVERLAP_HOURS, actor=None)

    assert client.keys.live().count() == 1


CHANGES: dict[str, Callable[[ApiClient, User], object]] = {
    "issue": lambda client, user: issue_key(client=client, actor=user),
    "rotate": lambda client, user: rotate_key(client=client, overlap_hours=0, actor=user),
    "revoke": lambda client, user: revoke_key(key=client.keys.get(), actor=user),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_cannot_be_recorded_is_undone(
    change: Callable[[ApiClient, User], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, user = make_client(), make_operator().user
    make_key(client)
    before = list(ours(ApiKey).values())
    monkeypatch.setattr(AuditEntry.objects, "create", _fail)

    with pytest.raises(DatabaseError):
        change(client, user)

    assert list(ours(ApiKey).values()) == before


def _fail(**fields: object) -> None:
    raise DatabaseError("the audit trail cannot be written")
