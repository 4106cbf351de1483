"""Staff get emails in the language that they have chosen. What is stored stays in English."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core import mail

from accounts.models import OwnCompany, Preferences
from catalogue.models import Shelf
from core.backoffice.registry import watches
from core.backoffice.staff_roles import StaffRole
from figures.models import StockThreshold
from merchants.email.sending import sweep_emails
from operators.sign_in.password_links import send_invitation
from operators.telegram.models import TelegramLink
from operators.upkeep import nightly_reconcile
from operators.upkeep.models import ReconcileRun
from operators.warnings.models import StaffWarning, WarningPost
from operators.warnings.raising import rules, sweep_kind
from tests.factories import make_product, own_shelf
from tests.operators.back_office import make_staff

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]


def make_readers(permission: str) -> tuple[User, User]:
    """A person who has chosen German, and one who has chosen nothing."""
    german, other = make_staff(permission), make_staff(permission)
    for user in (german, other):
        user.email = f"{user.username}@staff.example"
        user.save()
    Preferences.objects.create(user=german, language="de", time_zone="UTC")
    return german, other


def sent_to(user: User) -> Any:
    sweep_emails()
    (message,) = (one for one in mail.outbox if one.to == [user.email])
    return message


def low_shelf() -> Shelf:
    shelf = own_shelf(make_product(name="Steam 10", codes=1))
    StockThreshold.objects.create(shelf=shelf, stock=5)
    return shelf


def warn() -> None:
    assert sweep_kind(watches()["low_stock"], rules()["low_stock"])


def test_one_warning_is_in_the_language_of_its_reader(settings: Any) -> None:
    settings.TELEGRAM_BOT_TOKEN = "1:token"
    german, other = make_readers("catalogue.view_shelf")
    TelegramLink.objects.create(user=german, telegram_user_id=7)
    low_shelf()

    warn()

    assert sent_to(german).subject == "Steam 10: noch 1"
    assert "Kaufen Sie Codes und importieren Sie sie" in sent_to(german).body
    assert sent_to(other).subject == "Steam 10: 1 left"
    assert StaffWarning.objects.get().text == "Steam 10: 1 left"
    assert WarningPost.objects.get().lines[0] == "Steam 10: 1 left"


def test_many_warnings_are_in_the_language_of_their_reader() -> None:
    german, other = make_readers("catalogue.view_shelf")
    for _ in range(12):
        low_shelf()

    warn()

    assert sent_to(german).subject == "Niedriger Bestand: 12 Warnungen"
    assert "… und 2 weitere." in sent_to(german).body
    assert sent_to(other).subject == "Low stock: 12 warnings"


def test_findings_are_reported_in_the_language_of_their_reader(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    finding = {"check": "a balance is the sum of its entries", "finding": "wallet 7 holds 3"}
    result = {"ok": False, "checked": {}, "findings": [finding], "warnings": []}
    monkeypatch.setattr(nightly_reconcile, "reconcile", lambda **options: result)
    german, other = make_readers("upkeep.view_reconcilerun")

    nightly_reconcile.run_if_due()

    message = sent_to(german)
    assert message.subject == "Der nächtliche Abgleich hat 1 Problem in den Büchern gefunden."
    assert "ein Guthaben ist die Summe seiner Buchungen: wallet 7 holds 3" in message.body
    assert sent_to(other).subject == "The nightly reconcile found 1 problem in the books."
    assert ReconcileRun.objects.get().findings == [finding]
    assert "found 1 problem" in caplog.text


def test_an_invitation_is_in_the_language_of_its_reader() -> None:
    german, other = make_readers("upkeep.view_reconcilerun")
    anna = User(username="anna", first_name="Anna", last_name="Kern")
    german.groups.add(Group.objects.get(name=StaffRole.SENIOR_OPERATOR.value))

    send_invitation(user=german, by=anna)
    OwnCompany.objects.create(legal_name="Karten GmbH")
    send_invitation(user=other, by=anna)

    assert sent_to(german).subject == "Anna Kern lädt Sie in das Backoffice ein"
    assert "Ihre Rollen: Leitender Operator." in sent_to(german).body
    assert f"Ihr Name für die Anmeldung ist {german}." in sent_to(german).body
    subject = "Anna Kern invites you to the back office of Karten GmbH"
    assert sent_to(other).subject == subject
    assert "Your roles" not in sent_to(other).body
