"""A second factor is one person's: nobody else's code, key or absence of one counts."""

import pytest
from django.contrib.auth.models import User
from django_otp.oath import TOTP

from accounts.models import SecondFactor
from accounts.sign_in.second_factor import check_code, forget_second_factors, has_factor

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return User.objects.create(username="anna")


@pytest.fixture
def bert() -> User:
    return User.objects.create(username="bert")


def factor_of(user: User, *, confirmed: bool = True) -> SecondFactor:
    return SecondFactor.objects.create(user=user, name="app", confirmed=confirmed)


def code_of(factor: SecondFactor) -> str:
    return f"{TOTP(factor.key).token():06}"


def test_only_ones_own_confirmed_factor_counts(anna: User, bert: User) -> None:
    factor_of(bert)
    assert not has_factor(anna)
    factor_of(anna, confirmed=False)
    assert not has_factor(anna)
    SecondFactor.objects.update(confirmed=True)
    assert has_factor(anna)


def test_another_persons_code_is_wrong(anna: User, bert: User) -> None:
    factor_of(anna)
    other = factor_of(bert)
    assert check_code(user=anna, code=code_of(other)) is None
    assert check_code(user=bert, code=code_of(other)) == other
    nobody = User.objects.create(username="nobody")
    SecondFactor.objects.update(last_step=-1)
    assert check_code(user=nobody, code=code_of(other)) is None


def test_the_code_of_an_unconfirmed_factor_is_wrong(anna: User) -> None:
    factor = factor_of(anna, confirmed=False)
    assert check_code(user=anna, code=code_of(factor)) is None


def test_removing_ones_factor_leaves_the_others(anna: User, bert: User) -> None:
    factor_of(anna)
    other = factor_of(bert)
    assert forget_second_factors(user=anna, actor=bert) == 1
    assert list(SecondFactor.objects.filter(user__in=[anna, bert])) == [other]
