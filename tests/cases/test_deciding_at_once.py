"""Of people who decide a case at the same time, one does."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError

from cases import services
from cases.models import Case
from cases.services import (
    answer_case,
    credit_case,
    open_case,
    reject_case,
    replace_code_of_case,
    withdraw_credit,
)
from core.backoffice.staff_roles import StaffRole
from core.inputs import InputProblem
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from orders.remedies.bookings import approve
from tests.cases.complaints import Complaint, make_complaint
from tests.concurrency.racing import execute, holding_wallet, in_background, race, wait_for_waiting
from tests.operators.back_office import staff_with
from wallets.models import BookingApproval, LedgerEntry
from wallets.services import AlreadyBooked, BadBooking

pytestmark = pytest.mark.django_db(transaction=True)


def outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except (InputProblem, AlreadyBooked, BadBooking, DatabaseError) as error:
        return type(error).__name__
    return "done"


def credit(case: Case, amount: str = "10") -> Any:
    return partial(
        credit_case,
        case=case,
        version=case.version,
        actor=staff_with(StaffRole.FINANCE),
        amount=Decimal(amount),
        note="Sorry",
        may_book=True,
    )


def replace(case: Case) -> Any:
    actor = staff_with(StaffRole.FINANCE)
    return partial(replace_code_of_case, case=case, version=case.version, actor=actor)


def test_simultaneous_decisions_give_once() -> None:
    for _ in range(5):
        complaint = make_complaint(quantity=1, stock=5)
        case, staff = complaint.open(), staff_with(StaffRole.SUPPORT)
        reject = partial(reject_case, case=case, version=1, actor=staff, text="No.")
        answer = partial(answer_case, case=case, version=1, actor=staff, text="Hello.")
        calls = [replace(case), replace(case), credit(case), credit(case), reject, answer]

        told = race([partial(outcome, call) for call in calls])

        assert told.count("done") == 1, told
        given = LedgerEntry.objects.filter(kind__in=["credit", "replacement"])
        mine = given.filter(wallet=complaint.merchant.account.pk).count()
        case.refresh_from_db()
        assert mine == (case.state in ("credited", "replaced"))
    assert reconcile()["findings"] == []


def test_a_case_is_opened_once() -> None:
    complaint = make_complaint()
    code = complaint.codes[0]
    open_it = partial(
        open_case, order=complaint.order, code=code, actor=complaint.member, text="Bad."
    )

    told = race([partial(outcome, open_it)] * 4)

    assert sorted(told) == ["InputProblem"] * 3 + ["done"]
    assert Case.objects.get().messages.count() == 1


def test_a_credit_is_approved_or_withdrawn_and_never_both() -> None:
    for _ in range(5):
        complaint = make_complaint()
        case, maker = complaint.open(), staff_with(StaffRole.SUPPORT)
        proposal: dict[str, Any] = {
            "version": 1,
            "actor": maker,
            "amount": Decimal(10),
            "note": "Sorry",
        }
        waiting = credit_case(case=case, may_book=False, **proposal)
        assert isinstance(waiting, BookingApproval)
        withdraw = partial(withdraw_credit, case=case, version=2, booking=waiting, actor=maker)

        def allow(booking: BookingApproval, actor: User) -> None:
            if approve(booking=booking, actor=actor) is None:
                raise InputProblem("It no longer waits.")

        actors = [staff_with(StaffRole.FINANCE) for _ in range(2)]
        calls = [withdraw, withdraw, *(partial(allow, waiting, actor) for actor in actors)]
        told = race([partial(outcome, call) for call in calls])

        assert sorted(told) == ["InputProblem"] * 3 + ["done"]
        given = LedgerEntry.objects.filter(wallet=case.account_id, kind="credit").count()
        case.refresh_from_db()
        assert (given, case.state) in ((1, "credited"), (0, "open"))
    assert reconcile()["findings"] == []


def two_replacements_meet(complaint: Complaint, case: Case) -> list[str]:
    """Two people replace a code; the first stops at the wallet, which somebody holds."""
    first, second = replace(case), replace(case)
    with (
        holding_wallet(complaint.merchant) as other,
        in_background(partial(outcome, first)) as one,
        in_background(partial(outcome, second)) as two,
    ):
        wait_for_waiting(2)
        other.rollback()
    return sorted([one.result(), two.result()])


def test_the_second_replacement_waits_for_the_first_and_sees_it() -> None:
    complaint = make_complaint(quantity=1, stock=5)
    case = complaint.open()

    assert two_replacements_meet(complaint, case) == ["InputProblem", "done"]

    assert Order.objects.filter(client=complaint.merchant.client).count() == 2


def a_replacement_meets_a_credit(complaint: Complaint) -> list[str]:
    """A code is replaced while the whole order is credited; both wait for the wallet."""
    calls = replace(complaint.open()), credit(complaint.open(None), "20")
    with (
        holding_wallet(complaint.merchant) as other,
        in_background(partial(outcome, calls[0])) as one,
        in_background(partial(outcome, calls[1])) as two,
    ):
        wait_for_waiting(2)
        other.rollback()
    return sorted([one.result(), two.result()])


def test_an_order_gives_back_what_it_cost_once() -> None:
    told = a_replacement_meets_a_credit(make_complaint())

    assert "done" in told
    assert told != ["done", "done"]
    assert reconcile()["findings"] == []


def test_control_without_the_trigger_an_order_gives_back_more_than_it_cost() -> None:
    name = "cases_gives_back_at_most_what_was_paid"
    execute(f"ALTER TABLE wallets_ledgerentry DISABLE TRIGGER {name}")
    try:
        assert a_replacement_meets_a_credit(make_complaint()) == ["done", "done"]
    finally:
        execute(f"ALTER TABLE wallets_ledgerentry ENABLE TRIGGER {name}")

    assert {found["check"] for found in reconcile()["findings"]} == {
        "no order gave back more than it cost, in money and in codes together"
    }


def without_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the case before they decide."""

    def change(case: Case, _version: int, _states: Any, **changes: Any) -> None:
        Case.objects.filter(pk=case.pk, decided_by=None).update(**changes)

    monkeypatch.setattr(services, "_change", change)


