"""A booking is reversed once, by an entry with the opposite amount, and a reversal never."""

import re
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from core.backoffice.staff_roles import StaffRole
from operators.upkeep.reconcile import reconcile
from orders.remedies import bookings
from orders.remedies.credits import credit_order
from tests.concurrency.racing import execute, race, weakened_sql
from tests.factories import (
    adjust,
    buy_topup,
    deposit,
    make_account,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
    new_booking_reference,
)
from tests.operators.back_office import list_url, make_staff, signed_in, url
from topups.fulfilment.transitions import Move
from topups.models import Channel
from wallets import services
from wallets.models import BookingApproval, EntryKind, LedgerEntry, Wallet
from wallets.services import AlreadyBooked, BadBooking, pay_out, reverse

pytestmark = pytest.mark.django_db(transaction=True)


def finance() -> User:
    user = make_staff()
    user.groups.add(Group.objects.get(name=StaffRole.FINANCE.value))
    return user


def balance(entry: LedgerEntry) -> Decimal:
    return Wallet.objects.get(pk=entry.wallet_id).balance


def credit(reference: str, amount: str = "1") -> LedgerEntry:
    return credit_order(
        reference=reference,
        amount=Decimal(amount),
        note="Sorry",
        actor="admin:anna",
        channel=Channel.ADMIN,
        booking_reference=new_booking_reference(),
    )


def booking(entry: LedgerEntry, user: User) -> BookingApproval:
    return BookingApproval(
        wallet=entry.wallet,
        kind=entry.kind,
        amount=-entry.amount,
        order_reference=entry.order_reference,
        note="typed twice",
        booking_reference=entry.reversal_reference,
        asked_by=user,
    )


def test_an_entry_is_reversed_on_its_page_once() -> None:
    browser = signed_in(finance())
    entry = deposit(account=make_account(balance="10.00"), amount=Decimal("25.50"))
    assert "Reverse this entry" in browser.get(url(entry)).content.decode()

    question = browser.get(url(entry, "reverse")).content.decode()
    assert "Balance after: 10.00 USD" in question
    for _ in range(2):
        browser.post(url(entry, "reverse"), {"reason": "typed twice"})

    reversal = LedgerEntry.objects.latest("pk")
    assert (reversal.kind, reversal.amount) == ("deposit", Decimal("-25.50"))
    assert balance(entry) == 10
    page = browser.get(url(entry)).content.decode()
    assert "Reversed by" in page
    assert "Reverse this entry" not in page
    assert "Reverses" in browser.get(url(reversal)).content.decode()
    entries = browser.get(list_url(LedgerEntry)).content.decode()
    badges = re.findall(r">\s*(reversed|reversal)\s*<", entries)
    assert sorted(badges) == ["reversal", "reversed"]
    assert browser.get(url(reversal, "reverse")).status_code == 404
    with pytest.raises(BadBooking):
        reverse(entry=reversal, actor="admin:anna", note="back again")
    assert reconcile()["ok"] is True


def test_payouts_and_credits_are_reversed() -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="20.00", codes=1)
    reference = merchant.buy(product_id=product.pk, quantity=1).json()["data"]["reference"]
    account = merchant.account
    paid = pay_out(account=account, amount=Decimal(30), actor="a", booking_reference="p1")
    credited = credit(reference, "5")

    for entry in (paid, credited):
        bookings.book_or_ask(booking=booking(entry, finance()))

    assert balance(paid) == 80
    assert credit(reference, "20")  # all of the price is left again
    assert reconcile()["ok"] is True


def test_a_purchase_is_not_reversed() -> None:
    merchant = make_merchant(balance="100.00")
    merchant.buy(product_id=make_product(price="20.00", codes=1).pk, quantity=1)
    entry = LedgerEntry.objects.filter(kind=EntryKind.PURCHASE).latest("pk")

    assert signed_in().get(url(entry, "reverse")).status_code == 404
    with pytest.raises(BadBooking):
        reverse(entry=entry, actor="admin:anna", note="no")


