"""The operators' desk: what it shows, what it offers, and the rules of every move."""

import html
import re
import time
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.core.management.commands.migrate import Command as Migrate
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Preferences
from core.backoffice.staff_roles import StaffRole
from operators.desk import moves as desk_moves
from operators.desk import viewers
from operators.staff.roles import permissions_of
from tests.factories import (
    Merchant,
    buy_topup,
    make_field,
    make_operator,
    make_topup_product,
    move_now,
)
from tests.operators.back_office import make_staff, signed_in, staff_with
from topups.fulfilment.fulfilments import (
    MoveRefused,
    Operator,
    claim_next,
    escalate_stale_claims,
)
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import Channel, Fulfilment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

QUEUE = "/admin/topups/fulfilment/"
CONFIRMED = {"confirmed": "1", "reason": "wrong_id"}


def browser_of(user: User) -> Client:
    return signed_in(user)


def operator_browser(**fields: Any) -> tuple[User, Client]:
    operator = make_operator(**fields)
    return operator.user, browser_of(operator.user)


def press(browser: Client, fulfilment: Fulfilment, move: Move, **data: str) -> Any:
    """Sends the form of a move, in the version that the order has now."""
    url = reverse("admin:topups_fulfilment_move", args=[fulfilment.pk, move.value])
    return browser.post(url, {"version": version_of(fulfilment), **data}, follow=True)


def select(*rows: Fulfilment) -> dict[str, Any]:
    """The data of the queue's form with these rows selected, as they are now."""
    versions = {f"version-{row.pk}": version_of(row) for row in rows}
    return {"_selected_action": [row.pk for row in rows], **versions}


def said(answer: Any) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def bought(merchant: Merchant, **fields: Any) -> Fulfilment:
    return Fulfilment.objects.get(order_reference=buy_topup(merchant, **fields))


def test_staff_with_only_the_desk_land_on_it(merchant: Merchant) -> None:
    _, browser = operator_browser()
    senior = signed_in(make_staff(*permissions_of(StaffRole.SENIOR_OPERATOR)))

    assert browser.get("/admin/").headers["Location"] == QUEUE
    assert senior.get("/admin/").headers["Location"] == QUEUE
    assert browser.get(QUEUE).status_code == 200
    assert signed_in().get("/admin/").status_code == 200


def test_the_queue_is_oldest_first_with_all_details(merchant: Merchant) -> None:
    product = make_topup_product(name="Gems 60")
    field = make_field(product, "dropdown", label="Server", options=["eu"])
    first = buy_topup(merchant, product, player_id="007", fields={str(field.number): "eu"})
    second = buy_topup(merchant, product, fields={str(field.number): "eu"})

    text = operator_browser()[1].get(QUEUE).content.decode()

    assert text.index(first) < text.index(second)
    for shown in ("Gems 60", 'value="007"', "Server: <strong>eu</strong>", "0 min"):
        assert shown in text


def test_an_empty_filter_of_the_desk_says_what_there_is_none_of() -> None:
    _, browser = operator_browser()
    assert "No refund is due." in browser.get(QUEUE, {"work": "refund_due"}).content.decode()
    assert "Nothing found." in browser.get(QUEUE, {"work": "all", "q": "x"}).content.decode()


