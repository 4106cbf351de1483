"""`deposit` and `payout` book to the last digit, and the same booking reference only once."""

import itertools
import os
import pwd
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis.extra.django import TestCase

from tests.commands import refusal, run
from tests.concurrency.racing import execute, holding_locks, race, scalar, start, wait_for_waiting
from tests.factories import make_account
from tests.generating import given, st
from tests.neighbour import ours
from wallets.booking_commands import book_deposit, book_payout
from wallets.models import LedgerEntry, Wallet

OS_USER = pwd.getpwuid(os.getuid()).pw_name
_numbers = itertools.count(1)


def reference() -> str:
    return f"--reference=bank {next(_numbers)}"


@pytest.mark.django_db
def test_a_deposit_credits_the_wallet() -> None:
    account = make_account(balance="1.00")

    words = "--reference", "bank transfer 4711", "--note", "paid in May"
    printed = run("deposit", account.pk, "250.5", *words)

    entry = ours(LedgerEntry).latest("pk")
    assert printed == {
        "account_id": account.pk,
        "entry_id": entry.pk,
        "kind": "deposit",
        "amount": Decimal("250.50"),
        "balance_after": Decimal("251.50"),
        "booking_reference": "bank transfer 4711",
        "already_booked": False,
    }
    assert (entry.note, entry.actor) == ("paid in May", f"shell:{OS_USER}")


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["deposit", "payout"])
def test_the_second_run_reports_the_first_booking(command: str) -> None:
    account = make_account(balance="30.00")
    words = command, account.pk, "20", "--reference", "bank 4711"

    first = run(*words)
    again = run(*words, "--note", "another note")

    assert first["already_booked"] is False
    assert again == {**first, "already_booked": True}
    assert LedgerEntry.objects.filter(booking_reference="bank 4711").count() == 1


@pytest.mark.django_db
def test_a_reference_that_was_used_for_something_else_is_refused() -> None:
    account, other = make_account(balance="10.00"), make_account(balance="10.00")
    run("deposit", account.pk, "20", "--reference", "bank 4711")
    why = (
        "Nothing was booked: the booking reference 'bank 4711' was used before, for a deposit of"
        f" 20.00 on account {account.pk}."
    )

    for words in (
        ("deposit", account.pk, "20.0001"),
        ("deposit", account.pk, "-20"),
        ("deposit", other.pk, "20"),
        ("payout", account.pk, "20"),
    ):
        assert refusal(*words, "--reference", "bank 4711") == why
    assert list(ours(Wallet).order_by("pk").values_list("balance", flat=True)) == [30, 10]


@pytest.mark.django_db
def test_a_repeated_payout_is_reported_even_if_the_money_is_gone() -> None:
    account = make_account(balance="10.00")
    words = "payout", account.pk, "10.00", "--reference", "bank 4711"

    assert run(*words)["balance_after"] == 0

    assert run(*words)["already_booked"] is True


@pytest.mark.django_db
def test_a_deposit_needs_a_reference() -> None:
    account = make_account(balance="10.00")

    assert "--reference" in refusal("deposit", account.pk, "5")
    assert "booking reference is empty" in refusal("deposit", account.pk, "5", "--reference", " ")
    for bad in ("x" * 101, "a\nb", "a\x00b"):
        assert "booking reference" in refusal("deposit", account.pk, "5", "--reference", bad)
    assert ours(Wallet).get().balance == 10


@pytest.mark.django_db(transaction=True)
def test_one_of_many_simultaneous_deposits_is_booked() -> None:
    account = make_account(balance="10.00")
    book = booking(book_deposit, account.pk, "5")

    printed = race([book] * 6)

    assert sorted(one["already_booked"] for one in printed) == [False] + [True] * 5
    assert len({one["entry_id"] for one in printed}) == 1
    assert ours(Wallet).get().balance == 15


@pytest.mark.django_db(transaction=True)
def test_a_payout_that_waited_for_the_same_payout_reports_it() -> None:
    """The first one takes all the money: the second must not say that there is not enough."""
    account = make_account(balance="10.00")
    book = booking(book_payout, account.pk, "10")

    printed = both_after_the_check(account.pk, book)

    assert sorted(one["already_booked"] for one in printed) == [False, True]
    assert ours(Wallet).get().balance == 0


@pytest.mark.django_db(transaction=True)
def test_control_without_the_unique_reference_two_deposits_are_booked() -> None:
    account = make_account(balance="10.00")
    book = booking(book_deposit, account.pk, "5")

    definition = scalar("SELECT pg_get_indexdef('wallets_entry_once_per_booking'::regclass)")
    execute("DROP INDEX wallets_entry_once_per_booking")
    execute("ALTER TABLE wallets_ledgerentry DISABLE TRIGGER wallets_booking_has_its_key")
    try:
        both_after_the_check(account.pk, book)
        balance = ours(Wallet).get().balance
    finally:
        execute("SET session_replication_role = replica")
        execute("DELETE FROM wallets_ledgerentry")
        execute("SET session_replication_role = origin")
        execute("ALTER TABLE wallets_ledgerentry ENABLE TRIGGER wallets_booking_has_its_key")
        execute(definition)

    assert balance == 20


