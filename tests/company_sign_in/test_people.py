"""Who gets in with which claims, without a provider."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from audit.models import AuditAction, AuditEntry
from core.backoffice.staff_roles import StaffRole
from operators.sign_in.company.people import Refusal, admit, read_person
from operators.sign_in.company.settings import CompanySignIn
from operators.sign_in.models import CompanyIdentity

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


@pytest.mark.parametrize(
    ("claim", "value"), [("amr", 7), ("groups", 7), ("groups", {"desk": True}), ("acr", {})]
)
def test_a_claim_of_a_wrong_type_is_refused(claim: str, value: Any) -> None:
    with pytest.raises(Refusal, match=f"cannot read: {claim}"):
        sign_in(**{claim: value})
    assert AuditEntry.objects.filter(action=AuditAction.SIGN_IN_REFUSED).count() == 1


@pytest.mark.parametrize("claims", [{"groups": "desk"}, {"amr": None}, {"acr": None}])
def test_claims_may_be_a_text_or_missing(claims: dict[str, Any]) -> None:
    assert sign_in(**claims).is_staff


def test_a_subject_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(Refusal, match="cannot read: sub"):
        sign_in(sub="1\0")
    entry = AuditEntry.objects.get(action=AuditAction.SIGN_IN_REFUSED)
    assert entry.note.startswith(r"Subject '1\x00': ")


@pytest.mark.parametrize("name", ["anna\0", "\ud800", 7])
def test_a_name_that_cannot_be_stored_is_no_name(name: Any) -> None:
    with pytest.raises(Refusal, match="could use as your name"):
        sign_in(preferred_username=name)
    assert not CompanyIdentity.objects.exists()


@pytest.mark.parametrize(
    "name",
    [
        "client:7",
        "shell:root",
        "admin:anna",
        "system",
        "System",
        "\uff53ystem",
        "company sign-in",
        "a b",
    ],
)
def test_nobody_takes_the_name_of_another_actor(name: str) -> None:
    """Histories name people, clients and the service in one column."""
    with pytest.raises(Refusal, match="could use as your name"):
        sign_in(preferred_username=name)
    assert not CompanyIdentity.objects.exists()


@pytest.mark.parametrize("name", ["anna", "o'brien@company.example", "Jörg.B+x@company.example"])
def test_usernames_and_emails_are_names(name: str) -> None:
    assert sign_in(preferred_username=name).get_username() == name


def test_an_email_that_cannot_be_stored_is_left_out() -> None:
    email = f"{'a' * 250}@company.example"
    assert sign_in(email=email, email_verified=True).email == ""
