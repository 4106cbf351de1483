"""Sign-ins and every change of a person's rights leave one audit entry each."""

import io
from base64 import b32decode
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django_otp.oath import totp
from pytest_django import Settings

from accounts.models import SecondFactor
from audit.models import AuditEntry
from core.command_line import shell_actor
from tests.browsing import PASSWORD
from tests.merchants.people import make_member
from tests.operators.back_office import form_of, make_staff, signed_in, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return User.objects.create_user("anna", password=PASSWORD, is_staff=True)


def entries_of(user: User, after: int = 0) -> list[AuditEntry]:
    found = AuditEntry.objects.filter(object_type="auth.user", object_id=str(user.pk))
    return list(found.filter(pk__gt=after).order_by("pk"))


def last_entry() -> int:
    newest = AuditEntry.objects.order_by("-pk").first()
    return newest.pk if newest else 0


def actions(user: User, after: int = 0) -> list[str]:
    return [entry.action for entry in entries_of(user, after)]


def save(browser: Client, user: User, **changes: Any) -> Any:
    data = {**form_of(browser, url(user)), **changes}
    for name in ("last_login", "date_joined", "password"):
        data.pop(name, None)
    answer = browser.post(
        url(user), {name: value for name, value in data.items() if value is not None}
    )
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    return answer


def test_signing_in_and_out_is_recorded(anna: User) -> None:
    start, browser = last_entry(), Client()

    browser.post("/admin/login/", {"username": "anna", "password": PASSWORD})
    browser.post("/admin/logout/")

    recorded = entries_of(anna, start)
    assert [entry.action for entry in recorded] == ["signed_in", "signed_out"]
    assert {entry.actor for entry in recorded} == {anna}


def test_a_members_sign_in_is_recorded() -> None:
    member, browser = make_member(), Client()

    browser.post("/merchant/sign-in/", {"username": member.user.email, "password": PASSWORD})
    browser.post("/merchant/sign-out/")

    assert actions(member.user) == ["signed_in", "signed_out"]


def test_a_locked_name_is_recorded_if_it_exists(anna: User, settings: Settings) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    start = last_entry()
    for name in ("anna", "nobody"):
        for _ in range(40):
            answer = Client().post("/admin/login/", {"username": name, "password": "wrong"})
            if answer.status_code == 429:
                break
    Client().post("/admin/login/", {"username": "anna", "password": "wrong"})  # once is enough

    assert actions(anna, start) == ["sign_in_refused"]
    assert AuditEntry.objects.filter(pk__gt=start).count() == 1


def test_a_wrong_second_factor_is_recorded(anna: User) -> None:
    signed_in(anna)  # sets up a second factor
    browser, start = Client(), last_entry()
    browser.post("/admin/login/", {"username": "anna", "password": PASSWORD})

    browser.post("/admin/two-factor/", {"code": "000000"})
    browser.post("/admin/two-factor/", {"code": "000000"})  # throttled: not even looked at

    assert actions(anna, start) == ["signed_in", "second_factor_refused"]


def test_a_form_records_each_change_once(anna: User) -> None:
    chief = make_staff(superuser=True)
    browser, finance = signed_in(chief), Group.objects.get(name="Finance")
    right = Permission.objects.get(codename="reveal_vouchercode")
    start = last_entry()

    save(
        browser, anna, groups=[finance.pk], user_permissions=[right.pk], is_superuser="on",
        email="anna@shop.example",
    )  # fmt: skip

    changed, *rights = entries_of(anna, start)
    assert (changed.action, changed.actor) == ("user_changed", chief)
    assert changed.changes == {
        "email": ["", "anna@shop.example"],
        "is_superuser": [False, True],
    }
    assert [(entry.action, entry.actor) for entry in rights] == [("rights_changed", chief)] * 2
    assert {entry.note for entry in rights} == {
        "Roles added: Finance",
        "Permissions added: Can see a voucher code in clear text",
    }
    start = last_entry()
    save(browser, anna, groups=[], user_permissions=[], is_staff=None)
    assert actions(anna, start) == ["user_changed", "rights_changed", "rights_changed"]


def test_permissions_of_a_group_are_recorded() -> None:
    browser, group = signed_in(), Group.objects.create(name="Night shift")
    money = "book-deposits-payouts-credits-and-adjustments-and-settle-lost-purchases"

    browser.post(url(group), {"name": "Night shift", "rights": [money]})

    entry = AuditEntry.objects.filter(object_type="auth.group").latest("pk")
    assert (entry.action, entry.reference) == ("rights_changed", "Night shift")
    assert entry.note == "Permissions added: Can book deposits, payouts, adjustments and credits"


