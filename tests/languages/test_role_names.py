"""The names of built-in roles are in the reader's language. What is stored stays in English."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from audit.models import AuditEntry
from core.backoffice.staff_roles import StaffRole
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.second_person import without_digest
from operators.warnings.models import WarningRule
from operators.warnings.raising import rules
from tests.languages.test_german_pages import GERMAN
from tests.operators.back_office import form_of, make_staff, signed_in, url
from wallets.models import BookingLimit

pytestmark = pytest.mark.django_db

ROLES = reverse("admin:auth_group_changelist")


@pytest.fixture
def administrator() -> Client:
    return make_administrator()


def make_administrator() -> Client:
    person = make_staff()
    person.groups.add(role("Administrator"))
    return signed_in(person)


def role(name: str) -> Group:
    return Group.objects.get(name=name)


def german(browser: Client, address: str) -> str:
    page: Any = browser.get(address, headers=GERMAN, follow=True)
    assert page.status_code == 200
    return str(page.text)


def test_a_built_in_role_has_a_german_name_and_a_role_made_here_its_own(
    administrator: Client,
) -> None:
    made = Group.objects.create(name="Tellers")

    assert ">Finanzen<" in german(administrator, ROLES)
    assert ">Tellers<" in german(administrator, ROLES)
    assert ">Finance<" in administrator.get(ROLES).text
    page = german(administrator, url(role("Finance")))
    assert "Finanzen" in page
    assert "Finance" not in page
    assert "Tellers" in german(administrator, url(made))


def test_a_role_is_found_by_its_german_name(administrator: Client) -> None:
    Group.objects.create(name="Finanzen Nord")
    page = german(administrator, f"{ROLES}?q=finanz")

    assert ">Finanzen<" in page
    assert ">Finanzen Nord<" in page
    assert ">Support<" not in page


def test_forms_that_choose_roles_name_them_in_german(administrator: Client) -> None:
    nina = make_staff()
    nina.groups.add(role("Auditor"))
    rules()
    limit = BookingLimit.objects.create(group=role("Finance"), kind="deposit", amount=5)
    superuser = signed_in()

    assert "Finanzen (zwei Administratoren): Bucht" in german(administrator, url(nina))
    assert "Leitender Operator: " in german(administrator, reverse("admin:auth_user_add"))
    people = german(administrator, reverse("admin:auth_user_changelist"))
    assert ">Revision<" in people
    assert "Lagerverwaltung" in german(superuser, url(WarningRule.objects.latest("pk")))
    assert "Händlerbetreuung" in german(superuser, url(limit))
    limits = german(superuser, reverse("admin:wallets_bookinglimit_changelist"))
    assert ">Finanzen<" in limits


def test_a_superuser_changes_the_rights_of_a_built_in_role_but_not_its_name() -> None:
    browser, operator = signed_in(), role("Operator")

    browser.post(url(operator), {"name": "Helpers", "rights": []})

    operator.refresh_from_db()
    assert operator.name == "Operator"
    assert not operator.permissions.exists()


def test_administrators_with_two_languages_agree(administrator: Client) -> None:
    nina, other = make_staff(), make_administrator()
    form = {**form_of(administrator, url(nina)), "groups": [role("Finance").pk]}

    page: Any = administrator.post(url(nina), form, headers=GERMAN, follow=True)
    assert "Noch nicht geändert: die Rolle Finanzen." in page.text
    assert "Sie haben eine zweite Person gebeten um: " in german(administrator, url(nina))
    assert "the role Finance. It takes effect when you do the same." in other.get(url(nina)).text
    other.post(url(nina), form)

    assert set(nina.groups.values_list("name", flat=True)) == {"Finance"}
    assert without_digest(TwoPersonChange.objects.get().what) == "the role Finance"
    assert AuditEntry.objects.filter(note="Roles added: Finance", object_id=nina.pk).exists()


def test_the_trail_is_in_german_with_german_roles(administrator: Client) -> None:
    nina = make_staff()
    form = {**form_of(administrator, url(nina)), "groups": [role("Finance").pk]}
    administrator.post(url(nina), form)
    make_administrator().post(url(nina), form)

    page = german(signed_in(), reverse("audit_trail"))

    assert "Rollen oder Berechtigungen geändert" in page
    assert "Rollen hinzugefügt: Finanzen" in page
    assert "Wartet auf eine zweite Person: die Rolle Finanzen" in page
    assert re.search(r"Beantragt von \S+: die Rolle Finanzen", page)


def test_a_limit_is_saved_by_two_people_with_two_languages(administrator: Client) -> None:
    address, other = reverse("admin:wallets_bookinglimit_add"), make_administrator()
    form = {"group": role("Finance").pk, "kind": "deposit", "amount": "500"}

    administrator.post(address, form, headers=GERMAN)
    assert not BookingLimit.objects.exists()
    other.post(address, form)

    entry = AuditEntry.objects.get(action="added", changes__amount=[None, "500"])
    assert entry.reference == "Deposit up to 500.00 by Finance"


def test_the_audit_trail_names_a_role_in_english() -> None:
    finance = role(StaffRole.FINANCE)

    signed_in().post(url(finance), {"rights": ["see-staff-and-roles"]}, headers=GERMAN)

    entry = AuditEntry.objects.filter(note__startswith="Permissions removed").latest("pk")
    assert entry.reference == "Finance"


def test_every_built_in_role_has_a_german_name(administrator: Client) -> None:
    page = german(administrator, ROLES)

    same = {name for name in StaffRole if f">{name}<" in page}
    assert same == {StaffRole.SUPPORT, StaffRole.OPERATOR}


def test_a_superuser_reads_permissions_in_german() -> None:
    page = german(signed_in(), url(make_staff()))

    assert "Konto: Darf hinzufügen<" in page
    assert "Wallet: Darf Einzahlungen, Auszahlungen, Korrekturen und Gutschriften buchen<" in page
    assert not re.search("Can [a-z]", page)


@pytest.mark.parametrize("name", ["auditor", "Revision", "FINANZEN"])
def test_a_role_made_here_looks_like_no_built_in_one(administrator: Client, name: str) -> None:
    """Another administrator approves a role by its name, in their own language."""
    answer = administrator.post(reverse("admin:auth_group_add"), {"name": name, "rights": []})

    assert answer.status_code == 200
    assert not Group.objects.filter(name=name).exists()
