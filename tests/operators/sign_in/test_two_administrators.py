"""One administrator alone makes nobody finance, and lifts no limit."""

import html
from datetime import timedelta
from decimal import Decimal
from threading import Event
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from core.backoffice.staff_roles import StaffRole
from operators.sign_in.access import end_access
from operators.sign_in.asked_changes import link_to_page
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.reach import NEEDS_TWO
from operators.sign_in.second_person import ask_or_agree
from operators.staff import roles, staff
from operators.staff.roles import name_of_right, staff_rights
from tests.concurrency.racing import race
from tests.operators.back_office import form_of, list_url, make_staff, signed_in, text_of, url
from wallets.models import BankDetails, BookingLimit

pytestmark = pytest.mark.django_db


def of_role(role: StaffRole) -> tuple[User, Client]:
    person = make_staff()
    person.groups.add(Group.objects.get(name=role.value))
    return person, signed_in(person)


@pytest.fixture
def admins() -> list[Client]:
    return [of_role(StaffRole.ADMINISTRATOR)[1] for _ in range(2)]


def give(browser: Client, person: User, *roles: str) -> Any:
    groups = [group.pk for group in Group.objects.filter(name__in=roles)]
    form = {**form_of(browser, url(person)), "groups": groups}
    return browser.post(url(person), form, follow=True)


def admin_names(admins: list[Client]) -> list[str]:
    return [str(admin.get("/admin/").wsgi_request.user) for admin in admins]


def roles_of(person: User) -> set[str]:
    return set(person.groups.values_list("name", flat=True))


@pytest.mark.parametrize("role", ["Finance", "Administrator", "Stock keeper"])
def test_two_administrators_give_a_role_about_money(role: str, admins: list[Client]) -> None:
    nina = make_staff()

    for changed in (True, False):
        answer = give(admins[0], nina, role, "Operator")
        assert "Ask another administrator" in answer.content.decode()
        assert f"first page: {admin_names(admins)[1]}." in text_of(answer)
        assert ("successfully" in answer.content.decode()) == changed
        assert roles_of(nina) == {"Operator"}
    answer = text_of(give(admins[1], nina, role, "Operator"))

    assert roles_of(nina) == {role, "Operator"}
    both = ", ".join(sorted([role, "Operator"]))
    assert f"{nina.username} now has these roles: {both}." in answer
    assert "successfully" not in answer
    trail = AuditEntry.objects.filter(action__startswith="request_").order_by("pk")
    asked, *_again, agreed = trail.values_list("action", "reference", "note")
    assert asked == ("request_made", nina.username, f"Waits for another: the role {role}")
    asker = trail[0].actor
    assert agreed == (
        *("request_agreed", nina.username),
        f"Asked by {asker}: the role {role}",
    )


def test_a_page_filled_by_a_request_says_agree(admins: list[Client]) -> None:
    nina = make_staff()
    give(admins[0], nina, "Finance")
    address, words = link_to_page(TwoPersonChange.objects.get()), "Agree and save"

    filled = text_of(admins[1].get(address))
    assert words in filled
    assert "The form has it: save it to agree." in filled
    assert "such as anna" in filled  # the help of the username
    assert words not in text_of(admins[0].get(address))
    assert words not in text_of(admins[1].get(url(nina)))


def test_roles_that_need_two_are_marked_when_they_are_chosen(admins: list[Client]) -> None:
    BookingLimit.objects.create(
        group=Group.objects.get(name="Operator"), kind="credit", currency="USD", amount=5
    )
    for address in (reverse("admin:auth_user_add"), url(make_staff())):
        page = text_of(admins[0].get(address))
        assert "Finance (two administrators): Books deposits" in page
        assert "Operator (two administrators): Delivers" in page
        assert "Senior operator: Does an operator" in page


def first_page(browser: Client) -> str:
    return text_of(browser.get("/admin/"))


def test_a_change_that_waits_is_work_of_the_other_administrators(admins: list[Client]) -> None:
    nina, other = make_staff(), make_staff()
    line = f"asks for: {nina}: the role Finance"
    give(admins[0], nina, "Finance")

    assert line not in first_page(admins[0])
    assert f"You asked a second person for: {nina}: the role Finance" in first_page(admins[0])
    assert line in first_page(admins[1])
    listed = admins[1].get(list_url(User, change="waits")).content.decode()
    assert (nina.username in listed, other.username in listed) == (True, False)

    give(admins[1], nina, "Finance")
    assert line not in first_page(admins[1])


