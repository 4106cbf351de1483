"""The owners get one email each time the balance falls below the level."""

import threading
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.models import Account
from audit.models import AuditAction, AuditEntry
from config.celery import app
from merchants.email import outbox, sending
from merchants.models import BalanceAlert, Email, EmailKind, Role
from merchants.money import balance_alerts
from merchants.money.balance_alerts import set_balance_alert, sweep_balance_alerts
from tests.concurrency.racing import race
from tests.factories import adjust, deposit, make_account
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours

pytestmark = pytest.mark.django_db

ALERT = "/merchant/wallet/alert/"


def move(account: Account, amount: str) -> None:
    book = deposit if Decimal(amount) > 0 else adjust
    book(account=account, amount=Decimal(amount), actor="test")


def make_alert(balance: str = "100.00", level: str = "50.00") -> tuple[Account, User]:
    account = make_account(balance=balance)
    owner = make_member(account, Role.OWNER).user
    set_balance_alert(account=account, level=Decimal(level), actor=owner)
    return account, owner


def emails() -> list[Email]:
    return list(Email.objects.filter(kind=EmailKind.LOW_BALANCE).order_by("pk"))


def test_each_account_has_its_own_alert() -> None:
    (one, _), (two, _) = make_alert(), make_alert()
    for account in (one, two):
        move(account, "-60")
        assert sweep_balance_alerts() == {"emailed": 1, "armed": 0}
    assert [email.facts["account"] for email in emails()] == [one.name, two.name]


def test_only_active_owners_receive_the_email_about_a_change() -> None:
    account, owner = make_alert()
    gone = make_member(account, Role.OWNER).user
    User.objects.filter(pk=gone.pk).update(is_active=False)
    ours(Email).delete()
    set_balance_alert(account=account, level=Decimal(7), actor=owner)
    assert [email.to for email in ours(Email)] == [owner.email]


def test_each_crossing_sends_one_email_to_every_owner() -> None:
    account, owner = make_alert()
    other = make_member(account, Role.OWNER).user
    make_member(account, Role.DEVELOPER)
    make_member(make_account(), Role.OWNER)
    gone = make_member(account, Role.OWNER).user
    User.objects.filter(pk=gone.pk).update(is_active=False)

    sweep_balance_alerts()
    assert emails() == []
    move(account, "-50")  # 50: a balance at the level is not below it
    sweep_balance_alerts()
    assert emails() == []
    move(account, "-0.0001")
    for _ in range(3):
        sweep_balance_alerts()
    move(account, "-10")
    sweep_balance_alerts()

    assert {email.to for email in emails()} == {owner.email, other.email}
    assert emails()[0].facts == {
        "account": account.name,
        "balance": {"amount": "49.9999", "currency": "USD"},
        "level": {"amount": "50.00", "currency": "USD"},
    }

    move(account, "20")
    assert sweep_balance_alerts() == {"emailed": 0, "armed": 1}
    move(account, "-20")
    assert sweep_balance_alerts() == {"emailed": 1, "armed": 0}
    assert len(emails()) == 4


def test_a_sweep_emails_about_so_many_crossings_and_the_next_about_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(balance_alerts, "EMAILED_AT_ONCE", 2)
    crossed = [make_alert(balance="10.00")[0] for _ in range(3)]

    assert [sweep_balance_alerts()["emailed"] for _ in range(3)] == [2, 1, 0]
    assert [email.facts["account"] for email in emails()] == [one.name for one in crossed]


def test_the_email_names_balance_and_level(mailoutbox: Any) -> None:
    account, _ = make_alert(balance="10.00")
    sweep_balance_alerts()

    sending.send_email(email_id=emails()[0].pk)

    (sent,) = mailoutbox
    assert sent.subject == f"Low balance: {account.name}"
    assert "10.00 USD" in sent.body
    assert "50.00 USD" in sent.body
    assert "/merchant/wallet/" in sent.body


def test_a_new_level_sends_an_email_only_if_the_balance_was_not_low() -> None:
    account, owner = make_alert(balance="100.00", level="120.00")
    sweep_balance_alerts()
    assert len(emails()) == 1

    set_balance_alert(
        account=account, level=Decimal("150"), actor=owner
    )  # it was low before and is still low
    sweep_balance_alerts()
    assert len(emails()) == 1
    set_balance_alert(account=account, level=Decimal("50"), actor=owner)
    sweep_balance_alerts()
    set_balance_alert(account=account, level=Decimal("130"), actor=owner)
    sweep_balance_alerts()
    assert len(emails()) == 2


def test_without_alert_or_wallet_no_email_is_sent() -> None:
    account, owner = make_alert(balance="10.00")
    set_balance_alert(account=account, level=None, actor=owner)
    poor = make_account(wallet=False)
    set_balance_alert(account=poor, level=Decimal("1"), actor=make_member(poor).user)

    assert sweep_balance_alerts() == {"emailed": 0, "armed": 0}
    assert emails() == []


