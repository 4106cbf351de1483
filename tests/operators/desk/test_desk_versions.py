"""A move at the desk happens only to the version of the order that the operator saw."""

from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.messages import constants
from django.test import Client
from django.urls import reverse

from tests.factories import Merchant, buy_topup, make_operator, move_now
from tests.operators.back_office import signed_in
from topups.fulfilment.fulfilments import Operator
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

QUEUE = "/admin/topups/fulfilment/"
REJECTED = {"confirmed": "1", "reason": "wrong_id", "note": ""}


class Page(HTMLParser):
    """The links of a page, and the hidden inputs of each of its forms by the form's address."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: dict[str, dict[str, str]] = {}
        self.form: dict[str, str] = {}
        self.feed(answer.content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "form":
            self.form = self.forms.setdefault(given.get("action", ""), {})
        elif tag == "input" and given.get("type") == "hidden":
            self.form[given["name"]] = given["value"]


@pytest.fixture
def senior() -> Operator:
    return make_operator(senior=True, username="sofia")


@pytest.fixture
def browser(senior: Operator) -> Client:
    return signed_in(senior.user)


def bought(merchant: Merchant) -> Fulfilment:
    return Fulfilment.objects.get(order_reference=buy_topup(merchant))


def move_by_anna(fulfilment: Fulfilment, *moves: Move) -> None:
    """What a colleague does in the meantime."""
    anna = make_operator(username="anna")
    for move in moves:
        move_now(reference=fulfilment.order_reference, move=move, operator=anna)


def address(fulfilment: Fulfilment, move: Move) -> str:
    return reverse("admin:topups_fulfilment_move", args=[fulfilment.pk, move.value])


def order_page(browser: Client, fulfilment: Fulfilment) -> Page:
    return Page(browser.get(f"{QUEUE}{fulfilment.pk}/change/"))


def question(browser: Client, fulfilment: Fulfilment, move: Move) -> dict[str, str]:
    """Follows the link of the order's page to the confirmation; returns its hidden inputs."""
    links = order_page(browser, fulfilment).links
    (link,) = [link for link in links if link.startswith(address(fulfilment, move))]
    return Page(browser.get(link)).forms[""]


def told(answer: Any) -> list[tuple[int, str]]:
    return [(message.level, str(message)) for message in answer.context["messages"]]


def test_a_confirmation_of_an_older_state_moves_nothing(
    merchant: Merchant, browser: Client
) -> None:
    fulfilment = bought(merchant)
    form = question(browser, fulfilment, Move.REJECT)
    move_by_anna(fulfilment, Move.CLAIM, Move.REVIEW)

    answer = browser.post(address(fulfilment, Move.REJECT), {**form, **REJECTED}, follow=True)

    fulfilment.refresh_from_db()
    assert (fulfilment.status, fulfilment.refund_due_at) == ("pending_review", None)
    ((level, text),) = told(answer)
    assert level == constants.ERROR
    assert "has moved since you saw it (claim by anna, review by anna)" in text
    assert "It is now pending review. Look at it again, then decide." in text
    assert order_page(browser, fulfilment).links  # which is the page that the message is on


def test_a_confirmation_of_the_present_state_moves(merchant: Merchant, browser: Client) -> None:
    fulfilment = bought(merchant)
    move_by_anna(fulfilment, Move.CLAIM, Move.REVIEW)
    form = question(browser, fulfilment, Move.REJECT)

    browser.post(address(fulfilment, Move.REJECT), {**form, **REJECTED})

    fulfilment.refresh_from_db()
    assert fulfilment.status == "failed"


def test_a_button_of_an_older_state_moves_nothing(merchant: Merchant, browser: Client) -> None:
    fulfilment = bought(merchant)
    move_by_anna(fulfilment, Move.CLAIM)
    release = address(fulfilment, Move.RELEASE)
    form = order_page(browser, fulfilment).forms[release]
    ben = make_operator(username="ben")
    anna = Operator(user=fulfilment_holder(fulfilment), channel=ben.channel)
    move_now(reference=fulfilment.order_reference, move=Move.RELEASE, operator=anna)
    move_now(reference=fulfilment.order_reference, move=Move.CLAIM, operator=ben)

    answer = browser.post(release, form, follow=True)

    assert fulfilment_holder(fulfilment) == ben.user
    assert "It is now processing, claimed by ben" in told(answer)[0][1]


def fulfilment_holder(fulfilment: Fulfilment) -> Any:
    return Fulfilment.objects.get(pk=fulfilment.pk).claimed_by


def test_a_link_of_an_older_state_asks_nothing(merchant: Merchant, browser: Client) -> None:
    fulfilment = bought(merchant)
    links = order_page(browser, fulfilment).links
    (link,) = [link for link in links if "move/complete/" in link]
    move_by_anna(fulfilment, Move.CLAIM)

    answer = browser.get(link, follow=True)

    assert answer.redirect_chain[-1][0] == f"{QUEUE}{fulfilment.pk}/change/"
    assert "(claim by anna)" in told(answer)[0][1]


def test_a_confirmation_shows_the_state_that_it_is_about(
    merchant: Merchant, browser: Client
) -> None:
    fulfilment = bought(merchant)
    move_by_anna(fulfilment, Move.CLAIM)

    asked = browser.get(address(fulfilment, Move.COMPLETE))

    assert "processing, claimed by anna" in asked.content.decode()


