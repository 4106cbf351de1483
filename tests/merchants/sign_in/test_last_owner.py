"""An account keeps an owner, whatever two people do at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from core.inputs import InputProblem
from merchants.models import Membership, Role
from merchants.people.invitations import accept_invitation, invite_person
from merchants.people.members import change_role, members_of, remove_member
from tests.concurrency.racing import holding_locks, start, wait_for_waiting
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_staff

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=["guarded", "control"])
def guarded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Runs a test twice: with the lock, and without it as a control."""
    if request.param == "control":
        monkeypatch.setattr(QuerySet, "select_for_update", lambda rows, **options: rows)
    return bool(request.param == "guarded")


def owners_of(member: Membership) -> int:
    return members_of(member.account).filter(role=Role.OWNER).count()


def test_two_owners_cannot_remove_each_other(guarded: bool) -> None:
    one = make_member()
    two = make_member(one.account)

    def remove(who: Membership, by: Membership) -> str:
        try:
            remove_member(membership=who, actor=by.user)
        except InputProblem:
            return "refused"
        return "removed"

    both = "SELECT FROM auth_user WHERE id = %s OR id = %s FOR NO KEY UPDATE"
    with ThreadPoolExecutor(2) as pool, holding_locks(both, one.user_id, two.user_id):
        removals = [start(pool, remove, one, two), start(pool, remove, two, one)]
        wait_for_waiting(2)

    outcomes = sorted(removal.result() for removal in removals)
    assert outcomes == (["refused", "removed"] if guarded else ["removed", "removed"])
    assert owners_of(one) == (1 if guarded else 0)


def test_an_owner_cannot_step_down_while_the_other_is_removed(guarded: bool) -> None:
    one = make_member()
    two = make_member(one.account)

    def try_to(change: str) -> None:
        try:
            if change == "remove":
                remove_member(membership=one, actor=two.user)
            else:
                change_role(membership=two, role=Role.VIEWER, actor=one.user)
        except InputProblem:
            pass

    rows = (
        "WITH people AS (SELECT FROM auth_user WHERE id = %s FOR NO KEY UPDATE)"
        " SELECT (SELECT count(*) FROM people) FROM merchants_membership WHERE id = %s"
        " FOR NO KEY UPDATE"
    )
    with ThreadPoolExecutor(2) as pool, holding_locks(rows, one.user_id, two.pk):
        changes = [start(pool, try_to, change) for change in ("remove", "step down")]
        wait_for_waiting(2)

    for change in changes:
        change.result()
    assert owners_of(one) == (1 if guarded else 0)


def test_the_page_says_why_it_refuses() -> None:
    owner = make_member()
    make_member(owner.account, Role.DEVELOPER)
    browser = browser_of(owner)
    people = browser.get("/merchant/people/").content.decode()
    assert "The only owner" in people
    assert f"/people/{owner.pk}/remove/" not in people
    for path, sent in (("role", {"role": "viewer"}), ("remove", {})):
        page = browser.post(f"/merchant/people/{owner.pk}/{path}/", sent, follow=True)
        assert "needs at least one owner" in page.content.decode()
    assert owners_of(owner) == 1
    make_member(owner.account)
    assert "The only owner" not in browser.get("/merchant/people/").content.decode()


def test_one_invitation_makes_one_member() -> None:
    owner = make_member()
    invitation = invite_person(
        account=owner.account, email="a@b.example", role=Role.VIEWER, invited_by=owner.user
    )

    def accept(number: int) -> str:
        try:
            accept_invitation(invitation_id=invitation.pk, password=f"a long password {number}")
        except InputProblem:
            return "refused"
        return "joined"

    waiting = "SELECT FROM merchants_invitation WHERE id = %s FOR UPDATE"
    with ThreadPoolExecutor(2) as pool, holding_locks(waiting, invitation.pk):
        answers = [start(pool, accept, number) for number in (1, 2)]
        wait_for_waiting(2)

    assert sorted(answer.result() for answer in answers) == ["joined", "refused"]
    assert Membership.objects.filter(account=owner.account).count() == 2


def test_staff_are_never_members_and_members_never_staff() -> None:
    staff, member = make_staff(), make_member()
    with pytest.raises(IntegrityError, match="staff are not members"), transaction.atomic():
        Membership.objects.create(user=staff, account=member.account, role=Role.VIEWER)
    for right in ("is_staff", "is_superuser"):
        with pytest.raises(IntegrityError, match="are not staff"), transaction.atomic():
            User.objects.filter(pk=member.user_id).update(**{right: True})
