"""Two members of staff who ask at once to remove a second factor: it is removed once, by two."""

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User

from accounts.models import SecondFactor
from operators.sign_in import second_person
from operators.sign_in.models import TwoPersonChange
from operators.staff.people import ask_or_reset_factor
from tests.concurrency.racing import race
from tests.merchants.people import make_member
from tests.operators.back_office import make_staff, signed_in

pytestmark = pytest.mark.django_db(transaction=True)


def owner_with_factor() -> User:
    owner = make_member().user
    signed_in(owner)
    return owner


def ask_at_once(owner: User, *staff: User) -> list[bool]:
    calls = [lambda who=who: ask_or_reset_factor(user=owner, actor=who) for who in staff]
    return sorted(race(calls))


def test_two_people_remove_the_factor_once() -> None:
    owner, anna, ben = owner_with_factor(), make_staff(), make_staff()

    assert ask_at_once(owner, anna, ben) == [False, True]

    assert not SecondFactor.objects.filter(user=owner).exists()
    reset = TwoPersonChange.objects.get()
    assert {reset.asked_by, reset.approved_by} == {anna, ben}


def test_one_person_who_asks_many_times_does_not_remove_it() -> None:
    owner, anna = owner_with_factor(), make_staff()

    assert ask_at_once(owner, *4 * [anna]) == 4 * [False]

    assert SecondFactor.objects.filter(user=owner).exists()
    assert TwoPersonChange.objects.get().approved_by is None


def test_control_without_the_lock_nobody_sees_the_request_of_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner, anna, ben = owner_with_factor(), make_staff(), make_staff()
    both_have_looked, store = threading.Barrier(2), TwoPersonChange.objects.update_or_create

    def store_later(**values: Any) -> Any:
        both_have_looked.wait(30)
        return store(**values)

    monkeypatch.setattr(second_person, "_lock", lambda key: None)
    monkeypatch.setattr(TwoPersonChange.objects, "update_or_create", store_later)

    assert ask_at_once(owner, anna, ben) == 2 * [False]
