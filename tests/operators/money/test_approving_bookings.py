"""A booking above its maker's limit waits for another person, and is then booked once."""

import csv
import io
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, ProgrammingError
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from core.backoffice.staff_roles import StaffRole
from core.inputs import InputProblem
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from orders.remedies import bookings
from tests.concurrency.racing import execute, in_background, race, weakened_sql
from tests.factories import deposit, make_account, make_merchant, make_product
from tests.operators.back_office import list_url, make_approval, make_staff, signed_in, url
from wallets import approvals, limits
from wallets.approvals import VALID_FOR, reject_booking
from wallets.limits import DEFAULT_LIMIT, Limits, limits_of
from wallets.models import (
    ApprovalState,
    BookedAlone,
    BookingApproval,
    BookingLimit,
    EntryKind,
    LedgerEntry,
    Wallet,
)
from wallets.services import AlreadyBooked

pytestmark = pytest.mark.django_db(transaction=True)


def finance() -> User:
    user = make_staff()
    user.groups.add(Group.objects.get(name=StaffRole.FINANCE.value))
    return user


def send(browser: Client, wallet: Wallet, **changes: str) -> Any:
    form = {
        "kind": "deposit",
        "amount": "25000000",
        "reason": "transfer",
        "reference": "INV-2026/04 a",
        "form_id": str(uuid4()),
        **changes,
    }
    return browser.post(url(wallet, "book"), form, follow=True)


def new_wallet() -> Wallet:
    return Wallet.objects.get(account=make_account(balance="100.00"))


def balance(wallet: Wallet) -> Decimal:
    return Wallet.objects.get(pk=wallet.pk).balance


def test_a_large_deposit_waits_and_another_person_books_it() -> None:
    anna, ben, wallet = finance(), finance(), new_wallet()

    question = send(signed_in(anna), wallet).content.decode()
    assert "This is above your limit of 10,000.00 USD." in question
    assert "Ask for approval" in question
    assert "Confirm deposit" not in question
    send(signed_in(anna), wallet, confirmed="1")
    waiting = BookingApproval.objects.get()
    assert balance(wallet) == 100
    assert "Approve…" not in signed_in(anna).get(url(waiting)).content.decode()
    signed_in(anna).post(url(waiting, "approve"))
    assert balance(wallet) == 100

    page = signed_in(ben).get(url(waiting)).content.decode()
    assert "Approve…" in page
    assert "Balance after" in page
    assert "25,000,100.00 USD" in page
    signed_in(ben).post(url(waiting, "approve"))

    assert balance(wallet) == 25_000_100
    assert "25,000,100.00 USD" in signed_in(ben).get(url(waiting)).content.decode()
    entry = LedgerEntry.objects.get(approval=waiting)
    assert (entry.actor, entry.note) == (f"admin:{anna.username}", "transfer")
    approved = AuditEntry.objects.get(action=AuditAction.BOOKING_APPROVED)
    assert approved.actor == ben
    row = f'href="{url(waiting)}" class="text-link">{ben.username}</a>'
    assert row in signed_in(anna).get(url(entry)).content.decode()
    assert reconcile()["ok"] is True
    again = signed_in(ben).post(url(waiting, "approve"), follow=True)
    assert "no longer waits" in " ".join(map(str, again.context["messages"]))
    assert balance(wallet) == 25_000_100


def test_a_reversal_that_waits_says_what_it_reverses() -> None:
    anna, ben, wallet = finance(), finance(), new_wallet()
    entry = deposit(account=wallet.account, amount=Decimal(25_000_000), actor="admin:anna")
    done = signed_in(anna).post(
        url(entry, "reverse"),
        {"reason": "twice", "confirmed": "1", "form_id": str(uuid4())},
        follow=True,
    )
    assert f"must approve it: {ben.username}" in done.text
    waiting = BookingApproval.objects.get()
    asked = AuditEntry.objects.get(action=AuditAction.BOOKING_ASKED)
    assert asked.reference == entry.booking_reference

    question = signed_in(ben).get(url(waiting, "approve")).text
    assert "Reverse this deposit of 25,000,000.00 USD" in question
    assert "Compare it with <a" in question
    assert url(entry) in question
    assert "the bank's record" not in question
    assert "Deposit, reversal" in signed_in(ben).get(url(waiting)).text


