"""What one person reaches alone, from each role, in any number of steps."""

from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.urls import reverse

from core.backoffice.staff_roles import StaffRole
from operators.sign_in import reach
from operators.sign_in.reach import FORBIDDEN, NEEDS_TWO, STEPS, Reach, reach_of
from operators.staff.roles import name_of_right, permissions_of, staff_rights
from tests.operators.back_office import browser_with, form_of, text_of, url

# Before the table, the list of rights that need two administrators.
OLD_LIST = {"cases.replace_code", "wallets.move_money", "wallets.approve_booking"} | {
    name for name in STEPS if name.startswith(("sign_in.", "wallets."))
}


def rows() -> list[str]:
    """The rows of the table of docs/operate/roles.md."""
    lines = []
    for role in StaffRole:
        reached = reach_of(permissions_of(role))
        words = ", ".join(one.value for one in Reach if one in reached)
        lines.append(f"| {role.value} | {words or 'nothing'} |")
    return lines


@pytest.mark.parametrize("role", StaffRole)
def test_no_role_reaches_alone_what_needs_two(role: StaffRole) -> None:
    assert not FORBIDDEN & reach_of(permissions_of(role))


@pytest.mark.parametrize("role", StaffRole)
def test_an_administrator_with_another_role_reaches_no_more_of_it(role: StaffRole) -> None:
    both = permissions_of(StaffRole.ADMINISTRATOR) + permissions_of(role)
    assert not FORBIDDEN & reach_of(both)


def test_each_right_has_a_row_and_each_row_a_right() -> None:
    names = {name for right in staff_rights() for name in right.permissions}
    assert set(STEPS) == {name for name in names if ".view_" not in name}


def test_the_page_about_roles_says_what_each_reaches() -> None:
    print(*rows(), sep="\n")  # noqa: T201
    page = (Path(settings.BASE_DIR) / "docs/operate/roles.md").read_text()
    for row in rows():
        assert row in page


def test_without_the_table_an_administrator_reached_codes_and_keys() -> None:
    reached = reach_of(permissions_of(StaffRole.ADMINISTRATOR), needs_two=OLD_LIST)
    assert {Reach.CODES, Reach.KEYS, Reach.PEOPLE} <= reached


@pytest.mark.parametrize("name", sorted(NEEDS_TWO - {"cases.replace_code"}))
def test_each_right_that_needs_two_is_needed(name: str) -> None:
    """A puppet with it would reach further. `cases.replace_code` has the limits of its cases."""
    before = reach_of(permissions_of(StaffRole.ADMINISTRATOR))
    seconds = {name} | {one for one in NEEDS_TWO if name in reach.second_of(one)}
    after = reach_of(permissions_of(StaffRole.ADMINISTRATOR), needs_two=NEEDS_TWO - seconds)
    assert after > before


@pytest.mark.django_db
def test_an_administrator_with_a_puppet_reveals_no_code() -> None:
    """The attack: a new role that reveals codes, and an invitation to an own second address."""
    browser = browser_with(StaffRole.ADMINISTRATOR)
    wanted = ("catalogue.reveal_vouchercode", "catalogue.view_vouchercode")
    rights = [
        name_of_right(one) for one in staff_rights() if set(one.permissions).intersection(wanted)
    ]
    browser.post(reverse("admin:auth_group_add"), {"name": "Helpers", "rights": rights})
    role = Group.objects.get(name="Helpers")
    form = {"username": "puppet", "email": "puppet@staff.example", "groups": [role.pk]}

    answer = browser.post(reverse("admin:auth_user_add"), form, follow=True)

    assert "Ask another administrator" in text_of(answer)
    puppet = User.objects.get(username="puppet")
    browser.post(url(puppet), {**form_of(browser, url(puppet)), "groups": [role.pk]})
    assert not puppet.has_perm("catalogue.reveal_vouchercode")
    other = browser_with(StaffRole.ADMINISTRATOR)
    other.post(url(puppet), {**form_of(other, url(puppet)), "groups": [role.pk]})
    assert User.objects.get(pk=puppet.pk).has_perm("catalogue.reveal_vouchercode")


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["Merchant manager", "Support"])
def test_a_role_that_takes_part_in_what_two_decide_is_given_by_two(role: str) -> None:
    browser = browser_with(StaffRole.ADMINISTRATOR)
    form = {
        "username": "puppet",
        "email": "puppet@staff.example",
        "groups": [Group.objects.get(name=role).pk],
    }

    browser.post(reverse("admin:auth_user_add"), form)

    assert not User.objects.get(username="puppet").groups.exists()
