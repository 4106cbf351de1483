"""`deposit` credits a wallet, or corrects it by a negative amount, to the last digit."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from tests.commands import refusal, run
from tests.factories import make_account
from wallets.models import LedgerEntry, Wallet


@pytest.mark.django_db
def test_a_deposit_credits_the_wallet() -> None:
    account = make_account(balance="1.00")

    printed = run("deposit", account.pk, "250.5", "--note", "bank transfer 4711")

    entry = LedgerEntry.objects.latest("pk")
    assert printed == {
        "account_id": account.pk,
        "entry_id": entry.pk,
        "kind": "deposit",
        "amount": Decimal("250.50"),
        "balance": Decimal("251.50"),
    }
    assert (entry.note, entry.actor) == ("bank transfer 4711", "command:deposit")


@pytest.mark.django_db
@pytest.mark.parametrize("amount", ["-5.00", "-5", "-.5", "-0.0001"])
def test_a_negative_amount_is_an_adjustment(amount: str) -> None:
    account = make_account(balance="10.00")

    printed = run("deposit", account.pk, amount, "--note", "x")

    assert printed["kind"] == "adjustment"
    assert printed["balance"] == Decimal("10.00") + Decimal(amount)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("amount", "line"),
    [
        ("0", "zero"),
        ("-0.00", "zero"),
        ("-10.01", "below zero"),
        ("NaN", "number"),
        ("-NaN", ""),
        ("1e400", "number"),
        ("1e-400", "number"),
        ("0.00001", "decimals"),
        ("1,5", "number"),
        ("", "number"),
        ("9999999999999999", "numeric field overflow"),
        ("99999999999999999", "too large"),
    ],
)
def test_a_bad_amount_is_refused(amount: str, line: str) -> None:
    account = make_account(balance="10.00")

    assert line in refusal("deposit", account.pk, amount)

    assert Wallet.objects.get().balance == Decimal("10.00")


@pytest.mark.django_db
def test_an_account_without_a_wallet_is_refused() -> None:
    account = make_account(wallet=False)

    assert refusal("deposit", account.pk, "5") == f"Account {account.pk} has no wallet."
    assert refusal("deposit", 999999, "5") == "There is no account 999999."


@pytest.mark.django_db
@pytest.mark.parametrize("note", ["x" * 501, "a\x00b", "a\nb"])
def test_a_bad_note_is_refused(note: str) -> None:
    assert "note" in refusal("deposit", make_account().pk, "5", "--note", note)


class AnyAmounts(TestCase):
    @given(st.lists(st.decimals(-50, 10**9, places=4), max_size=8))
    def test_the_wallet_holds_the_sum_of_what_was_booked(self, amounts: list[Decimal]) -> None:
        account = make_account(balance="0")
        booked = Decimal(0)

        for amount in amounts:
            if amount == 0 or booked + amount < 0:
                refusal("deposit", account.pk, f"{amount:f}")
            else:
                booked += amount
                assert run("deposit", account.pk, f"{amount:f}")["balance"] == booked

        assert Wallet.objects.get().balance == booked
