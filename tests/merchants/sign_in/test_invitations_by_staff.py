"""Two members of staff must agree on each invitation into an account in use."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from core.inputs import InputProblem
from merchants.email.secret_links import sign_invitation
from merchants.email.sending import sweep_emails
from merchants.models import Email, EmailKind, Invitation, Membership, Role
from merchants.people.invitations import (
    accept_invitation,
    approve_invitation,
    find_invitation,
    invite_person,
    withdraw_invitation,
)
from tests.concurrency.racing import holding_locks, start, wait_for_waiting
from tests.factories import make_account
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = pytest.mark.django_db(transaction=True)

ADD = "/admin/merchants/invitation/add/"
MAY = ("merchants.add_invitation", "merchants.view_invitation")
NEW = "intruder@shop.example"


@pytest.fixture
def owner() -> Membership:
    return make_member()


def ask(owner: Membership, role: Role = Role.OWNER) -> Invitation:
    return invite_person(account=owner.account, email=NEW, role=role, invited_by=make_staff(*MAY))


def sent_to(address: str) -> list[Any]:
    sweep_emails()
    return [one for one in mail.outbox if one.to == [address]]


@pytest.mark.parametrize("role", Role)
def test_one_member_of_staff_is_not_enough(role: Role, owner: Membership) -> None:
    answer = signed_in(make_staff(*MAY)).post(
        ADD, {"account": owner.account_id, "email": NEW, "role": role}, follow=True
    )

    assert "another member of staff" in answer.content.decode()
    invitation = ours(Invitation).get()
    assert invitation.state == "waiting"
    assert sent_to(NEW) == []
    assert find_invitation(sign_invitation(invitation.pk)) is None
    with pytest.raises(InputProblem):
        accept_invitation(invitation_id=invitation.pk, password="a long enough phrase")


def test_the_owner_receives_an_email_at_once_and_can_withdraw_it(owner: Membership) -> None:
    invitation = ask(owner)

    (message,) = sent_to(owner.user.email)
    assert message.subject == f"Person invited: {owner.account}"
    assert "another member of our staff approves" in message.body
    browser = browser_of(owner)
    assert "made by our staff" in browser.get("/merchant/people/").content.decode()
    browser.post(f"/merchant/people/invitations/{invitation.pk}/withdraw/")

    assert not approve_invitation(invitation=invitation, actor=make_staff(*MAY))
    assert sent_to(NEW) == []


def test_a_second_member_of_staff_approves_and_sends_it(owner: Membership) -> None:
    invitation, second = ask(owner), make_staff(*MAY)
    browser = signed_in(second)
    page = browser.get(url(invitation, "approve")).content.decode()
    assert owner.user.email in page

    browser.post(url(invitation, "approve"))

    assert len(sent_to(NEW)) == 1
    assert [one.subject.partition(":")[0] for one in sent_to(owner.user.email)] == [
        "Person invited",
        "Invitation approved",
    ]
    entry = AuditEntry.objects.get(action=AuditAction.INVITATION_APPROVED)
    assert (entry.actor, entry.reference) == (second, NEW)
    accept_invitation(invitation_id=invitation.pk, password="a long enough phrase")
    assert Membership.objects.filter(account=owner.account, role=Role.OWNER).count() == 2


def test_nobody_approves_their_own_invitation(owner: Membership) -> None:
    invitation = ask(owner)
    browser = signed_in(invitation.invited_by)

    assert browser.post(url(invitation, "approve")).status_code == 403
    assert "approve" not in browser.get(url(invitation)).content.decode()
    with pytest.raises(InputProblem, match="Another member of staff"):
        approve_invitation(invitation=invitation, actor=invitation.invited_by)
    with pytest.raises(IntegrityError, match="approved_by_another"), transaction.atomic():
        Invitation.objects.update(approved_by=invitation.invited_by, approved_at=timezone.now())
    with pytest.raises(IntegrityError, match="accepted_if_approved"), transaction.atomic():
        Invitation.objects.update(accepted_at=timezone.now())


def test_approving_needs_the_permission(owner: Membership) -> None:
    invitation = ask(owner)

    answer = signed_in(make_staff("merchants.view_invitation")).post(url(invitation, "approve"))

    assert answer.status_code == 403
    assert sent_to(NEW) == []


def test_a_request_expires(owner: Membership) -> None:
    invitation, second = ask(owner), make_staff(*MAY)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert not approve_invitation(invitation=invitation, actor=second)
    invitation.refresh_from_db()
    assert invitation.state == "expired"


def test_an_approved_invitation_is_valid_for_its_full_time(owner: Membership) -> None:
    invitation, second = ask(owner), make_staff(*MAY)
    Invitation.objects.update(expires_at=timezone.now() + timedelta(hours=1))

    assert approve_invitation(invitation=invitation, actor=second)

    invitation.refresh_from_db()
    assert invitation.expires_at > timezone.now() + timedelta(days=6, hours=23)
    assert find_invitation(sign_invitation(invitation.pk)) == invitation


def test_the_first_owner_needs_no_second_person() -> None:
    invitation = invite_person(
        account=make_account(balance="0"), email=NEW, role=Role.OWNER, invited_by=make_staff(*MAY)
    )
    assert invitation.state == "open"


def test_an_owner_whose_user_is_switched_off_counts(owner: Membership) -> None:
    owner.user.is_active = False
    owner.user.save()

    assert ask(owner).state == "waiting"


def test_owners_invite_without_staff(owner: Membership) -> None:
    invitation = invite_person(
        account=owner.account, email=NEW, role=Role.OWNER, invited_by=owner.user
    )
    assert invitation.state == "open"


def test_a_second_open_invitation_waits_once_the_account_has_an_owner() -> None:
    """Otherwise staff could prepare one before the first owner joins."""
    account, staff = make_account(balance="0"), make_staff(*MAY)
    first, second = (
        invite_person(account=account, email=email, role=Role.OWNER, invited_by=staff)
        for email in ("boss@shop.example", NEW)
    )
    assert (first.state, second.state) == ("open", "open")

    accept_invitation(invitation_id=first.pk, password="a long enough phrase")

    second.refresh_from_db()
    assert second.state == "waiting"
    with pytest.raises(InputProblem):
        accept_invitation(invitation_id=second.pk, password="a long enough phrase")


def test_a_link_used_at_the_same_time_as_the_first_owners_waits() -> None:
    account, staff = make_account(balance="0"), make_staff(*MAY)
    invitations = [
        invite_person(account=account, email=email, role=Role.OWNER, invited_by=staff)
        for email in ("boss@shop.example", NEW)
    ]

    def accept(invitation: Invitation) -> str:
        try:
            accept_invitation(invitation_id=invitation.pk, password="a long enough phrase")
        except InputProblem:
            return "refused"
        return "joined"

    row = "SELECT FROM accounts_account WHERE id = %s FOR NO KEY UPDATE"
    with ThreadPoolExecutor(2) as pool, holding_locks(row, account.pk):
        answers = [start(pool, accept, one) for one in invitations]
        wait_for_waiting(2)

    assert sorted(one.result() for one in answers) == ["joined", "refused"]


@pytest.fixture(params=["guarded", "control"])
def guarded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Runs a race twice: as it is, and with an UPDATE that does not name the expected state."""
    if request.param == "control":

        def careless(rows: Any, **values: Any) -> int:
            if "approved_by" in values or "withdrawn_at" in values:
                rows = rows.model.objects.filter(pk__in=list(rows.values_list("pk", flat=True)))
            return update(rows, **values)

        update = QuerySet.update
        monkeypatch.setattr(QuerySet, "update", careless)
    return bool(request.param == "guarded")