def test_the_page_of_a_person_opens_with_the_role_that_was_asked_for(admins: list[Client]) -> None:
    nina = make_staff()
    nina.groups.add(Group.objects.get(name="Operator"))
    give(admins[0], nina, "Finance", "Operator")
    address = link_to_page(TwoPersonChange.objects.get())

    assert address in admins[1].get("/admin/").content.decode()
    admins[1].post(address, form_of(admins[1], address))

    assert roles_of(nina) == {"Finance", "Operator"}


def test_a_request_gives_no_role_back_that_was_taken_away(admins: list[Client]) -> None:
    nina = make_staff()
    give(admins[0], nina, "Operator", "Finance")
    assert roles_of(nina) == {"Operator"}
    give(admins[0], nina, "Auditor")

    link = link_to_page(TwoPersonChange.objects.get())
    form = form_of(admins[1], link)
    admins[1].post(link, form)

    assert roles_of(nina) == {"Auditor", "Finance"}


def test_a_form_opens_with_what_was_asked_for(admins: list[Client]) -> None:
    page = save_details(admins[0], "IBAN DE1")
    assert "You asked a second person for: bank details for EUR: IBAN DE1" in page
    assert "errornote" not in page
    assert "Please correct" not in page

    address = link_to_page(TwoPersonChange.objects.get())
    fields = form_of(admins[1], address)
    assert (fields["currency"], fields["details"]) == ("EUR", "IBAN DE1")
    assert stored_details() == []  # nobody agrees by looking
    admins[1].post(address, fields)
    assert stored_details() == ["IBAN DE1"]


@pytest.mark.parametrize("own", [True, False])
def test_a_request_about_a_person_is_withdrawn_or_rejected(own: bool, admins: list[Client]) -> None:
    nina, of_nina = of_role(StaffRole.ADMINISTRATOR)
    give(admins[0], nina, "Finance", "Administrator")
    change = TwoPersonChange.objects.get()
    address, done = reverse("end_request", args=[change.pk]), "Withdrawn" if own else "Rejected"
    assert "the role Finance" not in first_page(of_nina)
    assert of_nina.post(address).status_code == 404  # it is about her
    assert of_role(StaffRole.SUPPORT)[1].post(address).status_code == 403

    ends = admins[0] if own else admins[1]
    assert address in ends.get("/admin/").content.decode()
    assert ends.post(address).status_code == 302

    assert AuditEntry.objects.filter(object_id=nina.pk, note=f"{done}: the role Finance").exists()
    give(admins[1], nina, "Finance", "Administrator")
    assert roles_of(nina) == {"Administrator"}


def test_an_invitation_does_not_give_the_role_either(admins: list[Client]) -> None:
    finance = Group.objects.get(name="Finance")
    form = {"username": "nina", "email": "nina@staff.example", "groups": [finance.pk]}

    admins[0].post(reverse("admin:auth_user_add"), form)
    nina = User.objects.get(username="nina")
    assert roles_of(nina) == set()
    give(admins[1], nina, "Finance")

    assert roles_of(nina) == {"Finance"}


def test_the_end_of_an_access_names_the_requests_that_end(admins: list[Client]) -> None:
    nina, boss = make_staff(), admins[1]
    give(admins[0], nina, "Finance")
    leaver = TwoPersonChange.objects.get().asked_by

    page = boss.get(url(leaver, "end_access")).text
    assert "requests for a second person 1." in page
    assert "Ends: " in page
    assert url(nina) in page.partition("Ends: ")[2][:200]
    assert "the role Finance" in page.partition("Ends: ")[2][:300]
    boss.post(url(leaver, "end_access"))

    ended = AuditEntry.objects.get(action=AuditAction.REQUEST_ENDED)
    assert (ended.object_type, ended.object_id) == ("auth.user", str(nina.pk))
    assert ended.note == f"Ended with the access of {leaver}: the role Finance"
    note = AuditEntry.objects.get(action=AuditAction.ACCESS_ENDED).note
    assert note.endswith("Requests for a second person ended: 1.")
    german = {"Accept-Language": "de"}
    trail = boss.get("/admin/trail/", headers=german).text
    assert f"Beendet mit dem Zugang von {leaver}: " in trail
    assert "Beendete Anfragen an eine zweite Person: 1." in trail
    leaver.is_active = True
    leaver.save()
    assert "asked for" not in boss.get(url(nina)).text


