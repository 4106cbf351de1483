"""`create_account` opens an account with its wallet, and posts its first balance as a deposit."""

import os
import pwd
from decimal import Decimal

import pytest

from accounts.models import Account
from core.inputs import InputProblem
from tests.commands import refusal, run
from tests.concurrency.racing import race
from tests.neighbour import ours
from wallets.models import LedgerEntry, Wallet
from wallets.provisioning import create_account

pytestmark = pytest.mark.django_db


def test_a_first_balance_is_a_deposit() -> None:
    printed = run("create_account", "Acme", "--balance", "100.00")

    assert printed == {
        "account_id": Account.objects.get(name="Acme").pk,
        "currency": "USD",
        "balance": Decimal("100.00"),
    }
    entry = ours(LedgerEntry).get()
    assert (entry.kind, entry.amount, entry.actor) == (
        "deposit",
        Decimal("100"),
        f"shell:{pwd.getpwuid(os.getuid()).pw_name}",
    )


def test_the_second_run_credits_nothing_and_reports_the_first() -> None:
    words = "create_account", "Acme", "--currency", "EUR", "--balance", "100.00"
    first = run(*words)
    run("payout", first["account_id"], "30", "--reference", "bank 1")

    assert run(*words) == {**first, "balance": Decimal("70.00")}
    assert ours(Account).count() == 1
    assert ours(LedgerEntry).filter(kind="deposit").count() == 1


@pytest.mark.parametrize("words", [[], ["--no-wallet"], ["--currency", "EUR"]])
def test_the_second_run_without_a_balance_reports_the_first(words: list[str]) -> None:
    first = run("create_account", "Acme", *words)

    assert run("create_account", " Acme ", *words) == first
    assert ours(Account).count() == 1


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--balance", "100.01"], "opening balance is 100.00. Book more with `deposit`"),
        ([], "opening balance is 100.00"),
        (["--balance", "100", "--currency", "EUR"], "currency is USD"),
        (["--no-wallet"], "has a wallet"),
    ],
)
def test_another_account_of_the_same_name_is_refused(words: list[str], line: str) -> None:
    run("create_account", "Acme", "--balance", "100.00")

    assert line in refusal("create_account", "Acme", *words)
    assert ours(Wallet).get().balance == 100


def test_money_booked_later_does_not_change_what_the_second_run_says() -> None:
    first = run("create_account", "Acme")
    run("deposit", first["account_id"], "5", "--reference", "bank 1")

    assert run("create_account", "Acme")["account_id"] == first["account_id"]
    assert "opening balance is 0.00" in refusal("create_account", "Acme", "--balance", "5")


@pytest.mark.django_db(transaction=True)
def test_simultaneous_runs_book_one_opening_balance() -> None:
    def create() -> str:
        try:
            create_account(
                name="Acme", currency="USD", balance=Decimal(5), with_wallet=True, actor="test"
            )
        except InputProblem as problem:
            return str(problem)
        return "created"

    told = race([create] * 4)

    assert told.count("created") >= 1
    assert ours(Account).count() == ours(Wallet).count() == ours(LedgerEntry).count() == 1


def test_a_wallet_starts_empty() -> None:
    assert run("create_account", "Acme", "--currency", "EUR")["balance"] == 0
    assert not ours(LedgerEntry).exists()


def test_an_account_may_have_no_wallet() -> None:
    assert run("create_account", "Acme", "--no-wallet")["balance"] is None
    assert not ours(Wallet).exists()


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
    assert not ours(Account).exists()
    assert not ours(LedgerEntry).exists()