def booking(book: Any, account_id: int, amount: str) -> Any:
    """A booking of this amount under one reference, to run several times."""
    return partial(
        book,
        account_id=account_id,
        amount=Decimal(amount),
        booking_reference="bank 4711",
        actor="test",
    )


def both_after_the_check(wallet: int, book: Any) -> list[Any]:
    """Runs two bookings that both wait for the wallet, after both looked for the reference."""
    lock = "SELECT FROM wallets_wallet WHERE account_id = %s FOR UPDATE"
    with ThreadPoolExecutor(2) as pool:
        with holding_locks(lock, wallet):
            futures = [start(pool, book) for _ in range(2)]
            wait_for_waiting(2)
        return [future.result() for future in futures]


@pytest.mark.django_db
@pytest.mark.parametrize("amount", ["-5.00", "-5", "-.5", "-0.0001"])
def test_a_negative_amount_is_an_adjustment(amount: str) -> None:
    account = make_account(balance="10.00")

    printed = run("deposit", account.pk, amount, reference(), "--note", "x")

    assert printed["kind"] == "adjustment"
    assert printed["balance_after"] == Decimal("10.00") + Decimal(amount)


@pytest.mark.django_db
def test_a_payout_takes_money_from_the_wallet() -> None:
    account = make_account(balance="10.00")

    printed = run("payout", account.pk, "4.50", reference())

    assert (printed["kind"], printed["amount"], printed["balance_after"]) == (
        "payout",
        Decimal("-4.50"),
        Decimal("5.50"),
    )
    assert ours(LedgerEntry).latest("pk").counterpart == "bank"
    for bad, line in {"5.51": "below zero", "0": "more than zero", "-1": "more than zero"}.items():
        assert line in refusal("payout", account.pk, bad, reference())
    assert ours(Wallet).get().balance == Decimal("5.50")


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

    assert line in refusal("deposit", account.pk, amount, reference())

    assert ours(Wallet).get().balance == Decimal("10.00")


@pytest.mark.django_db
def test_an_account_without_a_wallet_is_refused() -> None:
    account = make_account(wallet=False)

    assert "has no wallet" in refusal("deposit", account.pk, "5", reference())
    assert refusal("deposit", 999999, "5", reference()) == "There is no account 999999."


@pytest.mark.django_db
@pytest.mark.parametrize("note", ["x" * 501, "a\x00b", "a\nb"])
def test_a_bad_note_is_refused(note: str) -> None:
    assert "note" in refusal("deposit", make_account().pk, "5", reference(), "--note", note)


class AnyAmounts(TestCase):
    @given(st.lists(st.decimals(-50, 10**9, places=4), max_size=8))
    def test_the_wallet_holds_the_sum_of_what_was_booked(self, amounts: list[Decimal]) -> None:
        account = make_account(balance="0")
        booked = Decimal(0)

        for amount in amounts:
            if amount == 0 or booked + amount < 0:
                refusal("deposit", account.pk, f"{amount:f}", reference())
            else:
                booked += amount
                printed = run("deposit", account.pk, f"{amount:f}", reference())
                assert printed["balance_after"] == booked

        assert ours(Wallet).get().balance == booked


@pytest.mark.django_db
@pytest.mark.parametrize("other", ["inv202604A", " INV 2026 04 a ", "Inv.2026/04-A"])
def test_references_are_compared_without_case_spaces_and_punctuation(other: str) -> None:
    account = make_account(balance="10.00")
    run("deposit", account.pk, "20", "--reference", "INV-2026/04 a")

    assert run("deposit", account.pk, "20", "--reference", other)["already_booked"] is True
    assert "'INV-2026/04 a' was used before" in refusal(
        "deposit", account.pk, "21", "--reference", other
    )


@pytest.mark.django_db
@pytest.mark.parametrize("other", ["INV-2026/04 b", "4711", "/", "+/"])
def test_other_references_are_other_bookings(other: str) -> None:
    account = make_account(balance="10.00")
    run("deposit", account.pk, "20", "--reference", "INV-2026/04 a")
    run("deposit", account.pk, "20", "--reference", "-")

    assert run("deposit", account.pk, "20", "--reference", other)["already_booked"] is False


@pytest.mark.django_db(transaction=True)
def test_two_spellings_of_a_reference_at_once_are_booked_once() -> None:
    account = make_account(balance="10.00")

    told = race([partial(spelled, account.pk, text) for text in ("a-1", "A1", "a 1", "A/1")])

    assert sorted(told) == [False, True, True, True]
    assert ours(Wallet).get().balance == 15


@pytest.mark.django_db(transaction=True)
def test_control_without_the_key_two_spellings_are_booked_twice() -> None:
    account = make_account(balance="10.00")

    execute("ALTER TABLE wallets_ledgerentry DISABLE TRIGGER wallets_booking_has_its_key")
    try:
        told = [spelled(account.pk, text) for text in ("a-1", "A1")]
    finally:
        execute("ALTER TABLE wallets_ledgerentry ENABLE TRIGGER wallets_booking_has_its_key")

    assert told == [False, False]
    assert ours(Wallet).get().balance == 20


def spelled(account_id: int, reference: str) -> bool:
    """Whether a deposit of 5 with this reference was booked before."""
    booked = book_deposit(
        account_id=account_id, amount=Decimal(5), booking_reference=reference, actor="test"
    )
    return bool(booked["already_booked"])