@pytest.mark.parametrize("language", ["en", "de"])
def test_an_entry_whose_reversal_waits_says_so_and_offers_no_second_one(language: str) -> None:
    anna, ben, wallet = finance(), finance(), new_wallet()
    entry = deposit(account=wallet.account, amount=Decimal(25_000_000), actor="admin:anna")
    signed_in(anna).post(url(entry, "reverse"), {"reason": "twice"})
    waiting = BookingApproval.objects.get()
    reader = make_staff("wallets.view_ledgerentry")

    browser, headers = signed_in(ben), {"Accept-Language": language}
    page = browser.get(url(entry), headers=headers).text
    words = {"en": f"{anna} asked for a reversal on ", "de": f"{anna} hat am "}
    assert words[language] in page
    assert f'href="{url(waiting)}"' in page
    assert url(entry, "reverse") not in page
    assert url(entry, "reverse") not in browser.get(list_url(LedgerEntry)).text
    badge = {"en": "reversal waits", "de": "Umkehrung wartet"}
    assert badge[language] in browser.get(list_url(LedgerEntry), headers=headers).text
    page = signed_in(reader).get(url(entry), headers=headers).text
    assert words[language] in page
    assert url(waiting) not in page
    again = browser.post(url(entry, "reverse"), {"reason": "twice"}, follow=True)
    assert "waits for approval already" in " ".join(map(str, again.context["messages"]))
    assert not LedgerEntry.objects.filter(booking_reference=entry.reversal_reference).exists()

    signed_in(anna).post(url(waiting, "reject"), {"note": ""})

    assert url(entry, "reverse") in browser.get(url(entry)).text


def test_the_audit_trail_names_who_asked_and_who_approved() -> None:
    anna, ben, wallet = finance(), finance(), new_wallet()
    send(signed_in(anna), wallet, confirmed="1")
    signed_in(ben).post(url(BookingApproval.objects.get(), "approve"))
    entry = LedgerEntry.objects.latest("pk")
    signed_in(anna).post(url(entry, "reverse"), {"reason": "twice"})
    signed_in(ben).post(url(BookingApproval.objects.latest("pk"), "approve"))
    send(signed_in(ben), wallet, amount="1", reference="alone", reason="alone", confirmed="1")

    browser = signed_in(make_staff(superuser=True))
    file = browser.get(reverse("audit_trail_file")).content.decode("utf-8-sig")
    changes = {
        (line["action"], line["note"]): line["changes"]
        for line in csv.DictReader(io.StringIO(file))
    }
    both = f"asked by: - → {anna}; approved by: - → {ben}"
    for action, note in (
        *(("Booking approved", "transfer"), ("Deposit booked", "transfer")),
        *(("Booking approved", "twice"), ("Booking reversed", "twice")),
    ):
        assert both in changes[action, note], (action, note)
    for action in ("Approval of a booking requested", "Booking approved"):
        assert "kind: - → Reversal" in changes[action, "twice"]
        assert "kind: - → deposit" in changes[action, "transfer"]
    assert "approved by" not in changes["Deposit booked", "alone"]
    rows = browser.get(reverse("audit_trail")).context["rows"]
    kinds = [new for row in rows for name, _, new in row.changes if name == "kind"]
    assert kinds == ["Reversal", "Reversal", "Deposit", "Deposit"]


