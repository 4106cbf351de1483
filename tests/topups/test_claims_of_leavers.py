"""What people hold who were switched off, or lost the right, goes back to the queue."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User

from tests.factories import Merchant, buy_topup, make_operator, make_topup_product, move_now
from tests.neighbour import ours
from topups import fulfilments
from topups.fulfilments import Operator, release_claims_of_leavers
from topups.models import Channel, Fulfilment
from topups.transitions import FULFIL, Move

pytestmark = pytest.mark.django_db


def claimed_by(operator: Operator, merchant: Merchant) -> Fulfilment:
    reference = buy_topup(merchant, make_topup_product())
    move_now(reference=reference, move=Move.CLAIM, operator=operator)
    return Fulfilment.objects.select_related("claimed_by").get(order_reference=reference)


def switch_off(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def take_off_the_staff(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=False)


def take_the_right(user: User) -> None:
    user.user_permissions.remove(Permission.objects.get(codename=FULFIL.partition(".")[2]))
    user.groups.clear()


@pytest.mark.parametrize("leave", [switch_off, take_off_the_staff, take_the_right])
def test_the_claim_of_a_leaver_goes_back_to_the_queue(
    merchant: Merchant, leave: Callable[[User], None]
) -> None:
    leaver, other = make_operator(), make_operator()
    left, kept = claimed_by(leaver, merchant), claimed_by(other, merchant)
    assert release_claims_of_leavers() == 0
    leave(leaver.user)

    assert release_claims_of_leavers() == 1
    assert release_claims_of_leavers() == 0

    left.refresh_from_db()
    kept.refresh_from_db()
    assert (left.status, left.claimed_by, left.claimed_at) == ("pending", None, None)
    assert (kept.status, kept.claimed_by) == ("processing", other.user)
    event = left.events.latest("pk")
    assert (event.move, event.actor, event.channel) == ("release", "system", Channel.SYSTEM)
    assert event.note == f"{leaver.user} may no longer work on orders."
    move_now(reference=left.order_reference, move=Move.CLAIM, operator=other)


def test_an_order_that_another_holds_by_now_stays(merchant: Merchant) -> None:
    leaver, senior = make_operator(), make_operator(senior=True)
    stale = claimed_by(leaver, merchant)  # as the sweep read it
    switch_off(leaver.user)
    for move in (Move.RELEASE, Move.CLAIM):
        move_now(reference=stale.order_reference, move=move, operator=senior)

    assert fulfilments._release(stale) is False

    assert ours(Fulfilment).get().claimed_by == senior.user
    move_now(reference=stale.order_reference, move=Move.COMPLETE, operator=senior)
    assert fulfilments._release(stale) is False
    assert ours(Fulfilment).get().status == "completed"
