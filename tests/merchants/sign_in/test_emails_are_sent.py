"""Emails that are due arrive over real SMTP, even if the mail server or the broker was down."""

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

from core import queue
from merchants.email import sending
from merchants.email.outbox import email_members, write_email
from merchants.email.sending import MAX_ATTEMPTS, send_email, sweep_emails
from merchants.models import Email, EmailedReport, EmailKind, Role
from merchants.people.invitations import invite_person
from tests.concurrency.racing import race
from tests.merchants.people import make_member

pytestmark = pytest.mark.django_db(transaction=True)


class MailServer(MessageHandler):
    """Keeps the messages that it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []

    def handle_message(self, message: Message) -> None:
        self.messages.append(message)


class Refusing:
    """A mail server that refuses every recipient."""

    async def handle_RCPT(self, *arguments: Any) -> str:  # the name aiosmtpd calls
        return "550 nobody of that name"


@pytest.fixture
def smtp(settings: Settings) -> None:
    """Sends emails by SMTP to a free port, where `listen` may start a server."""
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
def server(smtp: None, settings: Settings) -> Iterator[MailServer]:
    server = MailServer()
    controller = listen(settings, server)
    yield server
    controller.stop()


def due_now() -> None:
    """Ends the pause after a failure."""
    Email.objects.update(due_at=timezone.now())


def test_an_invitation_arrives_with_its_link(server: MailServer, settings: Settings) -> None:
    settings.PUBLIC_URL = "https://shop.example"
    owner = make_member()
    owner.account.name = (
        "Käse & Söhne\r\nBcc: evil@b.example www.evil.example https://evil.example/"
    )
    owner.account.save()
    invitation = invite_person(
        account=owner.account, email="new@b.example", role=Role.VIEWER, invited_by=owner.user
    )
    sweep_emails()

    (message,) = (one for one in server.messages if one["To"] == "new@b.example")
    assert message["Bcc"] is None
    parts = {part.get_content_type(): part.get_payload(decode=True) for part in message.walk()}
    text, page = parts["text/plain"], parts["text/html"]
    assert isinstance(text, bytes)
    assert isinstance(page, bytes)
    body = text.decode()
    assert "Käse & Söhne" in body
    assert "Käse &amp; Söhne" in page.decode()
    assert '<a href="https://shop.example/merchant/join/#' in page.decode()
    assert page.decode().count("<a ") == 1  # none in the name of the account
    assert "evil@b.example www.evil.example https://evil.example/" in page.decode()
    assert "https://shop.example/merchant/join/#" in body
    token = body.partition("join/#")[2].split()[0]
    row = Email.objects.get(about=invitation.pk)
    assert token not in str(row.facts)


def test_emails_wait_while_the_mail_server_is_down(smtp: None, settings: Settings) -> None:
    member = make_member()
    email = write_email(kind=EmailKind.PASSWORD_RESET, to=member.user.email, about=member.user.pk)

    assert send_email(email_id=email.pk) is False
    email.refresh_from_db()
    assert (email.attempts, email.sent_at) == (1, None)
    assert email.due_at > timezone.now() + timedelta(seconds=50)
    assert sweep_emails() == {"due": 0, "sent": 0}  # not yet

    server = MailServer()
    controller = listen(settings, server)
    try:
        due_now()
        assert sweep_emails() == {"due": 1, "sent": 1}
        assert sweep_emails() == {"due": 0, "sent": 0}
    finally:
        controller.stop()
    assert len(server.messages) == 1


def test_a_refused_email_is_given_up_in_the_end(smtp: None, settings: Settings) -> None:
    email = write_email(kind=EmailKind.CHANGE, to="gone@b.example", facts={"change": "x"})
    controller = listen(settings, Refusing())
    try:
        for _ in range(MAX_ATTEMPTS):
            due_now()
            assert send_email(email_id=email.pk) is False
    finally:
        controller.stop()
    email.refresh_from_db()
    assert email.given_up_at is not None
    due_now()
    assert sweep_emails() == {"due": 0, "sent": 0}


def test_a_bad_email_does_not_hold_up_the_others(server: MailServer) -> None:
    write_email(kind=EmailKind.PASSWORD_RESET, to="a@b.example", about=10**9)  # no such user
    write_email(kind=EmailKind.CHANGE, to="b@b.example", facts={"change": "x"})

    sweep_emails()

    assert [message["To"] for message in server.messages] == ["b@b.example"]


def test_a_broken_broker_only_delays_an_email(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*arguments: Any, **options: Any) -> None:
        raise OSError("no broker")

    monkeypatch.setattr(queue, "_producers", down)
    owner = make_member()
    with transaction.atomic():
        email_members(account=owner.account, change="Something changed", actor=owner.user)

    assert server.messages == []
    assert sweep_emails() == {"due": 1, "sent": 1}
    assert len(server.messages) == 1


def test_a_rolled_back_change_sends_no_email(server: MailServer) -> None:
    owner = make_member()
    with transaction.atomic():
        email_members(account=owner.account, change="Never happened", actor=owner.user)
        transaction.set_rollback(True)

    assert sweep_emails() == {"due": 0, "sent": 0}


def test_two_workers_send_an_email_once(server: MailServer) -> None:
    email = write_email(kind=EmailKind.CHANGE, to="a@b.example", facts={"change": "x"})

    sent = race([lambda: send_email(email_id=email.pk)] * 4)

    assert sorted(sent) == [False, False, False, True]
    assert len(server.messages) == 1


def test_control_without_the_lease_both_workers_send_it(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same race, but taking an email leaves it due."""
    monkeypatch.setattr(sending, "LEASE", timedelta(seconds=-1))
    email = write_email(kind=EmailKind.CHANGE, to="a@b.example", facts={"change": "x"})
    compose, gate = sending._compose, threading.Barrier(2)

    def compose_together(row: Email, report: EmailedReport | None) -> mail.EmailMessage:
        gate.wait(10)
        return compose(row, report)

    monkeypatch.setattr(sending, "_compose", compose_together)
    race([lambda: send_email(email_id=email.pk)] * 2)

    assert len(server.messages) == 2