@pytest.mark.parametrize("verb", ["added", "removed"])
def test_many_permissions_are_all_named(verb: str) -> None:
    rights = list(Permission.objects.order_by("pk")[:40])
    group = Group.objects.create(name="Night shift")
    group.permissions.set(rights)
    if verb == "removed":
        group.permissions.clear()

    title = f"Permissions {verb}: "
    entries = AuditEntry.objects.filter(reference="Night shift", note__startswith=title)
    named = [entry.note.removeprefix(title).split("; ") for entry in entries.order_by("pk")]
    assert len(named) > 1
    assert [name for names in named for name in names] == [right.name for right in rights]


def test_a_password_is_recorded_without_its_value(anna: User) -> None:
    start = last_entry()
    new = "quite another battery staple"
    form = {"password1": new, "password2": new, "usable_password": "true"}
    signed_in().post(reverse("admin:auth_user_password_change", args=[anna.pk]), form)

    own = {"old_password": new, "new_password1": PASSWORD, "new_password2": PASSWORD}
    signed_in(User.objects.get(pk=anna.pk)).post("/admin/password_change/", own)

    recorded = [one for one in entries_of(anna, start) if one.action == "password_changed"]
    assert len(recorded) == 2
    assert {str(entry.changes) for entry in recorded} == {"{}"}
    assert recorded[1].actor == anna


def test_djangos_commands_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", "--noinput", username="root", email="", stdout=io.StringIO())
    user = User.objects.get(username="root")
    assert actions(user) == ["user_created"]
    (made,) = entries_of(user)
    assert (made.actor, made.actor_name) == (None, shell_actor())
    assert made.changes["is_superuser"] == [None, True]
    assert PASSWORD not in str(made.changes)

    monkeypatch.setattr("getpass.getpass", lambda prompt="": "quite another battery staple")
    call_command("changepassword", "root", stdout=io.StringIO())
    assert actions(user) == ["user_created", "password_changed"]


def test_removing_a_second_factor_is_recorded(anna: User) -> None:
    signed_in(anna)
    start = last_entry()

    call_command("forget_second_factors", "anna", stdout=io.StringIO())
    call_command("forget_second_factors", "anna", stdout=io.StringIO())

    assert actions(anna, start) == ["second_factor_reset"]


def test_setting_up_a_second_factor_is_recorded(anna: User) -> None:
    browser = Client()
    browser.force_login(anna, backend="accounts.sign_in.limits.PasswordBackend")
    page = "/admin/two-factor/enrol/"
    key = b32decode(browser.get(page).context["key"].replace(" ", ""))
    start = last_entry()

    browser.post(page, {"code": "000000"})
    SecondFactor.objects.update(throttling_failure_count=0)
    browser.post(page, {"code": f"{totp(key):06d}"})

    assert actions(anna, start) == ["second_factor_set_up"]


def test_rights_are_recorded_from_both_sides_and_when_cleared(anna: User) -> None:
    finance, start = Group.objects.get(name="Finance"), last_entry()

    finance.user_set.add(anna)
    finance.user_set.add(anna)  # changes nothing
    anna.groups.clear()

    notes = [entry.note for entry in entries_of(anna, start)]
    assert notes == ["Roles added: Finance", "Roles removed: Finance"]


def test_a_stronger_hash_of_the_same_password_is_not_recorded(anna: User) -> None:
    anna.password = make_password(PASSWORD, hasher="pbkdf2_sha1")
    User.objects.filter(pk=anna.pk).update(password=anna.password)
    start = last_entry()

    Client().post("/admin/login/", {"username": "anna", "password": PASSWORD})

    assert User.objects.get(pk=anna.pk).password != anna.password
    assert actions(anna, start) == ["signed_in"]


def test_members_cannot_be_changed_in_the_back_office() -> None:
    member, browser = make_member(), signed_in()
    before = member.user.password

    answer = browser.post(url(member.user), {"username": "x", "is_active": ""})
    assert answer.status_code == 403
    page = reverse("admin:auth_user_password_change", args=[member.user.pk])
    new = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    assert browser.post(page, new).status_code == 403
    member.user.refresh_from_db()
    assert (member.user.password, member.user.is_active) == (before, True)
