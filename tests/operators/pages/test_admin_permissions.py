"""Staff see only what their permissions allow."""

from unittest.mock import Mock

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from core.backoffice.registry import back_offices
from core.backoffice.staff_roles import FORMER_ROLES, StaffRole
from operators.admin import menu
from operators.staff.roles import make_roles, name_of_right, staff_rights
from tests.factories import make_product, own_shelf
from tests.operators.back_office import form_of, list_url, make_staff, shown_models, signed_in, url
from topups.fulfilment.transitions import FULFIL

pytestmark = pytest.mark.menu

VIEW_ALL = [f"{m._meta.app_label}.view_{m._meta.model_name}" for m in shown_models()]


def menu_of(browser: Client) -> dict[str, list[str]]:
    sections = browser.get(reverse("admin:index"), follow=True).context["sidebar_navigation"]
    return {each["title"]: [item["title"] for item in each["items"]] for each in sections}


def test_the_menu_names_every_model_for_a_superuser(db: None) -> None:
    named = {entry.model for entries in menu.SECTIONS.values() for entry in entries}

    assert named == set(shown_models())
    assert list(menu_of(signed_in())) == ["", *menu.SECTIONS]


def test_the_menu_leads_to_every_declared_page(db: None) -> None:
    sections = signed_in().get(reverse("admin:index")).context["sidebar_navigation"]
    links = [item["link"] for section in sections for item in section["items"]]
    declared = [page.page for app in back_offices() for page in app.menu_pages]

    assert "system" in declared
    assert {reverse(page) for page in declared} <= {*links}
    assert len(links) == len({*links})


def test_the_menu_shows_what_a_person_may_see(db: None) -> None:
    assert menu_of(signed_in(make_staff())) == {}
    assert menu_of(signed_in(make_staff("orders.view_order"))) == {
        "": ["Overview"],
        "Orders": ["Orders"],
    }
    operator = signed_in(make_staff(FULFIL))
    assert "" not in menu_of(operator)  # the desk is their first page


