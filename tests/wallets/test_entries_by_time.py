"""Entries of a wallet since a moment are found among those of other wallets."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from core.database.functions import query
from tests.commands import run
from tests.factories import make_account
from wallets.models import LedgerEntry

pytestmark = pytest.mark.django_db

_numbers = itertools.count(1)
EARLY, LATE = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def entries_since(account_id: int, moment: datetime) -> int:
    found: int = query("wallets_entries_since", account_id, moment)[0]["wallets_entries_since"]
    return found


@pytest.mark.parametrize("mine", [0, 1, 2])
def test_the_entries_of_other_wallets_do_not_matter(mine: int) -> None:
    """Whether the other wallets are older or newer, and their entries earlier or later."""
    accounts = [make_account(balance="1.00") for _ in range(3)]
    for _ in range(4):
        for account in (*accounts, *reversed(accounts)):
            run("deposit", account.pk, "1", "--reference", next(_numbers))
    wallet = accounts[mine].pk
    ids = list(
        LedgerEntry.objects.filter(wallet=wallet).order_by("pk").values_list("pk", flat=True)
    )
    assert entries_since(wallet, EARLY) == ids[0]
    assert entries_since(wallet, LATE) == ids[-1] + 1
    assert entries_since(wallet, timezone.now() + timedelta(seconds=1)) == ids[-1] + 1


def test_an_entry_at_the_moment_itself_counts() -> None:
    wallet = make_account(balance="1.00").pk
    entry = LedgerEntry.objects.get(wallet=wallet)

    assert entries_since(wallet, entry.created_at) == entry.pk
    assert entries_since(wallet, entry.created_at + timedelta(microseconds=1)) == entry.pk + 1
