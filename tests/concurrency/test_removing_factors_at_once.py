"""Two members of staff remove the second factor of a person who issues keys, also at once."""

from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import SecondFactor
from merchants.models import FactorReset
from merchants.people.credentials import FactorResetState, ask_or_approve_reset
from tests.concurrency.racing import race
from tests.merchants.people import make_member
from tests.operators.back_office import make_staff

pytestmark = pytest.mark.django_db(transaction=True)

DONE, WAITS = FactorResetState.DONE, FactorResetState.WAITS


@pytest.fixture
def owner() -> User:
    user = make_member().user
    SecondFactor.objects.create(user=user)
    return user


def test_of_two_people_at_once_one_asks_and_the_other_removes_it(owner: User) -> None:
    people = [make_staff(), make_staff()]

    states = race([partial(ask_or_approve_reset, user=owner, actor=one) for one in people])

    assert sorted(state.value for state in states) == [DONE.value, WAITS.value]
    assert not SecondFactor.objects.filter(user=owner).exists()
    reset = FactorReset.objects.get()
    assert {reset.asked_by, reset.approved_by} == set(people)


def test_one_person_twice_at_once_only_asks(owner: User) -> None:
    one = make_staff()
    assert race([partial(ask_or_approve_reset, user=owner, actor=one)] * 2) == [WAITS, WAITS]
    assert SecondFactor.objects.filter(user=owner).exists()


def test_an_approval_names_who_gave_it(owner: User) -> None:
    reset = FactorReset.objects.create(user=owner, asked_by=make_staff())
    for wrong in (None, reset.asked_by):
        with pytest.raises(IntegrityError), transaction.atomic():
            FactorReset.objects.update(approved_at=timezone.now(), approved_by=wrong)
