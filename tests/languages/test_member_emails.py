"""Emails to members are in the language that they have chosen, and leave names as they are."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.core import mail
from django.test import Client

from accounts.models import Account, ApiClient, Preferences
from accounts.services import change_client
from cases.services import answer_case
from merchants.api_access.spending_limits import change_spending_limits, sweep_spending_limits
from merchants.email import reports
from merchants.email.case_notices import sweep_cases
from merchants.email.reports import choose_report, sweep_reports
from merchants.email.sending import sweep_emails
from merchants.email.transfer_notices import sweep_transfers
from merchants.models import Email, EmailedReport, EmailKind, Frequency, Membership, Role
from merchants.money.balance_alerts import set_balance_alert, sweep_balance_alerts
from merchants.people.invitations import invite_person
from merchants.people.password_resets import ask_for_reset
from orders.spending_limits import Limits
from tests.factories import make_merchant, make_product
from tests.merchants.people import PASSWORD, make_member
from tests.operators.back_office import make_case, make_staff
from wallets.services import deposit
from wallets.transfers import announce_transfer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

ADDRESS = "owner@merchant.example"
MONDAY = datetime(2026, 11, 30, 4, tzinfo=UTC)
# What the emails of each kind say.
TEXTS = {
    EmailKind.LOW_BALANCE: [
        "beträgt 25.940,37 USD und liegt damit unter Ihrer Warnschwelle von 30.000,00 USD"
    ],
    EmailKind.CHANGE: [
        "Vorher: keine",
        "Jetzt: 30.000,00 USD",
        "Pro Tag: 26.000,00 USD",
        "Pro Monat: unbegrenzt",
        "Heute ausgegeben: 25.940,37 USD von 26.000,00 USD",
        "In diesem Monat ausgegeben: 25.940,37 USD von unbegrenzt",
        "Eingeschaltet: nein",
        "Erlaubt: überall",
        "(unser Team)",
        "Client: 2026-11-28",
    ],
    EmailKind.INVITATION: ["Einladung zu 125.50"],
    EmailKind.PASSWORD_RESET: ["Neues Passwort"],
    EmailKind.REPORT: ["Bestellungen, 23.11.2026 bis 29.11.2026"],
    EmailKind.CASE: ["von 125.50"],
    EmailKind.TRANSFER: [
        "Überweisung gebucht: TR 1",
        "1.234,50 USD auf die Wallet von 125.50 gebucht",
    ],
}
ENGLISH = re.compile(r"25,940|25940|2026-11-2[39]|\b(of|none|no limit|our staff|yes|anywhere)\b")


def test_each_email_is_german_for_a_german_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    merchant = make_merchant(balance="51880.74")
    Account.objects.filter(pk=merchant.account.pk).update(name="125.50")
    ApiClient.objects.filter(pk=merchant.client.pk).update(name="2026-11-28")
    account, client = Account.objects.get(pk=merchant.account.pk), ApiClient.objects.get()
    member, staff = make_member(account, email=ADDRESS), make_staff(superuser=True)
    Preferences.objects.create(user=member.user, language="de", time_zone="UTC")
    limits = Limits(per_day=Decimal(26000))

    change_spending_limits(client=client, limits=limits, actor=member.user)
    product = make_product(price="25940.37", codes=2)
    order, refused = (
        merchant.buy(key, product_id=product.pk, quantity=1) for key in ("first", "second")
    )
    assert (order.status_code, refused.status_code) == (201, 409)
    set_balance_alert(account=account, level=Decimal(30000), actor=member.user)
    change_client(client_id=client.pk, allowed_networks=["10.0.0.0/8"], actor=staff)
    change_client(client_id=client.pk, enabled=False, allowed_networks=[], actor=staff)
    ask_for_reset(email=ADDRESS)
    case = make_case(order.json()["data"]["reference"])
    answer_case(case=case, version=case.version, actor=staff, text="Hello.")
    choose_report(user=member.user, kind="orders", every=Frequency.WEEK)
    EmailedReport.objects.update(created_at=MONDAY - timedelta(days=30))
    monkeypatch.setattr(reports, "database_now", lambda: MONDAY)
    for sweep in (sweep_spending_limits, sweep_balance_alerts, sweep_cases, sweep_reports):
        assert sweep()
    announce_transfer(account=account, amount=Decimal(1250), reference="TR 1", actor=member.user)
    deposit(account=account, amount=Decimal("1234.5"), booking_reference="tr1", actor="test")
    assert sweep_transfers()
    invited = make_member(email="invited@merchant.example").user
    Preferences.objects.create(user=invited, language="de", time_zone="UTC")
    invite_person(account=account, email=invited.email, role=Role.VIEWER, invited_by=member.user)
    sweep_emails()

    to = {ADDRESS, invited.email}
    kinds = dict(Email.objects.filter(to__in=to).values_list("pk", "kind"))
    sent = [f"{one.subject}\n{one.body}" for one in mail.outbox if set(one.to) <= to]
    assert set(kinds.values()) == set(TEXTS)
    assert len(sent) == len(kinds)
    everything = "\n".join(sent)
    missing = [text for texts in TEXTS.values() for text in texts if text not in everything]
    assert (missing, ENGLISH.findall(everything)) == ([], [])


def sign_in_german(member: Membership) -> None:
    """Signs in with a browser that asks for German pages."""
    browser = Client(headers={"Accept-Language": "de"})
    values = {"username": member.user.email, "password": PASSWORD}
    assert browser.post("/merchant/sign-in/", values).status_code == 302


def test_emails_follow_the_pages_of_the_last_sign_in() -> None:
    member = make_member()
    sign_in_german(member)

    invite_person(
        account=member.account, email="new@x.example", role=Role.VIEWER, invited_by=member.user
    )
    sweep_emails()
    assert {one.to[0]: one.subject for one in mail.outbox} == {
        member.user.email: f"Person eingeladen: {member.account}",
        "new@x.example": f"Einladung zu {member.account}",
    }


def test_a_chosen_language_wins_over_the_browsers() -> None:
    member = make_member()
    Preferences.objects.create(user=member.user, language="en", time_zone="Asia/Tokyo")
    sign_in_german(member)

    ask_for_reset(email=member.user.email)
    sweep_emails()
    assert mail.outbox[0].subject.startswith("Set a new password")
    assert Preferences.objects.get().time_zone == "Asia/Tokyo"