def test_a_large_credit_waits_too() -> None:
    merchant = make_merchant(balance="50000.00")
    product = make_product(price="20000.00", codes=1)
    order = merchant.buy(product_id=product.pk, quantity=1).json()["data"]
    anna, ben = finance(), finance()
    form = {"amount": "20000", "note": "Sorry", "form_id": str(uuid4()), "confirmed": "1"}

    row = Order.objects.get(reference=order["reference"])
    signed_in(anna).post(url(row, "credit"), form)
    waiting = BookingApproval.objects.get()
    bookings.approve(booking=waiting, actor=ben)

    entry = LedgerEntry.objects.get(kind=EntryKind.CREDIT)
    assert entry.amount == 20_000
    assert entry.order_reference == order["reference"]
    assert reconcile()["ok"] is True


def test_the_same_form_asks_once() -> None:
    browser, wallet, form_id = signed_in(finance()), new_wallet(), str(uuid4())

    for _ in range(2):
        send(browser, wallet, form_id=form_id, confirmed="1")

    assert BookingApproval.objects.count() == 1


def test_another_person_cannot_ask_with_a_waiting_reference() -> None:
    wallet = new_wallet()
    send(signed_in(finance()), wallet, confirmed="1")

    refused = send(signed_in(finance()), wallet, confirmed="1")

    assert "waits for approval already" in " ".join(map(str, refused.context["messages"]))
    assert BookingApproval.objects.count() == 1


@pytest.mark.parametrize("language", ["en", "de"])
def test_makers_withdraw_and_others_reject(language: str) -> None:
    anna, ben, wallet = finance(), finance(), new_wallet()
    for who, state in ((anna, "withdrawn"), (ben, "rejected")):
        send(signed_in(anna), wallet, confirmed="1")
        waiting = BookingApproval.objects.latest("pk")
        page = signed_in(who).get(url(waiting)).content.decode()
        assert ("Withdraw…" in page, "Reject…" in page) == (who == anna, who == ben)
        assert "nobody yet" in page
        signed_in(who).post(
            url(waiting, "reject"), {"note": "twice"}, headers={"Accept-Language": language}
        )
        waiting.refresh_from_db()
        assert waiting.state == state
        decided = f"nobody: {anna} withdrew it" in signed_in(ben).get(url(waiting)).content.decode()
        assert decided == (who == anna)
        assert bookings.approve(booking=waiting, actor=ben) is None
    assert balance(wallet) == 100
    assert reconcile()["ok"] is True


def test_only_people_with_the_right_decide() -> None:
    waiting = make_approval(make_account())
    reader = signed_in(make_staff("wallets.view_bookingapproval", "wallets.move_money"))

    assert reader.post(url(waiting, "approve")).status_code == 403
    assert reader.post(url(waiting, "reject"), {"note": ""}).status_code == 403


def test_an_old_request_expires_and_can_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    anna, ben, wallet = finance(), finance(), new_wallet()
    past = timezone.now() - VALID_FOR - timedelta(hours=1)
    with monkeypatch.context() as patch:
        patch.setattr("wallets.approvals.timezone.now", lambda: past)
        send(signed_in(anna), wallet, confirmed="1")
    old = BookingApproval.objects.get()

    assert bookings.approve(booking=old, actor=ben) is None
    assert not reject_booking(booking=old, actor=ben, note="")
    assert "expired" in signed_in(ben).get(url(old)).content.decode()
    send(signed_in(anna), wallet, confirmed="1")

    old.refresh_from_db()
    assert old.state == "expired"
    assert bookings.approve(booking=BookingApproval.objects.latest("pk"), actor=ben)


def test_a_booking_that_became_impossible_still_waits() -> None:
    anna, ben = finance(), finance()
    wallet = Wallet.objects.get(account=make_account(balance="30000.00"))
    send(signed_in(anna), wallet, kind="payout", amount="20000", confirmed="1")
    BookingLimit.objects.create(
        group=Group.objects.get(name="Finance"), kind="payout", amount=40_000
    )
    send(signed_in(anna), wallet, kind="payout", amount="15000", reference="b2", confirmed="1")

    waiting = BookingApproval.objects.get()
    answer = signed_in(ben).post(url(waiting, "approve"), follow=True)

    assert "Nothing was booked" in " ".join(map(str, answer.context["messages"]))
    waiting.refresh_from_db()
    assert waiting.state == "waiting"
    assert balance(wallet) == 15_000


