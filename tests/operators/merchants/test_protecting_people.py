"""Staff end the access of colleagues, and protect members whose sign-in was stolen."""

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import SecondFactor
from audit.models import AuditAction, AuditEntry
from cases.services import propose_replacement
from core.backoffice.staff_roles import StaffRole
from core.database.columns import NOTE_LENGTH
from core.inputs import InputProblem
from merchants.models import Invitation, Role
from merchants.people.invitations import accept_invitation, invite_person
from merchants.people.members import members_of, remove_member
from operators.sign_in.access import end_access
from operators.sign_in.models import TwoPersonChange
from operators.staff.people import ask_or_reset_factor
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_operator,
    make_product,
    move_now,
)
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import (
    list_url,
    make_approval,
    make_case,
    make_staff,
    signed_in,
    url,
)
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = pytest.mark.django_db


def of_role(role: StaffRole) -> tuple[User, Client]:
    person = make_staff()
    person.groups.add(Group.objects.get(name=role.value))
    return person, signed_in(person)


def has_factor(user: User) -> bool:
    return SecondFactor.objects.filter(user=user).exists()


def test_one_click_ends_access_and_returns_the_claims(merchant: Merchant) -> None:
    operator = make_operator()
    theirs = signed_in(operator.user)
    reference = buy_topup(merchant)
    move_now(reference=reference, move=Move.CLAIM, operator=operator)
    account = make_account()
    invite_person(account=account, email="x@x.example", role=Role.OWNER, invited_by=operator.user)
    other = signed_in(make_staff("orders.view_order"))

    boss = of_role(StaffRole.ADMINISTRATOR)[1]
    asked = boss.get(url(operator.user, "end_access")).content.decode()
    assert "claimed orders 1, open invitations 1, requests for a second person 0." in asked
    assert "that still wait" not in asked
    boss.post(url(operator.user, "end_access"))

    entry = AuditEntry.objects.get(action="access_ended", reference=operator.user.username)
    assert entry.note == (
        "Sessions ended: 1. Invitations withdrawn: 1. Claims back in the queue: 1."
        " Requests for a second person ended: 0."
    )
    assert theirs.get("/admin/").status_code == 302
    assert other.get("/admin/").status_code == 200
    fulfilment = Fulfilment.objects.get(order_reference=reference)
    assert (fulfilment.status, fulfilment.claimed_by) == ("pending", None)
    assert Invitation.objects.get(account=account).state == "withdrawn"


def test_the_end_of_an_access_says_which_proposals_stay(merchant: Merchant) -> None:
    person, boss = make_staff(), of_role(StaffRole.ADMINISTRATOR)[1]
    make_approval(merchant.account, asked_by=person)
    make_approval(merchant.account)  # of somebody else
    bought = merchant.buy(product_id=make_product(codes=1).pk, quantity=1).json()["data"]
    case = make_case(bought["reference"])
    propose_replacement(case=case, version=case.version, actor=person)

    asked = boss.get(url(person, "end_access")).content.decode()

    assert "that they asked for and that still wait: 2." in asked


def test_the_page_of_a_person_says_that_bookings_are_left_out() -> None:
    person, left_out = make_staff(), "Bookings are left out"
    assert left_out in of_role(StaffRole.ADMINISTRATOR)[1].get(url(person)).content.decode()
    assert left_out not in signed_in().get(url(person)).content.decode()


def test_nobody_ends_their_own_access_or_that_of_a_superuser() -> None:
    me, browser = of_role(StaffRole.ADMINISTRATOR)

    for person in (me, make_staff(superuser=True)):
        assert browser.post(url(person, "end_access")).status_code == 403
        person.refresh_from_db()
        assert person.is_active


def test_sessions_of_one_person_end() -> None:
    anna, ben = make_member(), make_member()
    annas, bens = browser_of(anna), browser_of(ben)

    of_role(StaffRole.SUPPORT)[1].post(url(anna, "end_sessions"))

    assert annas.get("/merchant/").status_code == 302
    assert bens.get("/merchant/").status_code == 200


def test_the_sessions_of_somebody_whose_access_has_ended_are_not_offered() -> None:
    boss, browser = of_role(StaffRole.ADMINISTRATOR)
    person = make_staff()
    address = url(person, "end_sessions")
    assert "They can sign in again" in browser.get(address).content.decode()
    assert address in browser.get(url(person)).content.decode()

    end_access(user=person, actor=boss)

    assert address not in browser.get(url(person)).content.decode()
    assert browser.get(address).status_code == 403


