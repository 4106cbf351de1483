"""Claims of people who may no longer work return to the queue; claims that nobody finishes go to
review."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone

from tests.factories import Merchant, buy_topup, make_operator, make_topup_product, move_now
from tests.neighbour import ours
from topups.fulfilment import fulfilments
from topups.fulfilment.fulfilments import Operator, escalate_stale_claims, release_claims_of_leavers
from topups.fulfilment.transitions import FULFIL, Move
from topups.models import Channel, Fulfilment

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


def claimed_ago(fulfilment: Fulfilment, minutes: int) -> Fulfilment:
    Fulfilment.objects.filter(pk=fulfilment.pk).update(
        claimed_at=timezone.now() - timedelta(minutes=minutes)
    )
    fulfilment.refresh_from_db()
    return fulfilment


def test_a_claim_that_nobody_finishes_goes_to_review(merchant: Merchant, settings: Any) -> None:
    settings.DESK_CLAIM_MINUTES = 45
    slow, other = make_operator(), make_operator()
    stale = claimed_ago(claimed_by(slow, merchant), 46)
    fresh = claimed_ago(claimed_by(slow, merchant), 44)

    assert escalate_stale_claims() == 1
    assert escalate_stale_claims() == 0

    stale.refresh_from_db()
    fresh.refresh_from_db()
    assert (stale.status, stale.claimed_by) == ("pending_review", None)
    assert (fresh.status, fresh.claimed_by) == ("processing", slow.user)
    event = stale.events.latest("pk")
    assert (event.move, event.actor, event.channel) == ("review", "system", Channel.SYSTEM)
    assert event.note == f"{slow.user} claimed it more than 45 minutes ago. Ask them."
    move_now(reference=stale.order_reference, move=Move.COMPLETE, operator=other)


def test_a_newer_claim_does_not_go_to_review(merchant: Merchant) -> None:
    slow, other = make_operator(), make_operator()
    stale = claimed_ago(claimed_by(slow, merchant), 1000)  # as the sweep read it
    for move, operator in ((Move.RELEASE, slow), (Move.CLAIM, other)):
        move_now(reference=stale.order_reference, move=move, operator=operator)

    assert fulfilments._escalate(stale) is False
    assert ours(Fulfilment).get().claimed_by == other.user
    move_now(reference=stale.order_reference, move=Move.COMPLETE, operator=other)
    assert fulfilments._escalate(stale) is False
