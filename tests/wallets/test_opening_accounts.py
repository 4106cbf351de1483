"""`create_account` opens an account with its wallet, and posts its first balance as a deposit."""

from decimal import Decimal

import pytest

from accounts.models import Account
from tests.commands import refusal, run
from wallets.models import LedgerEntry, Wallet

pytestmark = pytest.mark.django_db


def test_a_first_balance_is_a_deposit() -> None:
    printed = run("create_account", "Acme", "--balance", "100.00")

    assert printed == {
        "account_id": Account.objects.get(name="Acme").pk,
        "currency": "USD",
        "balance": Decimal("100.00"),
    }
    entry = LedgerEntry.objects.get()
    assert (entry.kind, entry.amount, entry.actor) == (
        "deposit",
        Decimal("100"),
        "command:create_account",
    )


def test_a_wallet_starts_empty() -> None:
    assert run("create_account", "Acme", "--currency", "EUR")["balance"] == 0
    assert not LedgerEntry.objects.exists()


def test_an_account_may_have_no_wallet() -> None:
    assert run("create_account", "Acme", "--no-wallet")["balance"] is None
    assert not Wallet.objects.exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["Acme", "--currency", "usd"], "currency: "),
        (["Acme", "--currency", "USD\n"], "currency: "),
        (["Acme", "--currency", ""], "currency: "),
        (["Acme", "--currency", "ÄÖÜ"], "currency: "),
        (["Acme", "--balance", "NaN"], "number"),
        (["Acme", "--balance", "sNaN"], "number"),
        (["Acme", "--balance", "Infinity"], "number"),
        (["Acme", "--balance", "1e400"], "number"),
        (["Acme", "--balance", "1e9999999999"], "number"),
        (["Acme", "--balance", "ten"], "number"),
        (["Acme", "--balance", "0.00001"], "decimals"),
        (["Acme", "--balance", "1.00000000000000000000000000000000001"], "decimals"),
        (["Acme", "--balance", "1" + "0" * 16], "too large"),
        (["Acme", "--balance=-5"], "below zero"),
        (["Acme", "--balance", "5", "--no-wallet"], "wallet"),
        ([" "], "name"),
        (["x" * 201], "name"),
        (["a\x00b"], "name"),
    ],
)
def test_a_bad_account_is_refused_whole(words: list[str], line: str) -> None:
    assert line in refusal("create_account", *words)
    assert not Account.objects.exists()
    assert not LedgerEntry.objects.exists()