def test_the_highest_limit_of_a_persons_groups_counts() -> None:
    user = finance()
    group, other = user.groups.get(), Group.objects.create(name="Treasury")

    def limit() -> Decimal:
        return limits_of(user, kind=EntryKind.DEPOSIT, currency="USD").booking

    assert limit() == DEFAULT_LIMIT
    for currency, value in (("", 500), ("EUR", 1)):
        BookingLimit.objects.create(group=group, kind="deposit", currency=currency, amount=value)
    assert limit() == 500
    BookingLimit.objects.create(group=group, kind="deposit", currency="USD", amount=70)
    assert limit() == 70
    BookingLimit.objects.create(group=other, kind="deposit", amount=900)
    assert limit() == 70
    user.groups.add(other)
    assert limit() == 900
    assert limits_of(user, kind=EntryKind.PAYOUT, currency="USD") == (
        DEFAULT_LIMIT,
        10 * DEFAULT_LIMIT,
    )


def test_many_bookings_below_the_limit_wait_above_the_sum_of_a_day() -> None:
    anna, ben, wallet = finance(), finance(), new_wallet()
    BookingLimit.objects.create(
        group=anna.groups.get(), kind="deposit", currency="USD", amount=100, per_day=250
    )
    for number, kind in ((1, "deposit"), (2, "deposit"), (3, "adjustment")):
        send(signed_in(anna), wallet, kind=kind, amount="100", reference=f"{number}", confirmed="1")
    assert balance(wallet) == 400

    question = send(signed_in(anna), wallet, amount="100", reference="b4").content.decode()
    assert "above your limit of 250.00 USD for all deposits of a day" in question
    send(signed_in(anna), wallet, amount="100", reference="b4", confirmed="1")
    send(signed_in(anna), wallet, amount="50", reference="b5", confirmed="1")
    assert balance(wallet) == 450
    send(signed_in(ben), wallet, amount="100", reference="b6", confirmed="1")
    assert balance(wallet) == 550

    bookings.approve(booking=BookingApproval.objects.get(), actor=ben)
    assert balance(wallet) == 650
    sums = BookedAlone.objects.filter(kind="deposit")
    assert {row.user: int(row.amount) for row in sums} == {ben: 100, anna: 250}


def test_a_refused_booking_does_not_count() -> None:
    anna, wallet = finance(), new_wallet()

    send(signed_in(anna), wallet, kind="payout", amount="500", confirmed="1")

    assert balance(wallet) == 100
    assert not BookedAlone.objects.exists()


# --- At the same time ----------------------------------------------------------------------------


def outcome(call: Callable[[], Any]) -> str:
    try:
        return "done" if call() else "nothing"
    except (InputProblem, AlreadyBooked):
        return "refused"


def test_simultaneous_decisions_have_one_outcome() -> None:
    for _ in range(5):
        account = make_account(balance="0")
        waiting = make_approval(account)
        ben, carla = finance(), finance()
        told = race(
            [
                partial(outcome, partial(bookings.approve, booking=waiting, actor=ben)),
                partial(outcome, partial(bookings.approve, booking=waiting, actor=carla)),
                partial(
                    outcome,
                    partial(reject_booking, booking=waiting, actor=waiting.asked_by, note=""),
                ),
                partial(
                    outcome, partial(bookings.approve, booking=waiting, actor=waiting.asked_by)
                ),
            ]
        )
        assert told[:3].count("done") == 1
        assert told[3] != "done"
        waiting.refresh_from_db()
        assert balance(account.wallet) == (20_000 if waiting.state == "booked" else 0)
    assert reconcile()["findings"] == []


