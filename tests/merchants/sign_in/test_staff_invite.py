"""Staff invite an account's first owner in the back office."""

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import IntegrityError, transaction
from django.test import Client

from merchants.email.sending import sweep_emails
from merchants.models import Email, Invitation, Membership, Role
from tests.concurrency.racing import holding_locks, in_background, wait_for_waiting
from tests.factories import make_account
from tests.merchants.people import make_member
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = pytest.mark.django_db

ADD = "/admin/merchants/invitation/add/"


def test_staff_invite_an_owner() -> None:
    account = make_account()
    answer = signed_in().post(
        ADD, {"account": account.pk, "email": "Boss@Shop.example", "role": "owner"}
    )
    assert answer.status_code == 302
    invitation = ours(Invitation).get()
    assert (invitation.email, invitation.role, invitation.state) == (
        "boss@shop.example",
        Role.OWNER,
        "open",
    )
    sweep_emails()
    assert [one.to for one in mail.outbox] == [["boss@shop.example"]]

    page = url(invitation, "withdraw")
    question = signed_in().get(page).content.decode()
    assert "Withdraw the invitation of boss@shop.example" in question
    assert "The link in the email stops working." in question
    assert signed_in().post(page).status_code == 302
    invitation.refresh_from_db()
    assert invitation.state == "withdrawn"
    assert page not in signed_in().get(url(invitation)).content.decode()

    again = signed_in().post(page, follow=True)
    assert "This invitation can no longer be withdrawn." in again.content.decode()


def test_an_invitation_that_was_never_sent_has_no_link_to_stop() -> None:
    member = make_member()
    signed_in().post(
        ADD, {"account": member.account_id, "email": "boss@shop.example", "role": "owner"}
    )
    invitation = ours(Invitation).get()
    assert invitation.state == "waiting"
    question = signed_in().get(url(invitation, "withdraw")).content.decode()
    assert "Withdraw the invitation of boss@shop.example" in question
    assert "The link in the email" not in question


def test_a_bad_invitation_is_refused_with_an_error() -> None:
    member = make_member()
    for email, said in ((member.user.email, "already a member"), ("nonsense", "valid email")):
        answer = signed_in().post(
            ADD, {"account": member.account_id, "email": email, "role": "owner"}
        )
        assert said in answer.content.decode()
    assert not ours(Email).exists()


def test_inviting_needs_the_permission() -> None:
    account = make_account()
    browser = Client()
    browser.force_login(
        make_staff("merchants.view_invitation"), "accounts.sign_in.limits.PasswordBackend"
    )
    answer = browser.post(ADD, {"account": account.pk, "email": "a@b.example", "role": "owner"})
    assert answer.status_code == 403
    assert not ours(Invitation).exists()


def test_the_database_keeps_staff_and_members_apart() -> None:
    member = make_member()
    superuser = User.objects.create_user("root", is_superuser=True)  # and not is_staff
    for person in (make_staff(), superuser):
        with pytest.raises(IntegrityError, match="staff are not members"), transaction.atomic():
            Membership.objects.create(user=person, account=member.account, role=Role.VIEWER)
        with pytest.raises(IntegrityError, match="staff are not members"), transaction.atomic():
            Membership.objects.filter(pk=member.pk).update(user=person)
    for right in ("is_staff", "is_superuser"):
        setattr(member.user, right, True)
        with pytest.raises(IntegrityError, match="members of an account"), transaction.atomic():
            member.user.save()
        setattr(member.user, right, False)


@pytest.mark.django_db(transaction=True)
def test_somebody_who_becomes_staff_meanwhile_is_not_made_a_member() -> None:
    account, person = make_account(), User.objects.create_user("anna")

    def join() -> str:
        try:
            Membership.objects.create(user=person, account=account, role=Role.VIEWER)
        except IntegrityError as refused:
            return str(refused)
        return "joined"

    hired = "UPDATE auth_user SET is_staff = true WHERE id = %s"
    with holding_locks(hired, person.pk) as hiring, in_background(join) as joining:
        wait_for_waiting()
        hiring.commit()

    assert "staff are not members" in joining.result()