def test_a_reversal_takes_no_money_that_was_spent() -> None:
    account = make_account(balance="0")
    entry = deposit(account=account, amount=Decimal(50))
    pay_out(account=account, amount=Decimal(30), actor="a", booking_reference="p2")

    answer = signed_in(finance()).post(url(entry, "reverse"), {"reason": "x"}, follow=True)

    assert "Nothing was booked" in " ".join(map(str, answer.context["messages"]))
    assert balance(entry) == 20


def test_a_large_reversal_waits_for_another_person() -> None:
    entry = deposit(account=make_account(balance="0"), amount=Decimal(20_000))
    anna, ben = finance(), finance()

    signed_in(anna).post(url(entry, "reverse"), {"reason": "wrong account"})
    waiting = BookingApproval.objects.get()
    assert balance(entry) == 20_000
    assert f"/{entry.pk}/" in signed_in(ben).get(url(waiting)).content.decode()
    signed_in(ben).post(url(waiting, "approve"))

    assert balance(entry) == 0
    assert reconcile()["ok"] is True


def test_the_credit_of_a_failed_top_up_is_not_reversed() -> None:
    merchant = make_merchant()
    reference = buy_topup(merchant, make_topup_product(price="5"))
    entry = credit(reference, "2")
    move_now(reference=reference, move=Move.REJECT, operator=make_operator())

    with pytest.raises(BadBooking, match="failed"):
        bookings.book_or_ask(booking=booking(entry, finance()))


def test_the_credit_of_an_open_top_up_is_reversed() -> None:
    merchant = make_merchant()
    entry = credit(buy_topup(merchant, make_topup_product(price="5")), "2")

    bookings.book_or_ask(booking=booking(entry, finance()))

    assert reconcile()["ok"] is True


@pytest.mark.parametrize(
    "reference", ["reversal-of-entry:1", "reversal-of-entry:x", "Reversal of entry 1"]
)
def test_nobody_books_under_the_reference_of_a_reversal(reference: str) -> None:
    account = make_account(balance="0")

    with pytest.raises(BadBooking, match="for reversals"):
        services.deposit(account=account, amount=Decimal(7), actor="a", booking_reference=reference)


def test_another_spelling_reverses_no_entry_again() -> None:
    account = make_account(balance="500")
    entry = adjust(account=account, amount=Decimal(50), note="correction")
    reverse(entry=entry, actor="admin:anna", note="twice")

    with pytest.raises(BadBooking, match="for reversals"):
        services.adjust(
            account=account,
            amount=Decimal(-50),
            actor="admin:anna",
            note="again",
            booking_reference=f"reversal-of-entry:0{entry.pk}",
        )
    assert balance(entry) == 500


def outcome(entry: LedgerEntry) -> str:
    try:
        reverse(entry=entry, actor="admin:anna", note="twice")
    except AlreadyBooked:
        return "already"
    return "reversed"


def test_simultaneous_reversals_book_one() -> None:
    entry = deposit(account=make_account(balance="500"), amount=Decimal(50))

    told = race([partial(outcome, entry)] * 5)

    assert sorted(told) == ["already"] * 4 + ["reversed"]
    assert balance(entry) == 500
    assert reconcile()["findings"] == []


def test_control_without_the_unique_references_an_entry_is_reversed_twice() -> None:
    entry = deposit(account=make_account(balance="500"), amount=Decimal(50))
    copy: Any = (
        "INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, amount, balance_after,"
        f" actor, booking_reference) SELECT {entry.wallet_id}, 'deposit', 'bank', -50, 0, 'a',"
    )
    with weakened_sql(
        "wallets/sql/reversals.sql",
        ("'^reversal-of-entry:([0-9]{1,18})$'", "'^reversal-of-entry:([0-9]{1,18})'"),
        ("NEW.booking_reference = 'reversal-of-entry:' || id", "true"),
    ):
        for suffix in ("", " again"):
            execute(f"{copy} 'reversal-of-entry:{entry.pk}{suffix}'")

    assert balance(entry) == 450
    found = {finding["check"] for finding in reconcile()["findings"]}
    assert "each reversal is the opposite of a booking that is no reversal" in found