def book_four_at_once(monkeypatch: pytest.MonkeyPatch) -> Decimal:
    """One person books four times 100 at once, and may book 250 a day. Returns what was booked."""
    anna, wallet = finance(), new_wallet()
    user = User.objects.get(pk=anna.pk)
    monkeypatch.setattr(limits, "limits_of", lambda *_, **__: Limits(Decimal(100), Decimal(250)))

    def booking(number: int) -> BookingApproval:
        return BookingApproval(
            wallet=wallet,
            kind=EntryKind.DEPOSIT,
            amount=Decimal(100),
            booking_reference=f"race-{wallet.pk}-{number}",
            asked_by=user,
        )

    race([partial(bookings.book_or_ask, booking=booking(number)) for number in range(4)])
    return balance(wallet) - 100


def test_simultaneous_bookings_of_one_person_keep_the_sum_of_a_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for _ in range(3):
        assert book_four_at_once(monkeypatch) == 200


def test_control_with_a_sum_that_is_read_first_they_exceed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everybody_has_read = threading.Barrier(4)

    def read_and_decide(*, user: User, amount: Decimal, **about: Any) -> bool:
        fits = limits.booked_today(user, **about) + amount <= 250
        everybody_has_read.wait(30)
        return fits

    monkeypatch.setattr(bookings, "count_booking", read_and_decide)

    assert book_four_at_once(monkeypatch) == 400


def withdraw_in_the_middle(waiting: BookingApproval, monkeypatch: pytest.MonkeyPatch) -> str:
    """Another person approves without a lock. The maker withdraws after the booking and before the
    decision is stored. Returns the outcome of the approval."""
    first = bookings._book

    def book(booking: BookingApproval) -> LedgerEntry:
        entry = first(booking)
        with in_background(
            lambda: reject_booking(booking=waiting, actor=waiting.asked_by, note="")
        ) as told:
            assert told.result() is True
        return entry

    monkeypatch.setattr(QuerySet, "select_for_update", lambda rows, **options: rows)
    monkeypatch.setattr(bookings, "_book", book)
    return outcome(partial(bookings.approve, booking=waiting, actor=finance()))


def test_without_the_row_lock_a_withdrawn_booking_is_not_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = make_approval(make_account(balance="0"))

    assert withdraw_in_the_middle(waiting, monkeypatch) == "refused"

    assert balance(waiting.wallet) == 0


def test_control_without_lock_condition_and_trigger_a_withdrawn_booking_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = make_approval(make_account(balance="0"))
    monkeypatch.setattr(approvals, "waiting_approvals", BookingApproval.objects.all)

    with weakened_sql("wallets/sql/approvals.sql", ("OLD.state <> 'waiting'", "false")):
        assert withdraw_in_the_middle(waiting, monkeypatch) == "done"

    assert balance(waiting.wallet) == 20_000


def test_the_database_refuses_an_approval_by_the_maker() -> None:
    waiting = make_approval(make_account(balance="0"))

    with pytest.raises(IntegrityError, match="wallets_approval_by_another"):
        approvals._decide(
            waiting,
            actor=waiting.asked_by,
            state=ApprovalState.BOOKED,
            entry=LedgerEntry.objects.latest("pk"),
        )


@pytest.mark.parametrize(
    "change", ["amount = 1", "booking_reference = 'x'", "asked_by_id = asked_by_id + 1"]
)
def test_the_database_keeps_what_an_approval_is_for(change: str) -> None:
    make_approval(make_account())

    with pytest.raises(ProgrammingError, match="is kept"):
        execute(f"UPDATE wallets_bookingapproval SET {change}")


def test_the_page_of_a_limit_names_the_role() -> None:
    page = signed_in().get("/admin/wallets/bookinglimit/add/").content.decode()
    assert "Role" in re.findall(r"<label[^>]*>\s*(\w+)", page)
    assert "Group" not in re.findall(r"<label[^>]*>\s*(\w+)", page)
