"""Staff who can do more than look must set up a second factor before they can do anything."""

import re
from base64 import b32decode
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.urls import reverse
from django_otp.oath import totp

from accounts.models import SecondFactor
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import CannotOpen
from tests.browsing import PASSWORD
from tests.factories import make_account
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours
from tests.operators.back_office import make_staff, staff_with
from wallets.models import LedgerEntry

pytestmark = pytest.mark.django_db

ENROL = "/admin/two-factor/enrol/"
PAGES = ["/admin/", "/admin/telegram-link/", "/admin/password_change/", "/admin/autocomplete/"]


def enrol_before(page: str) -> str:
    """Where a browser that must set up a second factor is sent when it asks for a page."""
    return f"{ENROL}?{urlencode({'next': page})}"


def plain_browser(user: User) -> Client:
    """A browser in which this person has signed in with the password only."""
    browser = Client()
    browser.force_login(user, backend="accounts.sign_in.limits.PasswordBackend")
    return browser


@pytest.mark.parametrize(
    "permission",
    [
        "wallets.move_money",
        "catalogue.reveal_vouchercode",
        "accounts.add_apikey",
        "auth.change_user",
        "merchants.add_invitation",
        "topups.fulfil",
        "telegram.change_platformsettings",
    ],
)
def test_each_permission_to_act_requires_a_second_factor(permission: str) -> None:
    browser = plain_browser(make_staff(permission))

    for page in PAGES:
        assert browser.get(page).headers.get("Location") == enrol_before(page), page
    assert browser.get(ENROL).status_code == 200


def test_a_permission_from_a_group_requires_a_second_factor() -> None:
    user = make_staff()
    user.groups.add(Group.objects.get(name="Finance"))

    assert plain_browser(user).get("/admin/").headers["Location"] == enrol_before("/admin/")


def test_superusers_need_a_second_factor() -> None:
    answer = plain_browser(make_staff(superuser=True)).get("/admin/")

    assert answer.headers["Location"] == enrol_before("/admin/")


def test_staff_who_only_look_need_no_second_factor() -> None:
    browser = plain_browser(make_staff("catalogue.view_product", "orders.view_order"))

    assert browser.get("/admin/").status_code == 200
    assert browser.get("/admin/catalogue/product/").status_code == 200


def test_no_form_works_before_the_second_factor_is_set_up() -> None:
    account = make_account(balance="0")
    browser = plain_browser(make_staff("wallets.move_money", "wallets.view_wallet"))
    form = {"kind": "deposit", "amount": "5", "reason": "x", "reference": "b", "confirmed": "1"}
    form["form_id"] = "5f3d4f1e-58a1-4f2d-9d0b-8f0a6d7c1e11"

    answer = browser.post(reverse("admin:wallets_wallet_book", args=[account.pk]), form)

    assert answer.headers["Location"] == ENROL
    assert not ours(LedgerEntry).exists()
    assert browser.post("/admin/logout/").status_code == 200


def test_the_first_sign_in_leads_to_the_page_and_then_to_the_back_office(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admin.site, "enable_nav_sidebar", True)
    User.objects.create_user("anna", password=PASSWORD, is_staff=True, is_superuser=True)
    browser = Client()
    browser.post("/admin/login/", {"username": "anna", "password": PASSWORD})

    page = browser.get("/admin/", follow=True)
    assert page.redirect_chain == [(enrol_before("/admin/"), 302)]
    text = page.content.decode()
    assert "authenticator app" in text
    assert "Sign out" in text
    key = b32decode(page.context["key"].replace(" ", ""))
    shown = browser.post(ENROL, {"code": f"{totp(key):06d}"})

    assert "Backup codes" in shown.content.decode()
    opened = browser.get("/admin/")
    assert opened.status_code == 200
    for part in ('id="nav-sidebar"', 'class="search-open"', 'id="command-results"'):
        assert part in opened.content.decode()
        assert part not in text
        assert part not in shown.content.decode()


@pytest.mark.parametrize("site", ["staff", "member"])
def test_the_database_holds_neither_the_key_nor_the_backup_codes(site: str) -> None:
    if site == "staff":
        browser, page = plain_browser(make_staff(superuser=True)), ENROL
    else:
        browser, page = browser_of(make_member()), "/merchant/profile/two-factor/on/"
    typed = browser.get(page).context["key"].replace(" ", "")
    key = b32decode(typed)
    answer = browser.post(page, {"code": f"{totp(key):06d}"})
    codes = _backup_codes(answer.content.decode())
    assert len(codes) == 10

    stored = _everything_stored()

    for secret in (typed, key.hex(), *codes, *(code.replace("-", "") for code in codes)):
        assert secret.lower() not in stored


def test_a_key_that_is_copied_to_somebody_else_does_not_open() -> None:
    one, other = (SecondFactor.objects.create(user=make_staff()) for _ in range(2))
    SecondFactor.objects.filter(pk=other.pk).update(sealed_key=one.sealed_key)

    other.refresh_from_db()

    with pytest.raises(CannotOpen):
        _ = other.key


def _backup_codes(page: str) -> list[str]:
    shown = re.search(r'aria-label="Backup codes">([^<]+)<', page)
    assert shown is not None
    return shown.group(1).split()


def _everything_stored() -> str:
    """Every row of every table as text, in lower case."""
    parts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT t::text FROM "{table}" AS t')
            parts += [row for (row,) in cursor.fetchall()]
    return "\n".join(parts).lower()


@pytest.mark.parametrize(("role", "acts"), [(StaffRole.AUDITOR, False), (StaffRole.SUPPORT, True)])
def test_enrolment_tells_only_people_who_act_that_they_can_change_things(
    role: StaffRole, acts: bool
) -> None:
    page = plain_browser(staff_with(role)).get(ENROL).content.decode()

    assert ("can change things here" in page) == acts
    assert ("can download what it sees here" in page) != acts