def test_a_request_ends_with_the_access_of_the_person_who_asked(admins: list[Client]) -> None:
    nina = make_staff()
    give(admins[0], nina, "Finance")
    end_access(user=TwoPersonChange.objects.get().asked_by, actor=nina)

    assert "asked for" not in admins[1].get(url(nina)).content.decode()
    give(admins[1], nina, "Finance")
    assert roles_of(nina) == set()

    give(of_role(StaffRole.ADMINISTRATOR)[1], nina, "Finance")
    assert roles_of(nina) == {"Finance"}


def test_a_request_ends_with_the_place_among_staff_of_the_person_who_asked(
    admins: list[Client],
) -> None:
    nina = make_staff()
    give(admins[0], nina, "Finance")
    User.objects.filter(pk=TwoPersonChange.objects.get().asked_by_id).update(is_staff=False)

    give(admins[1], nina, "Finance")
    assert roles_of(nina) == set()


def test_a_request_ends_after_a_day(admins: list[Client]) -> None:
    nina = make_staff()
    give(admins[0], nina, "Finance")
    TwoPersonChange.objects.update(asked_at=timezone.now() - timedelta(days=1, minutes=1))

    give(admins[1], nina, "Finance")

    assert roles_of(nina) == set()


def test_a_role_that_is_kept_asks_for_nothing(admins: list[Client]) -> None:
    nina = make_staff()
    nina.groups.add(Group.objects.get(name="Finance"))

    give(admins[0], nina, "Finance", "Operator")

    assert roles_of(nina) == {"Finance", "Operator"}


def test_a_new_role_marks_the_rights_that_two_administrators_give(admins: list[Client]) -> None:
    page = html.unescape(text_of(admins[0].get(reverse("admin:auth_group_add"))))

    for right in staff_rights():
        marked = f"{right.words} (two administrators)" in page
        assert marked == bool(NEEDS_TWO & set(right.permissions)), right.words


def test_people_with_a_role_get_no_right_about_money_from_one(admins: list[Client]) -> None:
    role = Group.objects.create(name="Helpers")
    make_staff().groups.add(role)
    money = next(one for one in staff_rights() if "wallets.move_money" in one.permissions)
    form = {"name": "Helpers", "rights": [name_of_right(money)]}

    assert "Not changed yet" in text_of(admins[0].post(url(role), form, follow=True))
    assert not role.permissions.exists()
    admins[1].post(url(role), form)

    assert role.permissions.filter(codename="move_money").exists()


def test_a_request_for_a_role_ends_when_the_role_gets_more_rights(admins: list[Client]) -> None:
    """Nobody has the role, so one administrator adds a right that nobody asked for."""
    nina, role = make_staff(), Group.objects.create(name="Helpers")
    first, second = [one for one in staff_rights() if NEEDS_TWO & set(one.permissions)][:2]
    roles.set_rights(role, [first])
    give(admins[0], nina, "Helpers")
    rights = [name_of_right(first), name_of_right(second)]
    admins[1].post(url(role), {"name": "Helpers", "rights": rights})

    give(admins[1], nina, "Helpers")

    assert roles_of(nina) == set()
    give(admins[0], nina, "Helpers")
    assert roles_of(nina) == {"Helpers"}


def test_a_request_for_rights_ends_when_another_person_has_the_role(admins: list[Client]) -> None:
    nina, role = make_staff(), Group.objects.create(name="Helpers")
    make_staff().groups.add(role)
    money = next(one for one in staff_rights() if "wallets.move_money" in one.permissions)
    form = {"name": "Helpers", "rights": [name_of_right(money)]}
    admins[0].post(url(role), form)
    give(admins[1], nina, "Helpers")
    assert roles_of(nina) == {"Helpers"}

    admins[1].post(url(role), form)

    assert not role.permissions.exists()


def test_two_administrators_add_all_rights_at_once(admins: list[Client]) -> None:
    role = Group.objects.create(name="Helpers")
    make_staff().groups.add(role)
    form = {"name": "Helpers", "rights": [name_of_right(one) for one in staff_rights()]}

    assert "Not changed yet" in text_of(admins[0].post(url(role), form, follow=True))
    admins[1].post(url(role), form)

    assert role.permissions.filter(codename="move_money").exists()