def test_a_selection_of_older_states_is_not_asked_about(
    merchant: Merchant, browser: Client
) -> None:
    moved, kept = bought(merchant), bought(merchant)
    queue = Page(browser.get(QUEUE))
    hidden = {name: value for form in queue.forms.values() for name, value in form.items()}
    move_by_anna(moved, Move.CLAIM, Move.REVIEW)
    selected = {**hidden, "_selected_action": [moved.pk, kept.pk]}

    asked = browser.post(QUEUE, {**selected, "action": "reject_selected"})
    form = Page(asked).forms[""]
    browser.post(QUEUE, {**form, **REJECTED})

    ((_, text),) = told(asked)
    assert text.startswith(f"{moved.order_reference}: Nothing was changed: the order has moved")
    states = dict(Fulfilment.objects.values_list("pk", "status"))
    assert states == {moved.pk: "pending_review", kept.pk: "failed"}


def test_a_confirmed_selection_moves_only_the_versions_it_showed(
    merchant: Merchant, browser: Client
) -> None:
    moved, kept = bought(merchant), bought(merchant)
    queue = Page(browser.get(QUEUE))
    hidden = {name: value for form in queue.forms.values() for name, value in form.items()}
    selected = {**hidden, "_selected_action": [moved.pk, kept.pk]}
    form = Page(browser.post(QUEUE, {**selected, "action": "complete_selected"})).forms[""]
    move_by_anna(moved, Move.CLAIM)

    both = {**form, "_selected_action": [moved.pk, kept.pk], "confirmed": "1"}
    answer = browser.post(QUEUE, both, follow=True)

    states = dict(Fulfilment.objects.values_list("pk", "status"))
    assert states == {moved.pk: "processing", kept.pk: "completed"}
    assert [level for level, _ in told(answer)] == [constants.ERROR, constants.SUCCESS]


def test_a_selection_is_claimed_in_the_versions_that_the_queue_showed(
    merchant: Merchant, browser: Client, senior: Operator
) -> None:
    moved, kept = bought(merchant), bought(merchant)
    queue = Page(browser.get(QUEUE))
    hidden = {name: value for form in queue.forms.values() for name, value in form.items()}
    move_by_anna(moved, Move.CLAIM, Move.RELEASE)

    selected = {**hidden, "_selected_action": [moved.pk, kept.pk], "action": "claim_selected"}
    browser.post(QUEUE, selected)

    assert (fulfilment_holder(moved), fulfilment_holder(kept)) == (None, senior.user)


def test_a_form_without_a_known_version_moves_nothing(merchant: Merchant, browser: Client) -> None:
    fulfilment = bought(merchant)
    of_another_order = str(bought(merchant).events.get().pk)
    for version in (None, "", "x", "-1", "0", of_another_order, "9" * 18, "9" * 30, "\u00b2"):
        one = {} if version is None else {"version": version}
        many = {} if version is None else {f"version-{fulfilment.pk}": version}
        answers = [
            browser.post(address(fulfilment, Move.CLAIM), one, follow=True),
            browser.post(address(fulfilment, Move.REJECT), {**one, **REJECTED}, follow=True),
            browser.post(
                QUEUE,
                {**many, "_selected_action": [fulfilment.pk], "action": "claim_selected"},
                follow=True,
            ),
        ]

        for answer in answers:
            ((level, text),) = told(answer)
            assert level == constants.ERROR, version
            assert "Nothing was changed" in text, version
    fulfilment.refresh_from_db()
    assert fulfilment.status == "pending"


def test_a_double_click_on_delivered_reports_no_error(merchant: Merchant, browser: Client) -> None:
    fulfilment = bought(merchant)
    form = {**question(browser, fulfilment, Move.COMPLETE), "confirmed": "1", "note": "sent"}

    first, second = (
        browser.post(address(fulfilment, Move.COMPLETE), form, follow=True) for _ in range(2)
    )

    assert told(first) == [
        (constants.SUCCESS, "Delivered. The merchant sees the order as completed.")
    ]
    done = f"{fulfilment.order_reference}: You have already done this: the order is completed."
    assert told(second) == [(constants.INFO, done)]
    assert list(fulfilment.events.values_list("move", flat=True)) == ["open", "complete"]


def test_a_selection_that_is_sent_twice_reports_no_error(
    merchant: Merchant, browser: Client
) -> None:
    rows = [bought(merchant), bought(merchant)]
    hidden = {
        name: value
        for form in Page(browser.get(QUEUE)).forms.values()
        for name, value in form.items()
    }
    selected = {**hidden, "_selected_action": [row.pk for row in rows], "action": "claim_selected"}

    browser.post(QUEUE, selected)
    answer = browser.post(QUEUE, selected, follow=True)

    assert {level for level, _ in told(answer)} == {constants.SUCCESS, constants.INFO}


@pytest.mark.parametrize(
    "other",
    [
        {"reason": "no_stock", "note": "first"},
        {"reason": "wrong_id", "note": "second"},
    ],
)
def test_another_decision_on_the_same_version_is_an_error(
    merchant: Merchant, browser: Client, other: dict[str, str]
) -> None:
    fulfilment = bought(merchant)
    form = {**question(browser, fulfilment, Move.REJECT), "confirmed": "1"}
    url = address(fulfilment, Move.REJECT)
    browser.post(url, {**form, "reason": "wrong_id", "note": "first"}, follow=True)

    answer = browser.post(url, {**form, **other}, follow=True)

    ((level, text),) = told(answer)
    assert (level, "has moved since you saw it" in text) == (constants.ERROR, True)


def test_the_same_move_of_a_colleague_is_an_error(merchant: Merchant, browser: Client) -> None:
    fulfilment = bought(merchant)
    form = {**question(browser, fulfilment, Move.COMPLETE), "confirmed": "1"}
    move_by_anna(fulfilment, Move.COMPLETE)

    answer = browser.post(address(fulfilment, Move.COMPLETE), form, follow=True)

    ((level, text),) = told(answer)
    assert (level, "complete by anna" in text) == (constants.ERROR, True)