def test_a_lockout_of_one_name_ends() -> None:
    anna, ben = make_member(), make_member()
    for person in (anna, ben):
        AccessAttempt.objects.create(username=person.user.username, failures_since_start=10)

    of_role(StaffRole.SUPPORT)[1].post(url(anna, "unlock_sign_in"))

    assert list(AccessAttempt.objects.values_list("username", flat=True)) == [ben.user.username]


def test_a_blocked_member_stays_out_until_staff_unblock_them() -> None:
    anna = make_member()
    annas, (_, support) = browser_of(anna), of_role(StaffRole.SUPPORT)

    support.post(url(anna, "block"), {"reason": "stolen phone"})

    assert annas.get("/merchant/").status_code == 302
    invitation = invite_person(
        account=anna.account, email=anna.user.email, role=Role.VIEWER, invited_by=anna.user
    )
    with pytest.raises(InputProblem):
        accept_invitation(invitation_id=invitation.pk, password="a long enough phrase")
    support.post(url(anna, "unblock"))
    anna.user.refresh_from_db()
    assert anna.user.is_active


def test_an_owner_sees_a_blocked_member_and_nothing_to_change_about_them() -> None:
    owner, (_, support) = make_member(), of_role(StaffRole.SUPPORT)
    anna, ben = make_member(owner.account), make_member(owner.account)
    owners = browser_of(owner.user)
    support.post(url(anna, "block"), {"reason": "stolen phone"})
    remove_member(membership=ben, actor=owner.user)
    assert list(members_of(owner.account)) == [owner]

    page = owners.get("/merchant/people/").content.decode().replace("<wbr>", "")
    file = owners.get("/merchant/people/people.csv").content.decode()
    assert page.count("blocked by our staff") == 1
    assert anna.user.email in page
    assert f"/merchant/people/{anna.pk}/" not in page
    assert f"{anna.user.email},{anna.role},blocked," in file
    assert ben.user.email not in page + file

    support.post(url(anna, "unblock"))
    page = owners.get("/merchant/people/").content.decode()
    assert "blocked by our staff" not in page
    assert f"/merchant/people/{anna.pk}/" in page


def test_staff_read_who_reads_the_reason_of_a_block() -> None:
    anna, (_, support) = make_member(), of_role(StaffRole.SUPPORT)

    page = support.get(url(anna, "block")).content.decode()
    support.post(url(anna, "block"), {"reason": "stolen phone"})
    support.post(url(anna, "unblock"))

    assert "all members of the account receive it by email" in page
    assert "The merchant does not see it." not in page
    notes = AuditEntry.objects.filter(action=AuditAction.MEMBER_CHANGED).order_by("pk")
    assert list(notes.values_list("note", flat=True)) == [
        "Person blocked, Reason: stolen phone",
        "Person unblocked",
    ]


def test_the_longest_reason_blocks_a_member() -> None:
    anna, (_, support) = make_member(), of_role(StaffRole.SUPPORT)

    support.post(url(anna, "block"), {"reason": "x" * NOTE_LENGTH})

    anna.user.refresh_from_db()
    assert not anna.user.is_active
    note = AuditEntry.objects.get(action=AuditAction.MEMBER_CHANGED).note
    assert len(note) == NOTE_LENGTH


def test_nobody_unblocks_a_member_whom_an_owner_removed() -> None:
    anna = make_member()
    User.objects.filter(pk=anna.user.pk).update(is_active=False)

    of_role(StaffRole.SUPPORT)[1].post(url(anna, "unblock"))

    anna.user.refresh_from_db()
    assert not anna.user.is_active


def test_two_members_of_staff_remove_the_factor_of_a_person_who_issues_keys() -> None:
    owner = make_member()
    signed_in(owner.user)
    (_, first), (_, second) = of_role(StaffRole.SUPPORT), of_role(StaffRole.SUPPORT)

    for browser in (first, first):
        browser.post(url(owner, "remove_second_factor"))
        assert has_factor(owner.user)
    second.post(url(owner, "remove_second_factor"))

    assert not has_factor(owner.user)
    assert TwoPersonChange.objects.get().approved_at is not None


def test_the_second_person_reads_who_asked() -> None:
    owner = make_member()
    signed_in(owner.user)
    (first, asks), (_, second) = of_role(StaffRole.SUPPORT), of_role(StaffRole.SUPPORT)
    asked = f"{first.username} asked for: "

    assert asked not in second.get(url(owner, "remove_second_factor")).content.decode()
    asks.post(url(owner, "remove_second_factor"))

    assert asked in second.get(url(owner, "remove_second_factor")).content.decode()
    assert asked not in asks.get(url(owner, "remove_second_factor")).content.decode()


