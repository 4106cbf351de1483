"""Who may press a button, what it does, and how it is answered."""

import base64

import pytest

from audit.models import AuditAction, AuditEntry
from operators.telegram.messages.buttons import Action, Press, encode
from operators.telegram.models import TelegramLink
from tests.factories import make_operator, move_now
from tests.telegram.fake_bot_api.objects import Message, Person
from tests.telegram.running import Desk
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment, FulfilmentEvent

pytestmark = pytest.mark.django_db(transaction=True)

DECIDE = "Senior: decide…"


def status(fulfilment: Fulfilment) -> str:
    return Fulfilment.objects.values_list("status", flat=True).get(pk=fulfilment.pk)


def moves(fulfilment: Fulfilment) -> list[str]:
    events = FulfilmentEvent.objects.filter(fulfilment=fulfilment)
    return list(events.exclude(from_status=None).values_list("move", flat=True))


def test_order_moves_through_every_state(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    senior, _ = desk.staff("sofia", senior=True)
    fulfilment, message = desk.order()

    desk.press(anna, message, "Claim")
    desk.press(anna, message, "Release")
    desk.shows(message, "released by anna")
    desk.press(senior, message, "Claim")
    desk.press(senior, message, "Not sure: review")
    desk.shows(message, "In review")
    refused = desk.press(anna, message, DECIDE)
    assert (refused.alert, status(fulfilment)) == (True, "pending_review")
    assert "only a senior" in refused.text
    desk.press(senior, message, DECIDE)
    desk.press(senior, message, "Fail, no refund")
    desk.press(senior, message, "sofia: fail without refund?")

    desk.shows(message, "not refunded")
    fulfilment.refresh_from_db()
    assert (fulfilment.status, fulfilment.failure_reason) == ("failed", "fulfilment_failed")
    assert fulfilment.refund_due_at is None
    assert moves(fulfilment) == ["claim", "release", "claim", "review", "reject_unrefunded"]
    events = FulfilmentEvent.objects.filter(fulfilment=fulfilment).exclude(from_status=None)
    assert set(events.values_list("channel", flat=True)) == {"telegram"}
    entry = AuditEntry.objects.get(object_type="topups.fulfilment")
    assert (entry.action, str(entry.actor)) == ("topup_unrefunded", "sofia")


def test_go_back_restores_the_buttons(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    desk.press(anna, message, "Claim")
    desk.shows(message, "Claimed")
    before = message.buttons

    desk.press(anna, message, "Wrong ID: reject, refund")
    asked = ["anna: wrong ID: reject and refund 4.99 USD?", "Go back"]
    desk.api.wait_for(lambda: message.buttons == asked, "the question")
    desk.press(anna, message, "Go back")

    desk.api.wait_for(lambda: message.buttons == before, "the buttons again")
    assert status(fulfilment) == "processing"


def test_senior_decides_behind_one_button(desk: Desk) -> None:
    (sofia,), fulfilment, message, _ = in_review(desk, "sofia")
    anna, _ = desk.staff("anna")
    assert message.buttons == ["Delivered", DECIDE]

    refused = desk.press(anna, message, DECIDE)
    assert (refused.alert, message.buttons) == (True, ["Delivered", DECIDE])
    desk.press(sofia, message, DECIDE)
    choices = ["Wrong ID: reject, refund", "No stock: reject, refund", "Reject, refund"]
    choices += ["Fail, no refund", "Go back"]
    desk.api.wait_for(lambda: message.buttons == choices, "the choices")
    desk.press(anna, message, "Go back")
    wait_for_edits(desk)
    assert (message.buttons, status(fulfilment)) == (choices, "pending_review")
    desk.press(sofia, message, "Go back")

    desk.api.wait_for(lambda: message.buttons == ["Delivered", DECIDE], "the usual buttons")


def in_review(desk: Desk, *names: str) -> tuple[list[Person], Fulfilment, Message, str]:
    """Senior operators, an order in review, its message, and the button that claimed it."""
    people = [desk.staff(name, senior=True)[0] for name in names]
    fulfilment, message = desk.order()
    claim = message.data("Claim")
    desk.press(people[0], message, "Claim")
    desk.press(people[0], message, "Not sure: review")
    desk.shows(message, "In review")
    return people, fulfilment, message, claim


def wait_for_edits(desk: Desk) -> None:
    """Waits until a new order was announced: edits asked for earlier come before it."""
    desk.order()


def test_a_late_press_leaves_a_colleagues_question_in_place(desk: Desk) -> None:
    (anna, sofia), fulfilment, message, claim = in_review(desk, "anna", "sofia")
    desk.press(sofia, message, DECIDE)
    desk.press(sofia, message, "Wrong ID: reject, refund")
    asked = ["sofia: wrong ID: reject and refund 4.99 USD?", "Go back"]
    desk.api.wait_for(lambda: message.buttons == asked, "the question")

    answer = desk.api.press_data(anna, message, claim).wait()
    wait_for_edits(desk)

    assert "The order is in review, sent by you." in answer.text
    assert message.buttons == asked
    desk.press(sofia, message, asked[0])
    assert status(fulfilment) == "failed"


def test_an_old_go_back_leaves_the_persons_new_question_in_place(desk: Desk) -> None:
    sofia, _ = desk.staff("sofia", senior=True)
    fulfilment, message = desk.order()
    desk.press(sofia, message, "Claim")
    desk.press(sofia, message, "Wrong ID: reject, refund")
    desk.api.wait_for(lambda: "Go back" in message.buttons, "the question")
    old = message.data("Go back")
    desk.press(sofia, message, "Go back")
    desk.api.wait_for(lambda: "Not sure: review" in message.buttons, "the buttons again")
    desk.press(sofia, message, "Not sure: review")
    desk.shows(message, "In review")
    desk.press(sofia, message, DECIDE)
    desk.press(sofia, message, "Wrong ID: reject, refund")
    asked = ["sofia: wrong ID: reject and refund 4.99 USD?", "Go back"]
    desk.api.wait_for(lambda: message.buttons == asked, "the question")

    desk.api.press_data(sofia, message, old).wait()
    wait_for_edits(desk)

    assert (message.buttons, status(fulfilment)) == (asked, "pending_review")


def test_a_colleagues_press_leaves_the_question_in_place(desk: Desk) -> None:
    (anna, sofia), fulfilment, message, _ = in_review(desk, "anna", "sofia")
    before = message.data("Delivered")
    desk.press(sofia, message, DECIDE)
    desk.press(sofia, message, "Wrong ID: reject, refund")
    asked = ["sofia: wrong ID: reject and refund 4.99 USD?", "Go back"]
    desk.api.wait_for(lambda: message.buttons == asked, "the question")

    answer = desk.api.press_data(anna, message, before).wait()
    assert answer.alert
    assert "the message asks sofia to confirm" in answer.text
    desk.press(anna, message, "Go back")
    wait_for_edits(desk)
    assert (message.buttons, status(fulfilment)) == (asked, "pending_review")

    desk.press(sofia, message, "Go back")
    desk.api.wait_for(lambda: "Delivered" in message.buttons, "the buttons again")


def test_one_of_two_operators_wins_and_the_other_learns_who(desk: Desk) -> None:
    people = [desk.staff(name)[0] for name in ("anna", "berta")]
    for _ in range(5):
        fulfilment, message = desk.order()
        presses = [desk.api.press(person, message, "Claim") for person in people]
        answers = [press.wait() for press in presses]

        fulfilment.refresh_from_db()
        assert moves(fulfilment) == ["claim"]
        winner = ["anna", "berta"].index(str(fulfilment.claimed_by))
        assert answers[winner].text == "Claimed. The order is assigned to you."
        assert answers[1 - winner].alert
        assert f"claimed by {fulfilment.claimed_by}" in answers[1 - winner].text


def test_claim_of_another_operator_cannot_be_moved(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    berta, _ = desk.staff("berta")
    fulfilment, message = desk.order()
    desk.press(anna, message, "Claim")

    for label in ("Delivered", "Release", "Not sure: review"):
        answer = desk.press(berta, message, label)
        assert answer.alert
        assert "claimed by anna" in answer.text
    assert status(fulfilment) == "processing"
    assert "Delivered" in message.buttons  # no question was shown


@pytest.mark.parametrize("who", ["stranger", "inactive", "no staff", "no permission", "unlinked"])
def test_press_by_anybody_else_is_refused(desk: Desk, who: str) -> None:
    person, operator = desk.staff("anna")
    fulfilment, message = desk.order()
    if who == "stranger":
        person = desk.api.add_user("Eve")
    elif who == "unlinked":
        TelegramLink.objects.all().delete()
    elif who == "no permission":
        operator.user.user_permissions.clear()
    else:
        setattr(operator.user, "is_active" if who == "inactive" else "is_staff", False)
        operator.user.save()

    for _ in range(20):
        answer = desk.press(person, message, "Claim")
        assert answer.alert
        assert answer.text.startswith("You cannot use this bot")

    assert status(fulfilment) == "pending"
    (entry,) = AuditEntry.objects.filter(action=AuditAction.TELEGRAM_REFUSED)
    assert entry.reference == fulfilment.order_reference
    assert str(person.id) in entry.note
    assert entry.request_id.startswith("telegram-")
    assert len(desk.api.bot_messages(desk.group)) == 1


def test_forged_button_does_nothing(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    other, _ = desk.order()
    good = message.data("Claim")
    raw = bytearray(base64.urlsafe_b64decode(good))
    raw[0] = Action.DONE
    other_act = base64.urlsafe_b64encode(bytes(raw)).decode()
    raw = bytearray(base64.urlsafe_b64decode(good))
    raw[9] = other.pk % 256
    other_order = base64.urlsafe_b64encode(bytes(raw)).decode()
    forged = [
        other_act,
        other_order,
        good[:-2],
        good[4:],
        "",
        "claim",
        "é" * 30,
        "\x00",
    ]

    for data in forged:
        answer = desk.api.press_data(anna, message, data).wait()
        assert "no longer works" in answer.text, data
        assert answer.alert

    assert {status(fulfilment), status(other)} == {"pending"}
    assert AuditEntry.objects.filter(action=AuditAction.TELEGRAM_REFUSED).count() == 1


def test_button_of_an_unknown_order_is_answered(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    _, message = desk.order()

    answer = desk.api.press_data(anna, message, encode(Press(Action.CLAIM, 2**40, 1))).wait()

    assert answer.text == "This order does not exist."


def test_old_button_reports_the_present_state(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    claim = message.data("Claim")
    move_now(
        reference=fulfilment.order_reference,
        move=Move.COMPLETE,
        operator=make_operator(username="dora"),
    )
    desk.shows(message, "Delivered by dora")

    answer = desk.api.press_data(anna, message, claim).wait()

    assert answer.alert
    assert answer.text == "Nothing was changed: the order is delivered by dora."


def test_late_duplicate_does_not_claim_a_released_order_again(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    claim = message.data("Claim")
    desk.press(anna, message, "Claim")
    desk.press(anna, message, "Release")
    desk.shows(message, "released by anna")

    answer = desk.api.press_data(anna, message, claim).wait()

    assert answer.text == "You have already done this. The order is waiting, released by you."
    assert moves(fulfilment) == ["claim", "release"]
