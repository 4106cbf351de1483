"""Emails that somebody can ask for are limited, and asking takes the same work for everybody."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from core.inputs import InputProblem
from merchants.email import outbox
from merchants.email.sending import sweep_emails
from merchants.models import Email, Invitation, Membership, Role
from merchants.people import invitations
from merchants.people.invitations import invite_person
from merchants.people.password_resets import MAX_RESETS_PER_HOUR, ask_for_reset
from merchants.tasks import clear_sessions
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours
from tests.operators.back_office import make_staff

pytestmark = pytest.mark.django_db

ASK = "/merchant/password/forgotten/"
STRANGER = "nobody@merchant.example"


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tasks that were queued."""
    names: list[str] = []
    monkeypatch.setattr(outbox, "enqueue", lambda name, *arguments: names.append(name))
    return names


@pytest.fixture
def staff_address() -> str:
    staff = make_staff()
    staff.username = staff.email = "staff@service.example"
    staff.save()
    return staff.email


def work_of_asking(
    email: str, address: str, queued: list[str], commit: DjangoCaptureOnCommitCallbacks
) -> tuple[list[str], list[str]]:
    """The statements and the tasks of one request, without the values in them."""
    queued.clear()
    with CaptureQueriesContext(connection) as queries, commit(execute=True):
        assert Client(REMOTE_ADDR=address).post(ASK, {"email": email}).status_code == 302
    statements = [re.sub(r"'[^']*'|\b\d+\b|NULL|SAVEPOINT \S+", "?", one["sql"]) for one in queries]
    return statements, list(queued)


def test_asking_takes_the_same_work_for_members_and_strangers(
    queued: list[str],
    staff_address: str,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    member, left = make_member(), make_member()
    left.user.is_active = False
    left.user.save()
    for asked_before in range(MAX_RESETS_PER_HOUR + 1):
        of_member, *of_others = [
            work_of_asking(
                email, f"192.0.2.{asked_before}", queued, django_capture_on_commit_callbacks
            )
            for email in (member.user.email, left.user.email, staff_address, STRANGER)
        ]
        assert of_others == [of_member] * 3
        assert bool(of_member[1]) == (asked_before < MAX_RESETS_PER_HOUR)


def test_strangers_get_no_email_and_their_rows_are_deleted(staff_address: str) -> None:
    member = make_member()
    for email in (STRANGER, staff_address, member.user.email):
        ask_for_reset(email=email)

    sweep_emails()
    assert [message.to for message in mail.outbox] == [[member.user.email]]
    assert sweep_emails()["due"] == 0

    Email.objects.update(created_at=timezone.now() - timedelta(days=1))
    clear_sessions()
    assert [email.to for email in ours(Email).all()] == [member.user.email]


def ask_at_once(email: str) -> int:
    """Sends 16 requests in 8 threads. Returns how many emails were written."""

    def ask(_: int) -> None:
        try:
            ask_for_reset(email=email)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(16)))
    return Email.objects.filter(to=email).count()


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_send_no_more_than_the_limit() -> None:
    assert ask_at_once(make_member().user.email) == MAX_RESETS_PER_HOUR


@pytest.mark.django_db(transaction=True)
def test_control_without_the_lock_requests_at_once_exceed_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "lock_address", lambda email: None)
    assert any(
        ask_at_once(f"{number}@merchant.example") > MAX_RESETS_PER_HOUR for number in range(20)
    )


def test_one_network_cannot_ask_for_many_emails() -> None:
    statuses = [
        Client(REMOTE_ADDR=f"2001:db8:7::{number}")
        .post(ASK, {"email": f"name{number}@merchant.example"})
        .status_code
        for number in range(1, 12)
    ]
    assert statuses == [302] * 10 + [429]
    refused = Client(REMOTE_ADDR="2001:db8:7::ffff").post(ASK, {"email": STRANGER})
    assert "Wait" in refused.content.decode()
    assert Client(REMOTE_ADDR="2001:db8:8::1").post(ASK, {"email": STRANGER}).status_code == 302


def invite(owner: Membership, email: str) -> Invitation:
    return invite_person(
        account=owner.account, email=email, role=Role.VIEWER, invited_by=owner.user
    )


def test_an_address_gets_few_invitations_a_day() -> None:
    owner, other = make_member(), make_member()
    for inviting in (owner, other, owner):
        invite(inviting, "new@merchant.example")
    with pytest.raises(InputProblem, match="Wait a day"):
        invite(other, "New@merchant.example")
    invite(other, "another@merchant.example")

    Email.objects.update(created_at=timezone.now() - timedelta(days=1))
    invite(other, "new@merchant.example")


def test_an_account_sends_few_invitations_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invitations, "MAX_PER_DAY", 3)
    owner, other = make_member(), make_member()
    for number in range(3):
        invitations.withdraw_invitation(
            invitation=invite(owner, f"{number}@merchant.example"), actor=owner.user
        )

    answer = browser_of(owner).post(
        "/merchant/people/invite/", {"email": "4@merchant.example", "role": "viewer"}
    )
    assert "3 invitations" in answer.content.decode()
    assert not Email.objects.filter(to="4@merchant.example").exists()
    invite(other, "4@merchant.example")

    Invitation.objects.update(created_at=timezone.now() - timedelta(days=1))
    invite(owner, "5@merchant.example")