def test_two_approvals_at_once_send_one_invitation(guarded: bool, owner: Membership) -> None:
    invitation, staff = ask(owner), [make_staff(*MAY), make_staff(*MAY)]

    def approve(number: int) -> bool:
        return approve_invitation(invitation=invitation, actor=staff[number])

    row = "SELECT FROM merchants_invitation WHERE id = %s FOR UPDATE"
    with ThreadPoolExecutor(2) as pool, holding_locks(row, invitation.pk):
        answers = [start(pool, approve, number) for number in (0, 1)]
        wait_for_waiting(2)

    assert sorted(one.result() for one in answers) == ([False, True] if guarded else [True, True])
    sent = Email.objects.filter(kind=EmailKind.INVITATION).count()
    assert sent == (1 if guarded else 2)


def test_approved_or_withdrawn_but_not_both(guarded: bool, owner: Membership) -> None:
    invitation, second = ask(owner), make_staff(*MAY)

    def decide(what: str) -> bool:
        if what == "approve":
            return approve_invitation(invitation=invitation, actor=second)
        return withdraw_invitation(invitation=invitation, actor=owner.user)

    row = "SELECT FROM merchants_invitation WHERE id = %s FOR UPDATE"
    with ThreadPoolExecutor(2) as pool, holding_locks(row, invitation.pk):
        withdrawn = start(pool, decide, "withdraw")
        wait_for_waiting(1)
        approved = start(pool, decide, "approve")
        wait_for_waiting(2)

    assert withdrawn.result()
    assert approved.result() is not guarded
    assert Email.objects.filter(kind=EmailKind.INVITATION).exists() is not guarded