def test_all_models_are_listed_only_on_pages_that_show_them(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, listing = signed_in(), Mock(wraps=admin.site._build_app_dict)
    monkeypatch.setattr(admin.site, "_build_app_dict", listing)
    for address in (reverse("admin:index"), list_url(Group), list_url(Group) + "add/"):
        assert browser.get(address).status_code == 200
    assert not listing.called

    assert browser.get(reverse("admin:app_list", args=["catalogue"])).status_code == 200
    assert listing.called


def test_only_staff_get_in(db: None) -> None:
    user = User.objects.create_user("customer", password=None)
    browser = Client()
    browser.force_login(user)

    for model in shown_models():
        assert browser.get(list_url(model)).status_code == 302


def test_a_list_needs_the_view_permission(db: None) -> None:
    browser = signed_in(make_staff())
    for model in shown_models():
        assert browser.get(list_url(model)).status_code == 403, model


def test_the_view_permission_does_not_allow_changes(db: None) -> None:
    product = make_product(price="9.99", codes=1)
    browser = signed_in(make_staff(*VIEW_ALL))

    for target in (product, own_shelf(product)):
        page = browser.get(url(target))
        assert page.status_code == 200
        assert 'name="_save"' not in page.content.decode()
        assert "9.99" in page.content.decode()
        assert browser.post(url(target), {"name": "x", "price": "1"}).status_code == 403


def test_only_superusers_grant_rights(db: None) -> None:
    clerk = make_staff("auth.view_user", "auth.change_user", "auth.view_group", "auth.change_group")
    browser = signed_in(clerk)
    form = form_of(browser, url(clerk))

    answer = browser.post(url(clerk), {**form, "is_superuser": "on", "first_name": "Ann"})

    assert answer.status_code == 302
    clerk.refresh_from_db()
    assert (clerk.is_superuser, clerk.first_name) == (False, "Ann")
    boss = make_staff(superuser=True)
    assert browser.post(url(boss), {"username": "x"}).status_code == 403
    password = reverse("admin:auth_user_password_change", args=[boss.pk])
    assert browser.post(password, {"password1": "x", "password2": "x"}).status_code == 403


def of_role(role: StaffRole) -> tuple[User, Client]:
    person = make_staff()
    person.groups.add(Group.objects.get(name=role.value))
    return person, signed_in(person)


def groups_of(user: User) -> set[str]:
    return set(user.groups.values_list("name", flat=True))


def test_an_administrator_gives_roles_to_others_only(db: None) -> None:
    me, browser = of_role(StaffRole.ADMINISTRATOR)
    clerk, operators = make_staff(), Group.objects.get(name=StaffRole.OPERATOR.value)

    for person in (clerk, me):
        form = form_of(browser, url(person))
        assert {"is_superuser", "user_permissions"}.isdisjoint(form)
        sent = {**form, "groups": [operators.pk], "is_superuser": "on"}
        assert browser.post(url(person), sent).status_code == 302

    assert groups_of(clerk) == {"Operator"}
    assert groups_of(me) == {"Administrator"}
    assert not User.objects.filter(pk__in=[clerk.pk, me.pk], is_superuser=True).exists()


def test_whoever_changes_people_gives_no_roles(db: None) -> None:
    browser = signed_in(make_staff("auth.view_user", "auth.change_user"))
    clerk, operators = make_staff(), Group.objects.get(name=StaffRole.OPERATOR.value)
    form = form_of(browser, url(clerk))

    answer = browser.post(url(clerk), {**form, "groups": [operators.pk], "first_name": "Ann"})

    assert answer.status_code == 302
    clerk.refresh_from_db()
    assert (clerk.first_name, groups_of(clerk)) == ("Ann", set())


def test_an_administrator_makes_a_role_of_rights_in_words(db: None) -> None:
    me, browser = of_role(StaffRole.ADMINISTRATOR)
    add = reverse("admin:auth_group_add")

    answer = browser.post(add, {"name": "Night shift", "rights": ["see-orders"]})

    assert answer.status_code == 302
    role = Group.objects.get(name="Night shift")
    assert [right.codename for right in role.permissions.all()] == ["view_order"]
    extra = Permission.objects.get(codename="delete_email")  # belongs to no right
    role.permissions.add(extra)
    browser.post(url(role), {"name": "Night shift", "rights": ["see-accounts"]})
    assert {one.codename for one in role.permissions.all()} == {"view_account", "delete_email"}
    me.groups.add(role)
    own_browser = signed_in(User.objects.get(pk=me.pk))
    for not_theirs in (role, Group.objects.get(name="Finance")):
        answer = own_browser.post(url(not_theirs), {"name": "x", "rights": ["see-orders"]})
        assert answer.status_code == 403


def test_a_role_is_not_renamed_to_a_name_that_is_taken(db: None) -> None:
    browser = of_role(StaffRole.ADMINISTRATOR)[1]
    role = Group.objects.create(name="Night shift")

    Group.objects.create(name="Day shift")
    built_in, made = "A built-in role has this name", "already exists"
    for taken, why in (("Finance", built_in), ("Day shift", made)):
        page = browser.post(url(role), {"name": taken, "rights": ["see-orders"]}).content.decode()
        assert why in page
        assert f'value="{taken}"' in page
    role.refresh_from_db()
    assert role.name == "Night shift"


def test_every_permission_of_a_role_is_one_of_the_service(db: None) -> None:
    for right in staff_rights():
        for name in right.permissions:
            app, _, codename = name.partition(".")
            assert Permission.objects.filter(
                content_type__app_label=app, codename=codename
            ).exists(), name
    names = [name_of_right(right) for right in staff_rights()]
    assert len(names) == len(set(names))


def test_an_auditor_has_every_right_to_read_and_no_other(db: None) -> None:
    auditor = of_role(StaffRole.AUDITOR)[0]
    rights = User.objects.get(pk=auditor.pk).get_all_permissions()

    assert {name for name in rights if ".view_" not in name} == {"audit.export_lists"}
    assert set(VIEW_ALL) <= rights


def test_groups_of_earlier_versions_keep_their_people_and_rights(db: None) -> None:
    clerk, former = make_staff(), Group.objects.create(name=FORMER_ROLES[0])
    clerk.groups.add(former)
    former.permissions.add(Permission.objects.get(codename="change_shelf"))

    make_roles()

    assert User.objects.get(pk=clerk.pk).get_all_permissions() == {"catalogue.change_shelf"}
    assert not Group.objects.filter(name=FORMER_ROLES[1]).exists()


def test_staff_cannot_be_deleted(db: None) -> None:
    person = make_staff()

    assert signed_in().post(url(person, "delete"), {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("role", StaffRole)
def test_each_role_can_use_every_filter_it_sees(role: StaffRole, db: None) -> None:
    """A filter that searches a model needs the permission to view that model."""
    staff = make_staff()
    staff.groups.add(Group.objects.get(name=role.value))
    browser = signed_in(staff)
    for model in shown_models():
        page = browser.get(list_url(model))
        for spec in page.context["cl"].filter_specs if page.status_code == 200 else []:
            if isinstance(spec, AutocompleteSelectFilter):
                search = {
                    "app_label": spec.field.model._meta.app_label,
                    "model_name": spec.field.model._meta.model_name,
                    "field_name": spec.field.name,
                }
                assert browser.get(reverse("admin:autocomplete"), search).status_code == 200, search


@pytest.mark.parametrize("sent", ["²", "1\x00", "9" * 30, "-1", "x", ""])
def test_a_bad_choice_of_another_row_is_refused(sent: str, db: None) -> None:
    answer = signed_in().post(
        reverse("admin:topups_topupproduct_add"), {"name": "Gems", "category": sent}
    )
    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors
