"""A letter that is due arrives: over real SMTP, and whatever is down meanwhile."""

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from email.message import Message
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as MessageHandler
from django.core import mail
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from config import queue
from merchants.email import sending
from merchants.email.outbox import tell_owners, write_email
from merchants.email.sending import MAX_ATTEMPTS, send_email, sweep_emails
from merchants.models import Email, EmailKind, Role
from merchants.people.invitations import invite_person
from tests.concurrency.racing import race
from tests.merchants.people import make_member

pytestmark = pytest.mark.django_db(transaction=True)


class PostOffice(MessageHandler):
    """Keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.letters: list[Message] = []

    def handle_message(self, message: Message) -> None:
        self.letters.append(message)


class Refusing:
    """A server that takes no recipient."""

    async def handle_RCPT(self, *arguments: Any) -> str:  # the name aiosmtpd calls
        return "550 nobody of that name"


@pytest.fixture
def smtp(settings: Settings) -> None:
    """Letters go out by SMTP, to a port where nobody listens until somebody does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        settings.EMAIL_PORT = free.getsockname()[1]
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_TIMEOUT = 5


def listen(settings: Settings, handler: Any) -> Controller:
    controller = Controller(handler, hostname="127.0.0.1", port=settings.EMAIL_PORT)
    controller.start()
    return controller


@pytest.fixture
def office(smtp: None, settings: Settings) -> Iterator[PostOffice]:
    office = PostOffice()
    controller = listen(settings, office)
    yield office
    controller.stop()


def due_now() -> None:
    """As if the pause were over."""
    Email.objects.update(due_at=timezone.now())


def test_an_invitation_arrives_with_its_link(office: PostOffice, settings: Settings) -> None:
    settings.PUBLIC_URL = "https://shop.example"
    owner = make_member()
    owner.account.name = "Käse & Söhne\r\nBcc: evil@b.example"
    owner.account.save()
    invitation = invite_person(
        account=owner.account, email="new@b.example", role=Role.VIEWER, invited_by=owner.user
    )
    sweep_emails()

    (letter,) = (one for one in office.letters if one["To"] == "new@b.example")
    assert letter["Bcc"] is None
    payload = letter.get_payload(decode=True)
    assert isinstance(payload, bytes)
    body = payload.decode()
    assert "Käse & Söhne" in body
    assert "https://shop.example/merchant/join/?token=" in body
    token = body.partition("token=")[2].split()[0]
    row = Email.objects.get(about=invitation.pk)
    assert token not in str(row.facts)


def test_while_the_mail_server_is_down_letters_wait(smtp: None, settings: Settings) -> None:
    member = make_member()
    letter = write_email(kind=EmailKind.PASSWORD_RESET, to=member.user.email, about=member.user.pk)

    assert send_email(email_id=letter.pk) is False
    letter.refresh_from_db()
    assert (letter.attempts, letter.sent_at) == (1, None)
    assert letter.due_at > timezone.now() + timedelta(seconds=50)
    assert sweep_emails() == {"due": 0, "sent": 0}  # not yet

    office = PostOffice()
    controller = listen(settings, office)
    try:
        due_now()
        assert sweep_emails() == {"due": 1, "sent": 1}
        assert sweep_emails() == {"due": 0, "sent": 0}
    finally:
        controller.stop()
    assert len(office.letters) == 1


def test_a_server_that_refuses_is_given_up_in_the_end(smtp: None, settings: Settings) -> None:
    letter = write_email(kind=EmailKind.CHANGE, to="gone@b.example", facts={"change": "x"})
    controller = listen(settings, Refusing())
    try:
        for _ in range(MAX_ATTEMPTS):
            due_now()
            assert send_email(email_id=letter.pk) is False
    finally:
        controller.stop()
    letter.refresh_from_db()
    assert letter.given_up_at is not None
    due_now()
    assert sweep_emails() == {"due": 0, "sent": 0}


def test_one_bad_letter_does_not_hold_up_the_others(office: PostOffice) -> None:
    write_email(kind=EmailKind.PASSWORD_RESET, to="a@b.example", about=10**9)  # of nobody
    write_email(kind=EmailKind.CHANGE, to="b@b.example", facts={"change": "x"})

    sweep_emails()

    assert [letter["To"] for letter in office.letters] == ["b@b.example"]


def test_a_broker_that_is_down_delays_a_letter_and_fails_nothing(
    office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*arguments: Any, **options: Any) -> None:
        raise OSError("no broker")

    monkeypatch.setattr(queue, "_producers", down)
    owner = make_member()
    with transaction.atomic():
        tell_owners(account=owner.account, change="Something changed", actor=owner.user)

    assert office.letters == []
    assert sweep_emails() == {"due": 1, "sent": 1}
    assert len(office.letters) == 1


def test_what_was_rolled_back_is_never_told(office: PostOffice) -> None:
    owner = make_member()
    with transaction.atomic():
        tell_owners(account=owner.account, change="Never happened", actor=owner.user)
        transaction.set_rollback(True)

    assert sweep_emails() == {"due": 0, "sent": 0}


def test_two_workers_send_a_letter_once(office: PostOffice) -> None:
    letter = write_email(kind=EmailKind.CHANGE, to="a@b.example", facts={"change": "x"})

    sent = race([lambda: send_email(email_id=letter.pk)] * 4)

    assert sorted(sent) == [False, False, False, True]
    assert len(office.letters) == 1


def test_control_without_the_lease_both_send_it(
    office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where taking a letter leaves it due."""
    monkeypatch.setattr(sending, "LEASE", timedelta(seconds=-1))
    letter = write_email(kind=EmailKind.CHANGE, to="a@b.example", facts={"change": "x"})
    compose, gate = sending._compose, threading.Barrier(2)

    def compose_together(row: Email) -> mail.EmailMessage:
        gate.wait(10)
        return compose(row)

    monkeypatch.setattr(sending, "_compose", compose_together)
    race([lambda: send_email(email_id=letter.pk)] * 2)

    assert len(office.letters) == 2