def test_the_asker_withdraws_a_request_about_themselves() -> None:
    nina, of_nina = of_role(StaffRole.ADMINISTRATOR)
    nina.last_login = timezone.now()
    nina.save()
    of_nina.post(url(nina), form_of(of_nina, url(nina)) | {"email": "new@staff.example"})
    change = TwoPersonChange.objects.get()
    address = reverse("end_request", args=[change.pk])
    assert "You asked a second person for" in first_page(of_nina)
    assert address in of_nina.get("/admin/").text

    assert of_nina.post(address).status_code == 302

    change.refresh_from_db()
    assert change.ended_at


@pytest.mark.parametrize("page", ["auth/user", "wallets/bankdetails", "catalogue/shelf"])
def test_an_address_with_a_nul_is_no_error(page: str) -> None:
    browser = signed_in(make_staff(superuser=True))

    assert browser.get(f"/admin/{page}/%00/change/").status_code in (302, 404)


@pytest.mark.parametrize(
    "permission",
    [
        "wallets.move_money",
        "cases.replace_code",
        "wallets.change_bankdetails",
        "catalogue.reveal_vouchercode",
        "accounts.add_apikey",
        "merchants.add_invitation",
        "merchants.change_membership",
    ],
)
def test_a_new_role_about_money_is_given_by_two(permission: str, admins: list[Client]) -> None:
    money = next(one for one in staff_rights() if permission in one.permissions)
    form = {"name": "Tellers", "rights": [name_of_right(money)]}
    admins[0].post(reverse("admin:auth_group_add"), form)
    nina = make_staff()

    give(admins[0], nina, "Tellers")

    codename = permission.partition(".")[2]
    assert Group.objects.filter(name="Tellers", permissions__codename=codename).exists()
    assert roles_of(nina) == set()


def test_what_is_about_money_exists() -> None:
    names = Permission.objects.values_list("content_type__app_label", "codename")

    assert {f"{app}.{codename}" for app, codename in names} >= NEEDS_TWO


def test_one_administrator_lowers_a_limit_and_two_lift_it(admins: list[Client]) -> None:
    finance = Group.objects.get(name="Finance")
    limit = BookingLimit.objects.create(group=finance, kind="deposit", amount=500)

    def save(browser: Client, amount: str, per_day: str = "") -> Decimal:
        form = {"group": finance.pk, "kind": "deposit", "currency": "", "per_day": per_day}
        browser.post(url(limit), {**form, "amount": amount})
        limit.refresh_from_db()
        return limit.amount

    assert save(admins[0], "400") == 400
    assert save(admins[0], "600") == 400
    assert save(admins[0], "400", "9000") == 400
    assert limit.per_day is None
    assert save(admins[1], "600") == 600
    assert save(admins[0], "700") == 600
    assert save(admins[1], "500") == 500
    assert save(admins[1], "700") == 500  # the request was about 600
    assert admins[0].post(url(limit, "delete"), {"post": "yes"}).status_code == 403


@pytest.mark.parametrize(
    ("other", "single"), [("Finance", []), ("Operator", ["wallets.move_money"])]
)
def test_one_administrator_takes_no_role_with_a_low_limit_away(
    other: str, single: list[str], admins: list[Client]
) -> None:
    """The person's other rights have no limit of their own, and so a higher one."""
    trainees, nina = Group.objects.create(name="Trainees"), make_staff(*single)
    BookingLimit.objects.create(group=trainees, kind="deposit", amount=5)
    nina.groups.set(Group.objects.filter(name__in=[other, "Trainees"]))

    give(admins[0], nina, other)
    assert roles_of(nina) == {other, "Trainees"}
    give(admins[1], nina, other)

    assert roles_of(nina) == {other}


def change_email(browser: Client, person: User, email: str) -> str:
    form = {**form_of(browser, url(person)), "email": email}
    return str(browser.post(url(person), form, follow=True).content.decode())


@pytest.mark.parametrize("waits", [False, True])
def test_the_email_of_a_person_who_moves_money_changes_by_two(
    waits: bool, admins: list[Client]
) -> None:
    """The address receives the link that sets the password."""
    nina = make_staff()
    if waits:
        give(admins[0], nina, "Finance")
    else:
        nina.groups.add(Group.objects.get(name="Finance"))
    address = nina.email

    assert "Not saved yet" in change_email(admins[0], nina, "mine@staff.example")
    nina.refresh_from_db()
    assert nina.email == address
    assert "mine@staff.example" in admins[1].get(url(nina)).content.decode()
    change_email(admins[1], nina, "mine@staff.example")

    nina.refresh_from_db()
    assert nina.email == "mine@staff.example"