@pytest.mark.django_db(transaction=True)
def test_concurrent_sweeps_send_one_email() -> None:
    make_alert(balance="10.00")

    told = race([sweep_balance_alerts] * 6)

    assert sum(counts["emailed"] for counts in told) == 1
    assert len(emails()) == 1


@pytest.mark.django_db(transaction=True)
def test_control_sweeps_that_read_before_they_write_send_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the conditional UPDATE, the same race sends two emails."""
    make_alert(balance="10.00")
    both_have_looked = threading.Barrier(2)

    def careless(account_id: int) -> bool:
        alert = BalanceAlert.objects.get(pk=account_id)
        seen = alert.below
        both_have_looked.wait(10)
        if not seen:
            with transaction.atomic():
                alert.below, alert.crossed_at = True, timezone.now()
                alert.save()
                Email.objects.create(kind=EmailKind.LOW_BALANCE, to="owner@example.com")
        return True

    monkeypatch.setattr(balance_alerts, "_email_low_balance", careless)
    race([sweep_balance_alerts] * 2)

    assert len(emails()) == 2


def test_the_crossing_and_its_emails_commit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    account, _ = make_alert(balance="10.00")

    def fail(**_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(outbox, "write_email", fail)
    with pytest.raises(RuntimeError):
        sweep_balance_alerts()
    monkeypatch.undo()

    assert not BalanceAlert.objects.get(pk=account.pk).below
    assert sweep_balance_alerts()["emailed"] == 1


def test_beat_runs_the_sweep() -> None:
    entry = app.conf.beat_schedule["sweep-balance-alerts"]
    app.loader.import_default_modules()

    assert app.tasks[entry["task"]].run() == {"emailed": 0, "armed": 0}


def test_an_owner_sets_the_level_on_the_page() -> None:
    account = make_account()
    owner = make_member(account).user
    browser = browser_of(owner)

    page = browser.get(ALERT).content.decode()
    answer = browser.post(ALERT, {"level": "25.5"}, follow=True)

    assert "Level in USD" in page
    assert "25.50 USD" in answer.content.decode()
    assert ours(BalanceAlert).get().level == Decimal("25.5")
    entry = AuditEntry.objects.get(action=AuditAction.ALERT_CHANGED)
    assert (entry.actor, entry.object_id, entry.note) == (owner, str(account.pk), "25.50 USD")
    told = ours(Email).get(kind=EmailKind.CHANGE)
    assert told.to == owner.email
    assert told.facts["facts"] == [
        ["Before", {"text": "none", "values": {}}],
        ["Now", {"amount": "25.50", "currency": "USD"}],
    ]


def test_saving_the_same_level_changes_nothing() -> None:
    _, owner = make_alert(level="25.50")

    answer = browser_of(owner).post(ALERT, {"level": "25.5"}, follow=True)

    assert "The balance alert is unchanged" in answer.content.decode()
    assert AuditEntry.objects.filter(action=AuditAction.ALERT_CHANGED).count() == 1


def test_an_empty_level_removes_the_alert() -> None:
    _, owner = make_alert()

    browser_of(owner).post(ALERT, {"level": ""})

    assert not ours(BalanceAlert).exists()


@pytest.mark.parametrize(
    "level",
    [
        "0",
        "-1",
        "NaN",
        "Infinity",
        "1e999999999",
        "9" * 5000,
        "1.00001",
        "0.001",
        "1500,555",
        "x",
        "\0",
        "\ud800",
        "1,500",
    ],
)
def test_a_bad_level_is_explained(level: str) -> None:
    account = make_account()
    browser = browser_of(make_member(account))
    body = b"level=" + level.encode("utf-8", "surrogatepass")

    answer = browser.generic("POST", ALERT, body, content_type="application/x-www-form-urlencoded")

    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.content.decode()
    assert not ours(BalanceAlert).exists()


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.VIEWER])
def test_only_owners_can_set_the_level(role: Role) -> None:
    account, _ = make_alert()
    browser = browser_of(make_member(account, role))

    page = browser.get("/merchant/wallet/").content.decode()

    assert "50.00 USD" in page
    assert ALERT not in page
    assert browser.get(ALERT).status_code == 403
    assert browser.post(ALERT, {"level": "1"}).status_code == 403
    assert ours(BalanceAlert).get().level == 50


def test_the_page_says_when_it_is_low() -> None:
    account, owner = make_alert()
    move(account, "-60")
    sweep_balance_alerts()

    for path in ("/merchant/", "/merchant/wallet/"):
        page = browser_of(owner).get(path).content.decode()
        assert "Low</span>" in page, path
        assert "The owners got an email" in page, path


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_set_a_level_at_once_both_succeed() -> None:
    account = make_account()
    owners = [make_member(account).user for _ in range(4)]

    race(
        [
            partial(set_balance_alert, account=account, level=Decimal(10 + number), actor=owner)
            for number, owner in enumerate(owners)
        ]
    )

    assert ours(BalanceAlert).get().level in {10, 11, 12, 13}
