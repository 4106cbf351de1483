"""A fulfilment has what its status needs, and nothing that its status does not allow."""

import itertools

import pytest
from django.db import IntegrityError, transaction

from tests.concurrency.racing import execute, rows
from tests.factories import buy_topup, make_merchant, make_operator
from topups.models import FailureReason, FulfilmentStatus

FACTS = ("reason", "claimed", "closed", "due", "refunded")
NEEDED = {
    "pending": set(),
    "pending_review": set(),
    "processing": {"claimed"},
    "completed": {"closed"},
    "failed": {"reason", "closed"},
}
ALLOWED = {**NEEDED, "failed": {"reason", "closed", "due", "refunded"}}
CALL = """
    SELECT topups_agrees_with_status(
        %s, CASE WHEN %s THEN %s END, CASE WHEN %s THEN 1 END, CASE WHEN %s THEN now() END,
        CASE WHEN %s THEN now() END, CASE WHEN %s THEN now() END)
"""


def agrees(status: str, present: set[str], reason: str = "wrong_id") -> bool:
    facts = [fact in present for fact in FACTS]
    [(answer,)] = rows(CALL, status, facts[0], reason, *facts[1:])
    return bool(answer)


@pytest.mark.django_db
@pytest.mark.parametrize("status", FulfilmentStatus.values)
def test_a_status_has_what_it_needs_and_no_more(status: str) -> None:
    sets = [
        set(present) for n in range(len(FACTS) + 1) for present in itertools.combinations(FACTS, n)
    ]
    assert [present for present in sets if agrees(status, present)] == [
        present for present in sets if NEEDED[status] <= present <= ALLOWED[status]
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("reason", FailureReason.values)
def test_a_failure_has_a_reason_of_the_contract(reason: str) -> None:
    assert agrees("failed", {"reason", "closed"}, reason)
    assert not agrees("failed", {"reason", "closed"}, f"{reason}?")


@pytest.mark.django_db
def test_no_other_status_is_known() -> None:
    assert not agrees("lost", set())


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        *("status = 'lost'", "status = 'processing'", "status = 'completed'", "status = 'failed'"),
        *("failure_reason = 'wrong_id'", "claimed_by_id = (SELECT min(id) FROM auth_user)"),
        *("closed_at = now()", "refund_due_at = now()", "refunded_at = now()"),
    ],
)
def test_the_database_refuses_what_does_not_agree(change: str) -> None:
    """Each fact reaches the function in its own place."""
    make_operator()
    buy_topup(make_merchant())

    with (
        pytest.raises(IntegrityError, match="topups_fulfilment_agrees_with_its_status"),
        transaction.atomic(),
    ):
        execute(f"UPDATE topups_fulfilment SET {change}")