@pytest.mark.parametrize("active", [True, False])
def test_the_email_of_a_person_with_a_single_permission_changes_by_two(
    active: bool, admins: list[Client]
) -> None:
    """Superusers give single permissions. A person who is switched off can be switched on."""
    nina = make_staff("wallets.approve_booking")
    User.objects.filter(pk=nina.pk).update(is_active=active)

    assert "Not saved yet" in change_email(admins[0], nina, "mine@staff.example")
    nina.refresh_from_db()
    assert nina.email == ""
    change_email(admins[1], nina, "mine@staff.example")

    nina.refresh_from_db()
    assert nina.email == "mine@staff.example"


def test_one_administrator_changes_the_email_of_other_people(admins: list[Client]) -> None:
    nina = make_staff()
    give(admins[0], nina, "Operator")

    change_email(admins[0], nina, "nina@staff.example")

    nina.refresh_from_db()
    assert nina.email == "nina@staff.example"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guarded", [True, False])
def test_a_role_gets_no_rights_about_money_while_it_is_given(
    guarded: bool, admins: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has the role when its form is checked, and it has no rights when it is given."""
    role, nina, checked, given = (
        Group.objects.create(name="Helpers"),
        make_staff(),
        Event(),
        Event(),
    )
    money = next(one for one in staff_rights() if "wallets.move_money" in one.permissions)
    rights = {"name": "Helpers", "rights": [name_of_right(money)]}

    def set_rights(*args: Any) -> None:
        checked.set()
        given.wait(1 if guarded else 30)  # with the guard, the other form waits for this one
        roles.set_rights(*args)

    def give_role() -> None:
        checked.wait(10)
        give(admins[0], nina, "Helpers")
        given.set()

    monkeypatch.setattr(staff, "set_rights", set_rights)
    if not guarded:
        monkeypatch.setattr(staff, "lock_roles", lambda: None)
    race([lambda: admins[1].post(url(role), rights), give_role])

    moves = nina.groups.filter(permissions__codename="move_money").exists()
    assert moves is not guarded


def test_one_administrator_adds_no_limit(admins: list[Client]) -> None:
    finance = Group.objects.get(name="Finance")
    form = {"group": finance.pk, "kind": "payout", "currency": "", "amount": "5"}

    answer = admins[0].post(reverse("admin:wallets_bookinglimit_add"), form, follow=True)
    assert "Not saved yet" in text_of(answer)
    assert not BookingLimit.objects.filter(kind="payout").exists()
    admins[1].post(reverse("admin:wallets_bookinglimit_add"), form)

    assert BookingLimit.objects.filter(kind="payout", amount=5).exists()


def change_name(browser: Client, person: User, name: str) -> str:
    form = {**form_of(browser, url(person)), "username": name}
    return str(browser.post(url(person), form, follow=True).content.decode())


def test_a_taken_name_of_a_person_uses_up_no_request(admins: list[Client]) -> None:
    nina, other = make_staff("wallets.move_money"), make_staff()
    change_name(admins[0], nina, "nina")
    User.objects.filter(pk=other.pk).update(username="nina")
    assert "already exists" in change_name(admins[1], nina, "nina")
    User.objects.filter(pk=other.pk).update(username="other")

    change_name(admins[1], nina, "nina")

    nina.refresh_from_db()
    assert nina.username == "nina"


def test_a_taken_name_of_a_role_uses_up_no_request(admins: list[Client]) -> None:
    role = Group.objects.create(name="Helpers")
    make_staff().groups.add(role)
    Group.objects.create(name="Tellers")
    money = next(one for one in staff_rights() if "wallets.move_money" in one.permissions)
    form = {"name": "Helpers", "rights": [name_of_right(money)]}
    admins[0].post(url(role), form)
    taken = admins[1].post(url(role), {**form, "name": "Tellers"})
    assert "already exists" in taken.content.decode()

    admins[1].post(url(role), form)

    assert role.permissions.filter(codename="move_money").exists()


def test_a_limit_that_exists_uses_up_no_request(admins: list[Client]) -> None:
    finance, address = Group.objects.get(name="Finance"), reverse("admin:wallets_bookinglimit_add")
    form = {"group": finance.pk, "kind": "payout", "currency": "", "amount": "5"}
    admins[0].post(address, form)
    other = BookingLimit.objects.create(group=finance, kind="payout", amount=1)
    assert "already exists" in admins[1].post(address, form).content.decode()
    other.delete()

    admins[1].post(address, form)

    assert BookingLimit.objects.filter(kind="payout", amount=5).exists()


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_are_agreed_by_two_people_only() -> None:
    anna, ben = make_staff(), make_staff()

    def ask(who: User) -> Any:
        return lambda: ask_or_agree(what="a change", about=None, actor=who)

    assert race([ask(anna)] * 4) == [False] * 4
    assert sorted(race([ask(ben), ask(ben)])) == [False, True]


def test_the_database_refuses_an_agreement_of_one() -> None:
    anna = make_staff()
    ask_or_agree(what="a change", about=None, actor=anna)

    with pytest.raises(IntegrityError, match="approved_by_another"):
        TwoPersonChange.objects.update(approved_by=anna, approved_at=timezone.now())


def save_details(browser: Client, details: str, currency: str = "EUR") -> str:
    """Adds or changes the bank details of a currency; returns the page."""
    row = BankDetails.objects.filter(currency=currency).first()
    address = url(row) if row else reverse("admin:wallets_bankdetails_add")
    form = {"currency": currency, "details": details}
    return str(browser.post(address, form, follow=True).content.decode())


def stored_details() -> list[str]:
    return list(BankDetails.objects.order_by("pk").values_list("details", flat=True))


def test_bank_details_are_added_and_changed_by_two(admins: list[Client]) -> None:
    assert "Not saved yet" in save_details(admins[0], "IBAN DE1\nBIC X")
    assert "Not saved yet" in save_details(admins[0], "IBAN DE1\nBIC X")
    assert stored_details() == []
    save_details(admins[1], "IBAN DE1\nBIC X")
    assert stored_details() == ["IBAN DE1\nBIC X"]

    save_details(admins[0], "IBAN DE2")
    assert "Not saved yet" in save_details(admins[1], "IBAN DE3")
    assert stored_details() == ["IBAN DE1\nBIC X"]
    assert "Not saved yet" in save_details(admins[1], "IBAN D E2")
    save_details(admins[1], " IBAN DE2 \r\n")

    assert stored_details() == ["IBAN DE2"]
    notes = AuditEntry.objects.filter(note__startswith="Waits for another: bank details for EUR")
    assert "IBAN DE2" in str(list(notes.values_list("note", flat=True)))


def test_a_request_ends_when_two_others_have_changed_the_details(admins: list[Client]) -> None:
    for browser in admins[:2]:
        save_details(browser, "IBAN DE1")
    save_details(admins[0], "IBAN OF A THIEF")
    save_details(admins[1], "IBAN DE2")
    save_details(admins[0], "IBAN DE2")
    assert stored_details() == ["IBAN DE2"]

    assert "Not saved yet" in save_details(admins[1], "IBAN OF A THIEF")
    assert stored_details() == ["IBAN DE2"]


def test_long_bank_details_that_differ_at_their_end_are_not_the_same(admins: list[Client]) -> None:
    save_details(admins[0], "A" * 900 + "1")
    assert "Not saved yet" in save_details(admins[1], "A" * 900 + "2")
    assert stored_details() == []


def test_bank_details_of_one_currency_are_not_those_of_another(admins: list[Client]) -> None:
    save_details(admins[0], "IBAN DE1", currency="EUR")
    assert "Not saved yet" in save_details(admins[1], "IBAN DE1", currency="USD")


def test_administrators_delete_no_bank_details(admins: list[Client]) -> None:
    details = BankDetails.objects.create(currency="EUR", details="IBAN DE1")
    assert admins[0].post(url(details, "delete"), {"post": "yes"}).status_code == 403
    assert stored_details() == ["IBAN DE1"]


def test_unchanged_bank_details_ask_for_nothing(admins: list[Client]) -> None:
    BankDetails.objects.create(currency="EUR", details="IBAN DE1")
    assert "Not saved yet" not in save_details(admins[0], "IBAN DE1")
    assert not TwoPersonChange.objects.exists()
