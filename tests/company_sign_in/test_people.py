"""Who gets in with which claims, without a provider."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from config.company_sign_in import CompanySignIn
from config.staff_roles import StaffRole
from operators.company_sign_in.people import Refusal, admit, read_person
from operators.models import CompanyIdentity

pytestmark = pytest.mark.django_db

COMPANY = CompanySignIn(
    issuer="https://id.example",
    client_id="voucher-service",
    client_secret="secret",
    company="Acme",
    scopes="openid",
    name_claim="preferred_username",
    roles_claim="groups",
    roles={"desk": StaffRole.OPERATOR},
    second_factors=frozenset([("amr", "mfa")]),
    links_by_email=True,
    only=False,
    break_glass=frozenset(),
)


def sign_in(**claims: Any) -> User:
    everything = {"sub": "1", "preferred_username": "anna", "groups": ["desk"], **claims}
    return admit(read_person(everything, COMPANY), COMPANY)


@pytest.mark.parametrize("email", ["", "anna@company.example"])
def test_nobody_takes_over_an_account_without_a_verified_email(email: str) -> None:
    User.objects.create_user("anna", email, is_staff=True)

    with pytest.raises(Refusal, match="An account with your name or email exists here"):
        sign_in(email=email, email_verified=False)
    assert not CompanyIdentity.objects.exists()
