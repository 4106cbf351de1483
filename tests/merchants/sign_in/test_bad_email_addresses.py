"""An address that no email header or username can hold is refused in the form. An email that
cannot be written does not hold up others."""

import pytest
from django.core import mail
from django.utils import timezone

from core.inputs import InputProblem
from merchants.email.outbox import email_members
from merchants.email.sending import sweep_emails
from merchants.models import Email, EmailKind, Invitation, Role
from merchants.people.invitations import check_invitation, invite_person
from tests.factories import make_account
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours

pytestmark = pytest.mark.django_db

LABEL = "b" * 60


@pytest.mark.parametrize(
    "odd",
    [
        '"a\x0bbcc:x@y.z"@shop.example',  # the header writer takes it for the end of a line
        '"\x1c"@shop.example',
        f"{'a' * 60}@{LABEL}.{LABEL}.example",  # longer than a username
    ],
)
def test_the_address_is_refused_on_both_sites(odd: str) -> None:
    owner = make_member()

    page = browser_of(owner).post("/merchant/people/invite/", {"email": odd, "role": "viewer"})

    assert page.status_code == 200
    assert not ours(Invitation).exists()
    with pytest.raises(InputProblem, match="at most 150 printable characters"):
        check_invitation(account=owner.account, email=odd)
    with pytest.raises(InputProblem, match="at most 150 printable characters"):
        invite_person(account=owner.account, email=odd, role=Role.OWNER, invited_by=owner.user)


def test_an_email_that_cannot_be_written_does_not_hold_up_others() -> None:
    account = make_account()
    facts = {"account": account.name, "balance": "1.00 USD", "level": "2.00 USD"}
    bad = Email.objects.create(
        kind=EmailKind.LOW_BALANCE, to="two\nlines@shop.example", facts=facts
    )
    Email.objects.create(kind=EmailKind.LOW_BALANCE, to="owner@shop.example", facts=facts)

    assert sweep_emails() == {"due": 2, "sent": 1}

    assert [message.to for message in mail.outbox] == [["owner@shop.example"]]
    bad.refresh_from_db()
    assert (bad.sent_at, bad.attempts) == (None, 1)
    assert bad.due_at > timezone.now()


def test_a_name_like_an_impossible_day_keeps_no_email_back() -> None:
    owner = make_member()
    name = "2026-13-45"

    email_members(
        account=owner.account, change="A key was created", actor=None, facts={"Client": name}
    )

    assert sweep_emails() == {"due": 1, "sent": 1}
    assert f"Client: {name}" in mail.outbox[0].body