@pytest.mark.parametrize("own", [True, False])
def test_the_removal_of_a_factor_is_withdrawn_or_rejected(own: bool) -> None:
    owner = make_member()
    signed_in(owner.user)
    asks, second, third = (of_role(StaffRole.SUPPORT)[1] for _ in range(3))
    asks.post(url(owner, "remove_second_factor"))
    address = reverse("end_request", args=[TwoPersonChange.objects.get().pk])
    line = f"{owner.user}: remove the second factor"
    assert line in third.get("/admin/").content.decode()
    assert line in asks.get("/admin/").content.decode()
    assert of_role(StaffRole.OPERATOR)[1].post(address).status_code == 403

    assert (asks if own else second).post(address).status_code == 302

    assert line not in third.get("/admin/").content.decode()
    third.post(url(owner, "remove_second_factor"))
    assert has_factor(owner.user)


def test_an_approval_names_a_person() -> None:
    owner = make_member()
    ask_or_reset_factor(user=owner.user, actor=make_staff())
    invite_person(
        account=owner.account, email="x@x.example", role=Role.VIEWER, invited_by=make_staff()
    )

    for model, name in ((TwoPersonChange, "change"), (Invitation, "invitation")):
        with (
            pytest.raises(IntegrityError, match=f"{name}_approved_by_another"),
            transaction.atomic(),
        ):
            model.objects.update(approved_at=timezone.now())


def test_a_request_to_remove_a_factor_ends_after_a_day() -> None:
    owner = make_member()
    signed_in(owner.user)
    of_role(StaffRole.SUPPORT)[1].post(url(owner, "remove_second_factor"))
    TwoPersonChange.objects.update(asked_at=timezone.now() - timedelta(days=1, minutes=1))

    of_role(StaffRole.SUPPORT)[1].post(url(owner, "remove_second_factor"))

    assert has_factor(owner.user)


def test_one_member_of_staff_removes_the_factor_of_a_viewer() -> None:
    viewer = make_member(role=Role.VIEWER)
    signed_in(viewer.user)

    of_role(StaffRole.SUPPORT)[1].post(url(viewer, "remove_second_factor"))

    assert not has_factor(viewer.user)


def test_the_state_of_a_second_factor_is_in_the_list_and_on_the_page() -> None:
    finance, _ = of_role(StaffRole.FINANCE)
    colleague, browser = make_staff(), of_role(StaffRole.ADMINISTRATOR)[1]
    remove = f'href="{url(finance, "remove_second_factor")}"'

    states = {
        user.pk: user.has_factor for user in browser.get(list_url(User)).context["cl"].result_list
    }

    assert (states[finance.pk], states[colleague.pk]) == (True, False)
    assert remove in browser.get(url(finance)).content.decode()
    assert "not set up" in browser.get(list_url(User)).content.decode()
    page = browser.get(url(colleague)).content.decode()
    assert "not set up" in page
    assert "remove-second-factor" not in page


def test_two_administrators_remove_the_factor_of_staff_who_act() -> None:
    finance, _ = of_role(StaffRole.FINANCE)
    admins = [of_role(StaffRole.ADMINISTRATOR)[1] for _ in range(2)]

    admins[0].post(url(finance, "remove_second_factor"))
    assert has_factor(finance)
    admins[1].post(url(finance, "remove_second_factor"))

    assert not has_factor(finance)


def test_two_merchant_managers_rotate_a_key(merchant: Merchant) -> None:
    for _person in range(2):
        _, manager = of_role(StaffRole.MERCHANT_MANAGER)
        page = manager.post(url(merchant.client, "rotate"), {"overlap_hours": "1"})
    assert "This is the only time the key is shown" in page.content.decode()
    assert merchant.client.keys.live().count() == 2


def test_a_request_ends_with_the_access_of_the_person_who_asked() -> None:
    owner, (leaver, second, third) = make_member().user, (make_staff() for _ in range(3))
    ask_or_reset_factor(user=owner, actor=leaver)
    end_access(user=leaver, actor=third)

    assert ask_or_reset_factor(user=owner, actor=second) is False
    assert ask_or_reset_factor(user=owner, actor=third) is True


def test_a_request_ends_with_the_place_among_staff_of_the_person_who_asked() -> None:
    owner, (leaver, second) = make_member().user, (make_staff() for _ in range(2))
    ask_or_reset_factor(user=owner, actor=leaver)
    leaver.is_staff = False
    leaver.save()

    assert ask_or_reset_factor(user=owner, actor=second) is False