def test_ended_orders_leave_the_queue(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    _, browser = operator_browser()
    press(browser, fulfilment, Move.COMPLETE, confirmed="1")

    assert fulfilment.order_reference not in browser.get(QUEUE).content.decode()
    assert fulfilment.order_reference in browser.get(QUEUE, {"work": "all"}).content.decode()


def test_claiming_is_one_click_and_ending_needs_a_confirmation(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    user, browser = operator_browser()

    press(browser, fulfilment, Move.CLAIM)
    fulfilment.refresh_from_db()
    assert (fulfilment.status, fulfilment.claimed_by) == ("processing", user)

    asked = press(browser, fulfilment, Move.COMPLETE)
    fulfilment.refresh_from_db()
    assert "This ends the order and cannot be undone." in asked.content.decode()
    assert fulfilment.status == "processing"

    press(browser, fulfilment, Move.COMPLETE, confirmed="1", note="sent at noon")
    fulfilment.refresh_from_db()
    event = fulfilment.events.last()
    assert fulfilment.status == "completed"
    assert event is not None
    assert (event.actor, event.channel, event.note) == (user.username, "admin", "sent at noon")


@pytest.mark.parametrize("move", list(Move))
def test_a_get_moves_nothing(merchant: Merchant, move: Move) -> None:
    fulfilment = bought(merchant)
    _, browser = operator_browser(senior=True)

    browser.get(reverse("admin:topups_fulfilment_move", args=[fulfilment.pk, move.value]))
    browser.get(reverse("admin:topups_fulfilment_next"))

    fulfilment.refresh_from_db()
    assert fulfilment.status == "pending"
    assert fulfilment.events.count() == 1


def test_a_rejection_records_its_reason_and_makes_the_refund_due(
    merchant: Merchant,
) -> None:
    fulfilment = bought(merchant)
    _, browser = operator_browser()

    press(browser, fulfilment, Move.REJECT, confirmed="1", reason="wrong_id", note="no such player")

    fulfilment.refresh_from_db()
    event = fulfilment.events.get(move="reject")
    assert event.note == "wrong_id: no such player"
    assert (fulfilment.failure_reason, fulfilment.refunded) == ("fulfilment_failed", False)
    assert fulfilment.refund_due_at is not None


def test_a_rejection_needs_a_reason(merchant: Merchant) -> None:
    fulfilment = bought(merchant)

    answer = press(operator_browser()[1], fulfilment, Move.REJECT, confirmed="1", reason="bored")

    fulfilment.refresh_from_db()
    assert fulfilment.status == "pending"
    assert answer.status_code == 200


def test_other_reason_needs_a_message_for_the_merchant(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    _, browser = operator_browser()

    refused = press(browser, fulfilment, Move.REJECT, confirmed="1", reason="other", message=" ")
    assert "Tell the merchant why it could not be delivered." in refused.content.decode()
    fulfilment.refresh_from_db()
    assert fulfilment.status == "pending"

    press(browser, fulfilment, Move.REJECT, confirmed="1", reason="other", message="Server is down")
    fulfilment.refresh_from_db()
    assert (fulfilment.status, fulfilment.message) == ("failed", "Server is down")


def test_a_review_needs_a_note_which_the_senior_operator_reads(merchant: Merchant) -> None:
    fulfilment, other = bought(merchant), bought(merchant)
    anna, browser = operator_browser(username="anna")
    press(browser, fulfilment, Move.CLAIM)

    asked = press(browser, fulfilment, Move.REVIEW)
    unsaid = press(browser, fulfilment, Move.REVIEW, confirmed="1", note=" ")
    for page in (asked, unsaid):
        assert "Send to review, claim next" in page.content.decode()
        assert "cannot be undone" not in page.content.decode()
    fulfilment.refresh_from_db()
    assert fulfilment.status == "processing"

    note = "The game closed while it paid"
    sent = press(browser, fulfilment, Move.REVIEW, confirmed="1", note=note, claim_next="1")
    text = f"{fulfilment.order_reference}</a>. A senior operator decides. You have claimed"
    assert text in sent.content.decode()
    assert Fulfilment.objects.get(claimed_by=anna) == other

    _, seniors = operator_browser(username="steve", senior=True)
    for page in (seniors.get(QUEUE), seniors.get(f"{QUEUE}{fulfilment.pk}/change/")):
        assert f"anna: {note}" in page.content.decode()


def test_a_selection_sent_to_review_needs_a_note(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    _, browser = operator_browser()
    press(browser, fulfilment, Move.CLAIM)
    selection = {**select(fulfilment), "action": "review_selected"}

    asked = browser.post(QUEUE, selection)
    assert asked.status_code == 200
    browser.post(QUEUE, {**selection, "confirmed": "1", "note": "Is it there?"})

    fulfilment.refresh_from_db()
    assert fulfilment.status == "pending_review"


def test_a_claim_that_went_to_review_by_itself_says_whose_it_was(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    _, browser = operator_browser(username="anna")
    press(browser, fulfilment, Move.CLAIM)
    long_ago = timezone.now() - timedelta(days=1)
    Fulfilment.objects.filter(pk=fulfilment.pk).update(claimed_at=long_ago)
    assert escalate_stale_claims() == 1

    page = browser.get(f"{QUEUE}{fulfilment.pk}/change/").content.decode()

    assert "Sent to review by the service: anna claimed it more than" in page


def test_a_failure_without_refund_says_what_it_costs_the_merchant_and_needs_a_note(
    merchant: Merchant,
) -> None:
    fulfilment = bought(merchant)
    _, browser = operator_browser(senior=True)
    press(browser, fulfilment, Move.CLAIM)
    press(browser, fulfilment, Move.REVIEW, confirmed="1", note="Is it there?")

    asked = press(browser, fulfilment, Move.REJECT_UNREFUNDED)
    press(browser, fulfilment, Move.REJECT_UNREFUNDED, confirmed="1", reason="wrong_id")

    kept = f"We keep the 4.99 USD; {fulfilment.account} gets nothing back."
    assert kept in html.unescape(asked.content.decode())
    fulfilment.refresh_from_db()
    assert fulfilment.status == "pending_review"
    note = "The code was used"
    press(browser, fulfilment, Move.REJECT_UNREFUNDED, confirmed="1", reason="wrong_id", note=note)
    fulfilment.refresh_from_db()
    assert (fulfilment.status, fulfilment.refund_due_at) == ("failed", None)


@pytest.mark.parametrize(
    ("moves", "senior", "offered"),
    [
        ([], False, ["claim", "complete", "reject"]),
        ([Move.CLAIM], False, ["complete", "review", "release", "reject"]),
        ([Move.CLAIM, Move.REVIEW], False, ["complete"]),
        ([Move.CLAIM, Move.REVIEW], True, ["complete", "reject", "reject_unrefunded"]),
        ([Move.COMPLETE], True, []),
    ],
)
def test_buttons_appear_only_if_the_state_allows_them(
    merchant: Merchant, moves: list[Move], senior: bool, offered: list[str]
) -> None:
    operator = make_operator(senior=senior)
    fulfilment = bought(merchant)
    for move in moves:
        move_now(reference=fulfilment.order_reference, move=move, operator=operator)

    page = browser_of(operator.user).get(f"{QUEUE}{fulfilment.pk}/change/")

    assert [move["url"].split("/")[-2] for move in page.context["moves"]] == offered


def test_an_order_that_nobody_claimed_offers_the_claim_first(merchant: Merchant) -> None:
    operator = make_operator()
    fulfilment = bought(merchant)
    before = coloured(operator.user, fulfilment)
    move_now(reference=fulfilment.order_reference, move=Move.CLAIM, operator=operator)

    assert before == ["Claim"]
    assert coloured(operator.user, fulfilment) == ["Delivered, claim next"]


def test_an_order_in_review_or_ended_leads_an_operator_to_the_next(merchant: Merchant) -> None:
    operator, senior = make_operator(), make_operator(username="steve", senior=True)
    fulfilment = bought(merchant)
    for move in (Move.CLAIM, Move.REVIEW):
        move_now(reference=fulfilment.order_reference, move=move, operator=operator)
    assert coloured(operator.user, fulfilment) == ["Claim next"]
    assert coloured(senior.user, fulfilment) == ["Mark delivered…"]

    move_now(reference=fulfilment.order_reference, move=Move.COMPLETE, operator=operator)
    assert coloured(operator.user, fulfilment) == ["Claim next"]
    assert coloured(staff_with(StaffRole.AUDITOR), fulfilment) == []


def coloured(user: User, fulfilment: Fulfilment) -> list[str]:
    """The moves that the order's page offers in the main colour."""
    page = browser_of(user).get(f"{QUEUE}{fulfilment.pk}/change/").content.decode()
    found = re.findall(r"<(?:button|a)[^>]*bg-primary-600[^>]*>(.*?)</(?:button|a)>", page, re.S)
    texts = [re.sub(r"<span.*?</span>|<[^>]+>", "", one, flags=re.S).strip() for one in found]
    return [text for text in texts if text and text != "Save"]


def test_another_operators_claim_offers_no_buttons(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    claim_next(operator=make_operator())

    page = operator_browser()[1].get(f"{QUEUE}{fulfilment.pk}/change/")

    assert page.context["moves"] == []


def test_the_slower_of_two_operators_sees_what_happened(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    anna, annas = operator_browser(username="anna")
    _, bens = operator_browser(username="ben")
    press(annas, fulfilment, Move.CLAIM)

    answer = press(bens, fulfilment, Move.CLAIM)

    assert "claimed by anna" in said(answer)
    fulfilment.refresh_from_db()
    assert fulfilment.claimed_by == anna


def test_a_senior_operator_goes_from_review_to_review(merchant: Merchant) -> None:
    operator, senior = make_operator(), make_operator(username="steve", senior=True)
    first, second = bought(merchant), bought(merchant)
    for order in (first, second):
        for move in (Move.CLAIM, Move.REVIEW):
            move_now(reference=order.order_reference, move=move, operator=operator)

    browser = browser_of(senior.user)
    decided = press(browser, first, Move.COMPLETE, confirmed="1").content.decode()
    link = rf'<a[^>]*href="{QUEUE}{second.pk}/change/".{{,400}}Next in review'
    assert re.search(link, decided, re.DOTALL)
    assert "Next in review" not in browser_of(operator.user).get(f"{QUEUE}{first.pk}/change/").text

    last = press(browser, second, Move.COMPLETE, confirmed="1").content.decode()
    assert "Next in review" not in last


def test_an_order_names_the_person_who_alone_failed_it_without_a_refund(merchant: Merchant) -> None:
    alone, with_another = bought(merchant), bought(merchant)
    operator, senior = make_operator(), make_operator(username="steve", senior=True)
    for order, claims in ((alone, senior), (with_another, operator)):
        for move, person in (
            *((Move.CLAIM, claims), (Move.REVIEW, claims)),
            (Move.REJECT_UNREFUNDED, senior),
        ):
            move_now(reference=order.order_reference, move=move, operator=person)

    browser = browser_of(senior.user)
    words = "steve claimed this order and failed it without a refund."
    assert words in browser.get(f"{QUEUE}{alone.pk}/change/").text
    assert words not in browser.get(f"{QUEUE}{with_another.pk}/change/").text


@pytest.mark.parametrize("stock", [None, 5])
def test_a_rejection_names_counted_stock_only(merchant: Merchant, stock: int | None) -> None:
    order = bought(merchant, product=make_topup_product(available_stock=stock))
    _, browser = operator_browser()
    press(browser, order, Move.CLAIM)
    address = reverse("admin:topups_fulfilment_move", args=[order.pk, Move.REJECT])

    page = browser.get(address).text

    assert ("puts the unsold piece back into stock" in page) == (stock is not None)


def test_claim_next_takes_the_oldest_and_then_the_next(merchant: Merchant) -> None:
    first, second = bought(merchant), bought(merchant)
    user, browser = operator_browser()

    for fulfilment in (first, second):
        answer = browser.post(reverse("admin:topups_fulfilment_next"))
        assert answer.headers["Location"] == f"{QUEUE}{fulfilment.pk}/change/"
        fulfilment.refresh_from_db()
        assert fulfilment.claimed_by == user

    answer = browser.post(reverse("admin:topups_fulfilment_next"), follow=True)
    assert "Nothing is waiting." in said(answer)


def deliver_next(
    browser: Client, fulfilment: Fulfilment, version: int, *, seconds: float = 2
) -> Any:
    """Presses the button so many seconds after the claim."""
    claimed = timezone.now() - timedelta(seconds=seconds)
    Fulfilment.objects.filter(pk=fulfilment.pk, status="processing").update(claimed_at=claimed)
    url = reverse("admin:topups_fulfilment_deliver_next", args=[fulfilment.pk])
    return browser.post(url, {"version": version})


def test_one_click_delivers_an_order_and_claims_the_next(merchant: Merchant) -> None:
    first, second, third = bought(merchant), bought(merchant), bought(merchant)
    user, browser = operator_browser()
    press(browser, first, Move.CLAIM)
    assert "Delivered, claim next" in browser.get(f"{QUEUE}{first.pk}/change/").content.decode()
    version = version_of(first)

    delivered = deliver_next(browser, first, version)
    again = deliver_next(browser, first, version)

    # The repeated click leads to the same order, and claims no other.
    for answer in (delivered, again):
        assert answer["Location"] == f"{QUEUE}{second.pk}/change/"
    page = browser.get(f"{QUEUE}{second.pk}/change/")
    link = f'<a href="{QUEUE}{first.pk}/change/" class="text-link">{first.order_reference}</a>'
    assert f"Delivered: {link}. You have claimed the next one." in page.content.decode()
    assert f"{second.product} → {second.player_id}" in page.content.decode()
    assert {each.pk: each.status for each in Fulfilment.objects.all()} == {
        first.pk: "completed",
        second.pk: "processing",
        third.pk: "pending",
    }
    assert "You have already done this" in said(page)
    Fulfilment.objects.filter(claimed_by=user).get()


def test_a_delivery_before_the_next_order_is_named(merchant: Merchant) -> None:
    first, second = bought(merchant), bought(merchant)
    _, browser = operator_browser()
    press(browser, first, Move.CLAIM)
    address = reverse("admin:topups_fulfilment_move", args=[first.pk, Move.COMPLETE.value])
    form = {"confirmed": "1", "claim_next": "1", "version": version_of(first)}

    page = browser.post(address, form, follow=True)

    assert page.redirect_chain[-1][0] == f"{QUEUE}{second.pk}/change/"
    assert f"{first.order_reference}</a>. You have claimed the next one." in page.content.decode()


def test_a_second_click_does_not_end_an_order_that_nobody_has_read(merchant: Merchant) -> None:
    first, second = bought(merchant), bought(merchant)
    _, browser = operator_browser()
    press(browser, first, Move.CLAIM)
    deliver_next(browser, first, version_of(first))

    answer = deliver_next(browser, second, version_of(second), seconds=1.5)

    assert answer["Location"] == f"{QUEUE}{second.pk}/change/"
    assert "Not delivered yet" in said(browser.get(answer["Location"]))
    second.refresh_from_db()
    assert second.status == "processing"
    deliver_next(browser, second, version_of(second))
    second.refresh_from_db()
    assert second.status == "completed"


def test_one_click_delivers_only_what_the_page_showed(merchant: Merchant) -> None:
    first, _ = bought(merchant), bought(merchant)
    _, browser = operator_browser()
    press(browser, first, Move.CLAIM)
    old = version_of(first)
    press(browser, first, Move.REVIEW, confirmed="1", note="Is it there?")

    answer = deliver_next(browser, first, old)

    assert answer["Location"] == f"{QUEUE}{first.pk}/change/"
    statuses = Fulfilment.objects.order_by("pk").values_list("status", flat=True)
    assert list(statuses) == ["pending_review", "pending"]


def test_a_rejection_leads_to_the_next_order(merchant: Merchant) -> None:
    first, second = bought(merchant), bought(merchant)
    user, browser = operator_browser()
    press(browser, first, Move.CLAIM)
    asked = press(browser, first, Move.REJECT).content.decode()
    assert "Reject and refund, claim next" in asked

    answer = press(browser, first, Move.REJECT, confirmed="1", reason="wrong_id", claim_next="1")

    assert answer.redirect_chain[-1][0] == f"{QUEUE}{second.pk}/change/"
    assert Fulfilment.objects.get(claimed_by=user) == second
    again = press(browser, first, Move.REJECT, confirmed="1", reason="wrong_id", claim_next="1")
    assert again.redirect_chain[-1][0] == f"{QUEUE}{first.pk}/change/"


def test_orders_of_others_are_not_offered_in_one_click(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    _, annas = operator_browser()
    press(annas, fulfilment, Move.CLAIM)
    _, seniors = operator_browser(senior=True)

    page = seniors.get(f"{QUEUE}{fulfilment.pk}/change/").content.decode()

    assert "Mark delivered" in page
    assert "Delivered, claim next" not in page


def test_a_search_finds_ended_orders(merchant: Merchant) -> None:
    ended, waiting = bought(merchant), bought(merchant)
    _, browser = operator_browser()
    press(browser, ended, Move.CLAIM)
    press(browser, ended, Move.COMPLETE, confirmed="1")

    def listed(**query: str) -> list[int]:
        return [each.pk for each in browser.get(QUEUE, query).context["cl"].result_list]

    assert listed() == [waiting.pk]
    assert listed(q=ended.order_reference) == [ended.pk]
    assert listed(q=ended.player_id) == [ended.pk, waiting.pk]
    assert listed(q=ended.player_id, work="open") == [waiting.pk]
    assert listed(q=waiting.order_reference[:6]) == [waiting.pk]


def test_an_empty_desk_and_an_empty_search_say_what_they_are(merchant: Merchant) -> None:
    _, browser = operator_browser()

    assert "Nothing is waiting." in browser.get(QUEUE).content.decode()
    searched = browser.get(QUEUE, {"q": "nobody"}).content.decode()
    assert "Nothing found." in searched
    assert "Nothing is waiting." not in searched


def test_a_rejection_needs_a_reason_that_the_operator_chose(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    _, browser = operator_browser()
    press(browser, fulfilment, Move.CLAIM)

    asked = press(browser, fulfilment, Move.REJECT)
    assert '<option value="" selected>Choose a reason</option>' in asked.content.decode()
    assert "reason but “No stock” puts" not in asked.content.decode()  # not counted

    answer = press(browser, fulfilment, Move.REJECT, confirmed="1", reason="")
    assert "This field is required" in answer.content.decode()
    fulfilment.refresh_from_db()
    assert fulfilment.status == "processing"


def test_a_selection_moves_together_and_ending_needs_a_confirmation(merchant: Merchant) -> None:
    rows = [bought(merchant) for _ in range(3)]
    _, browser = operator_browser()
    browser.post(QUEUE, {**select(*rows), "action": "claim_selected"})
    assert {row.status for row in Fulfilment.objects.all()} == {"processing"}

    asked = browser.post(QUEUE, {**select(*rows), "action": "complete_selected"})
    text = asked.content.decode()
    assert all(row.order_reference in text for row in rows)
    assert {row.status for row in Fulfilment.objects.all()} == {"processing"}

    browser.post(QUEUE, {**select(*rows), "action": "complete_selected", "confirmed": "1"})
    assert {row.status for row in Fulfilment.objects.all()} == {"completed"}


def test_a_confirmation_names_orders_that_cannot_move(merchant: Merchant) -> None:
    taken, free = bought(merchant), bought(merchant)
    claim_next(operator=make_operator(username="anna"))
    _, browser = operator_browser()
    selection = {**select(taken, free), "action": "reject_selected"}

    asked = browser.post(QUEUE, selection)
    kept = (
        f"{taken.order_reference}: Nothing was changed: this order is processing, claimed by anna"
    )
    assert kept in said(asked)
    assert kept in asked.content.decode()
    assert [seen.fulfilment for seen in asked.context["selected"]] == [free]

    browser.post(QUEUE, {**selection, "_selected_action": [free.pk], **CONFIRMED})
    assert set(Fulfilment.objects.values_list("pk", "status")) == {
        (taken.pk, "processing"),
        (free.pk, "failed"),
    }


def test_nothing_ends_without_a_confirmation(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    fulfilment = bought(merchant)
    _, browser = operator_browser()

    # The page saw an older state: the order is free again by the time it would be moved.
    def refuse(**_: Any) -> None:
        raise MoveRefused("somebody has it")

    monkeypatch.setattr(desk_moves, "check_move", refuse)

    answer = browser.post(QUEUE, {**select(fulfilment), "action": "reject_selected"}, follow=True)

    fulfilment.refresh_from_db()
    assert fulfilment.status == "pending"
    assert f"{fulfilment.order_reference}: somebody has it" in said(answer)


def test_only_permitted_actions_are_offered(merchant: Merchant) -> None:
    def offered(browser: Client) -> list[str]:
        form = browser.get(QUEUE).context["action_form"]
        return [name for name, _ in form.fields["action"].choices if name] if form else []

    bought(merchant)
    junior = offered(operator_browser()[1])
    assert offered(operator_browser(senior=True)[1]) == [*junior, "reject_unrefunded_selected"]
    assert junior[0] == "claim_selected"
    assert offered(signed_in(make_staff("topups.view_fulfilment"))) == []


def test_an_order_that_cannot_move_does_not_stop_others(merchant: Merchant) -> None:
    taken, free = bought(merchant), bought(merchant)
    claim_next(operator=make_operator())
    _, browser = operator_browser()

    answer = browser.post(
        QUEUE,
        {**select(taken, free), "action": "claim_selected"},
        follow=True,
    )

    assert taken.order_reference in said(answer)
    free.refresh_from_db()
    assert free.status == "processing"


def test_an_impossible_move_asks_for_no_confirmation(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    claim_next(operator=make_operator(username="anna"))
    _, browser = operator_browser()
    address = reverse("admin:topups_fulfilment_move", args=[fulfilment.pk, Move.COMPLETE.value])

    answer = browser.get(address, follow=True)

    kept = "Nothing was changed: this order is processing, claimed by anna"
    assert f"{fulfilment.order_reference}: {kept}" in said(answer)
    assert answer.redirect_chain[-1][0] == f"{QUEUE}{fulfilment.pk}/change/"


def test_the_view_permission_offers_no_buttons(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    browser = signed_in(make_staff("topups.view_fulfilment"))

    assert browser.get(f"{QUEUE}{fulfilment.pk}/change/").context["moves"] == []
    assert press(browser, fulfilment, Move.CLAIM).status_code == 403
    browser.post(QUEUE, {**select(fulfilment), "action": "claim_selected"})
    fulfilment.refresh_from_db()
    assert fulfilment.status == "pending"


def test_the_desk_needs_the_permission(merchant: Merchant) -> None:
    assert signed_in(make_staff("catalogue.view_product")).get(QUEUE).status_code == 403
    assert Client().get(QUEUE).status_code == 302


def test_the_first_page_shows_the_state_of_the_desk(merchant: Merchant) -> None:
    product = make_topup_product(name="Gems 60")
    for move in (None, Move.CLAIM, Move.COMPLETE, Move.REJECT):
        reference = buy_topup(merchant, product)
        if move:
            move_now(reference=reference, move=move, operator=make_operator())

    shown_desk = signed_in().get("/admin/").context["desk"]

    counts = {state["name"]: state["count"] for state in shown_desk["states"]}
    assert counts == {"Pending": 1, "Processing": 1, "Pending review": 0}
    (shown,) = shown_desk["products"]
    assert (shown["name"], shown["count"]) == ("Gems 60", 2)
    assert (sum(shown_desk["hours"]["completed"]), sum(shown_desk["hours"]["failed"])) == (1, 1)
    assert len(shown_desk["hours"]["labels"]) == 24
    assert (shown_desk["refunds_due"], shown_desk["refunds_overdue"]) == (1, 0)


def test_the_strip_counts_orders_newer_than_the_page(merchant: Merchant) -> None:
    bought(merchant)
    user, browser = operator_browser()
    page = browser.get(QUEUE)
    assert page.context["queue"]["new"] == 0
    strip = reverse("admin:topups_fulfilment_strip")

    bought(merchant)
    after = {"after": page.context["after"]}
    assert "Show 1 new order" in browser.get(strip, after).content.decode()
    claim_next(operator=make_operator())
    claim_next(operator=Operator(user=user, channel=Channel.ADMIN))

    answer = browser.get(strip, after)
    states = [(state["work"], state["count"]) for state in answer.context["queue"]["states"]]
    assert states == [("pending", 0), ("processing", 2), ("pending_review", 0)]
    assert (answer.context["queue"]["mine"], answer.context["queue"]["new"]) == (1, 0)


@pytest.mark.parametrize("after", ["", "x", "-1", "9" * 18, "9" * 6000, "\u0661"])
def test_the_strip_answers_any_query(after: str) -> None:
    address = reverse("admin:topups_fulfilment_strip")
    assert operator_browser()[1].get(address, {"after": after}).status_code == 200


@pytest.mark.parametrize("name", ["dashboard", "glance", "strip"])
def test_the_numbers_need_the_desks_permission(name: str) -> None:
    address = reverse(f"admin:topups_fulfilment_{name}")

    assert operator_browser()[1].get(address).status_code == 200
    assert signed_in(make_staff("topups.view_fulfilment")).get(address).status_code == 200
    assert signed_in(make_staff("catalogue.view_product")).get(address).status_code == 403
    assert Client().get(address).status_code == 302


def test_migrate_makes_the_roles_and_keeps_added_permissions() -> None:
    extra = make_staff("orders.view_order").user_permissions.get()
    operator = Group.objects.get(name=StaffRole.OPERATOR.value)
    operator.permissions.clear()
    operator.permissions.add(extra)

    call_command(Migrate(), verbosity=0)  # ours closes the connection, which ends the test's data

    assert {role.value for role in StaffRole} <= set(Group.objects.values_list("name", flat=True))
    for role in StaffRole:
        found = {
            f"{permission.content_type.app_label}.{permission.codename}"
            for permission in Group.objects.get(name=role.value).permissions.all()
        }
        assert set(permissions_of(role)) <= found
    assert extra in operator.permissions.all()


def test_the_page_of_a_claim_says_when_it_goes_to_review(merchant: Merchant, settings: Any) -> None:
    settings.DESK_CLAIM_MINUTES = 45
    operator = make_operator()
    move_now(reference=buy_topup(merchant), move=Move.CLAIM, operator=operator)
    order = Fulfilment.objects.get()
    assert order.claimed_at is not None
    end = order.claimed_at + timedelta(minutes=45)
    until = f"{end.astimezone(ZoneInfo('Asia/Kolkata')):%H:%M} Asia/Kolkata"
    Preferences.objects.create(user=operator.user, time_zone="Asia/Kolkata")

    page = browser_of(operator.user).get(f"{QUEUE}{order.pk}/change/").content.decode()
    assert f"{operator.user}. If the order is not finished by {until}, it goes to review." in page

    move_now(reference=order.order_reference, move=Move.REVIEW, operator=operator)
    page = browser_of(operator.user).get(f"{QUEUE}{order.pk}/change/").content.decode()
    assert "it goes to review" not in page


def test_an_order_names_the_other_operators_who_look_at_it(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, other_order = bought(merchant), bought(merchant)
    page = f"{QUEUE}{order.pk}/change/"
    (_, annas), (_, bens) = operator_browser(username="anna"), operator_browser(username="ben")
    auditor = browser_of(staff_with(StaffRole.AUDITOR))
    assert "looked at" not in annas.get(page).content.decode()
    for browser in (auditor, bens):  # nobody is told of the auditor, who cannot work on it
        assert ">anna has looked at this order" in browser.get(page).content.decode()
    part = f"{QUEUE}{order.pk}/viewers/"
    assert "ben has looked at this order" in annas.get(part).content.decode()
    assert "anna, ben have looked at this order" in auditor.get(part).content.decode()
    assert "looked at" not in bens.get(f"{QUEUE}{other_order.pk}/change/").content.decode()

    later = time.time() + 60
    monkeypatch.setattr("operators.desk.viewers.time.time", lambda: later)
    assert "looked at" not in bens.get(part).content.decode()
    press(annas, order, Move.CLAIM)
    press(annas, order, Move.COMPLETE, confirmed="1")
    assert "looked at" not in bens.get(part).content.decode()


def test_without_the_cache_an_order_names_nobody(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, browser = operator_browser()
    monkeypatch.setattr(viewers, "cache", None)

    answer = browser.get(f"{QUEUE}{bought(merchant).pk}/change/")

    assert answer.status_code == 200
    assert "looked at" not in answer.content.decode()


def test_the_page_of_a_refunded_order_leads_to_the_refund(merchant: Merchant) -> None:
    fulfilment = bought(merchant)
    operator, page = make_operator(), f"{QUEUE}{fulfilment.pk}/change/"
    browser = signed_in(make_staff("topups.view_fulfilment", "wallets.view_ledgerentry"))
    before = browser.get(page).text
    move_now(reference=fulfilment.order_reference, move=Move.REJECT, operator=operator)
    carry_out_refund(fulfilment.pk)

    after = browser.get(page).text

    link = f'/admin/wallets/ledgerentry/?q={fulfilment.order_reference}" class="text-link">'
    assert "refunded</a>" not in before
    assert re.search(re.escape(link) + r"[\d.]+ USD refunded</a>", after)