def test_without_the_version_the_database_refuses_the_second_replacement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_version(monkeypatch)
    complaint = make_complaint(quantity=1, stock=5)
    case = complaint.open()

    assert two_replacements_meet(complaint, case) == ["IntegrityError", "done"]

    assert Order.objects.filter(client=complaint.merchant.client).count() == 2


def test_control_without_any_guard_a_code_is_replaced_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_version(monkeypatch)
    complaint = make_complaint(quantity=1, stock=5)
    case = complaint.open()
    dropped = [
        ("orders_order_once_per_case", "orders_order (case_id) WHERE case_id IS NOT NULL"),
        (
            "wallets_entry_once_per_booking",
            "wallets_ledgerentry (booking_reference) WHERE booking_reference IS NOT NULL",
        ),
    ]
    for name, _ in dropped:
        execute(f"DROP INDEX {name}")
    execute("ALTER TABLE wallets_ledgerentry DISABLE TRIGGER wallets_booking_has_its_key")
    execute("ALTER TABLE wallets_ledgerentry DISABLE TRIGGER cases_entry_closes_its_case")
    try:
        assert two_replacements_meet(complaint, case) == ["done", "done"]
        assert Order.objects.filter(client=complaint.merchant.client).count() == 3
    finally:
        execute("SET session_replication_role = replica")
        for table in ("orders_order", "wallets_ledgerentry"):
            column = "case_id" if table == "orders_order" else "booking_reference"
            execute(f"DELETE FROM {table} WHERE {column} IS NOT NULL")
        execute("SET session_replication_role = origin")
        execute("ALTER TABLE wallets_ledgerentry ENABLE TRIGGER wallets_booking_has_its_key")
        execute("ALTER TABLE wallets_ledgerentry ENABLE TRIGGER cases_entry_closes_its_case")
        for name, rest in dropped:
            execute(f"CREATE UNIQUE INDEX {name} ON {rest}")
