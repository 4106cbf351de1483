"""The message of an order: complete, escaped, within limits, and without the merchant."""

from datetime import timedelta
from decimal import Decimal
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from operators.telegram.messages.buttons import Action, Press, confirmation, decisions, decode
from operators.telegram.messages.message import MAX_LENGTH, Message, next_age_at, render, retired
from tests.factories import (
    buy_topup,
    make_category,
    make_field,
    make_merchant,
    make_operator,
    make_topup_product,
    move_now,
)
from topups.fulfilment.refunds import carry_out_refund, credit_topup
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import last_event
from topups.models import Channel, Fulfilment, RejectReason

pytestmark = pytest.mark.django_db

ANNA = {"username": "anna", "channel": Channel.TELEGRAM}


class Shown(HTMLParser):
    """The text a reader sees, and the parts that one tap copies. Fails on unknown tags."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.codes: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in ("b", "i", "code"), tag
        assert not attrs
        self.open.append(tag)
        if tag == "code":
            self.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "code" in self.open:
            self.codes[-1] += data


def bought(**fields: object) -> Fulfilment:
    reference = buy_topup(make_merchant(), **fields)  # type: ignore[arg-type]
    return Fulfilment.objects.get(order_reference=reference)


def shown(fulfilment: Fulfilment, **options: object) -> Message:
    fulfilment = Fulfilment.objects.get(pk=fulfilment.pk)
    options = {"now": timezone.now(), "zone": ZoneInfo("UTC"), **options}
    return render(fulfilment, **options)  # type: ignore[arg-type]


def labels(message: Message) -> list[list[str]]:
    return [[button.label for button in row] for row in message.rows]


def test_message_shows_what_an_operator_needs() -> None:
    product = make_topup_product(name="Gems 60", category=make_category())
    field = make_field(product, "dropdown", label="Server", options=["eu"])
    field.options.update(label="Europe")
    fulfilment = bought(product=product, player_id="00-12_ab", fields={str(field.number): "eu"})

    message = shown(fulfilment, now=fulfilment.created_at + timedelta(minutes=17))

    seen = Shown(message.text)
    assert product.category is not None
    for part in ("Gems 60", product.category.name, "Server: Europe (eu)", "17 min old", "Waiting"):
        assert part in seen.text
    assert seen.codes == ["00-12_ab", "eu", fulfilment.order_reference]


def test_message_shows_nothing_about_the_merchant() -> None:
    merchant = make_merchant(balance="77.31")
    reference = buy_topup(merchant)
    fulfilment = Fulfilment.objects.get(order_reference=reference)

    text = shown(fulfilment).text

    for secret in (
        merchant.key,
        merchant.key.split("_")[1],
        fulfilment.account.name,
        merchant.client.name,
        "77.31",
        "72.32",
        "4.99",
    ):
        assert secret not in text


@pytest.mark.parametrize("hostile", ["<b>x", "</code>", "&lt;&amp;", '"><a href="x">', "a & b < c"])
def test_markup_in_values_is_escaped(hostile: str) -> None:
    product = make_topup_product(name=f"Gems {hostile}")
    field = make_field(product, label=f"Label {hostile}")
    fulfilment = bought(product=product, fields={str(field.number): hostile})

    seen = Shown(shown(fulfilment).text)

    assert f"Gems {hostile}" in seen.text
    assert f"Label {hostile}: {hostile}" in seen.text
    assert hostile in seen.codes


@pytest.mark.parametrize("letter", ["x", "<", "🙂", "\u202e"])
def test_largest_order_fits_and_says_what_is_left_out(letter: str) -> None:
    product = make_topup_product(name=letter * 200)
    fields = [make_field(product, label=letter * 200) for _ in range(20)]
    values = {str(field.number): "x" + letter * 254 for field in fields}
    fulfilment = bought(product=product, player_id="p" * 64, fields=values)
    staff = make_operator(username="u" * 150)
    move_now(reference=fulfilment.order_reference, move=Move.CLAIM, operator=staff)

    text = shown(fulfilment, doubtful=True, repeats=3).text

    assert len(text.encode("utf-16-le")) // 2 <= MAX_LENGTH
    seen = Shown(text)
    assert "more. See the desk" in seen.text
    assert "p" * 64 in seen.codes
    assert fulfilment.order_reference in seen.codes
    assert "Claimed by" in seen.text


def test_value_with_line_breaks_stays_on_one_line() -> None:
    product = make_topup_product()
    field = make_field(product, label="Note")
    fulfilment = bought(product=product, fields={str(field.number): "a\nOrder: b\r\n\tc"})

    assert "Note: a Order: b c\n" in Shown(shown(fulfilment).text).text


def test_buttons_follow_the_state() -> None:
    fulfilment = bought()
    senior = make_operator(senior=True)

    seen = [labels(shown(fulfilment))]
    for move in (Move.CLAIM, Move.REVIEW, Move.COMPLETE):
        move_now(reference=fulfilment.order_reference, move=move, operator=senior)
        seen.append(labels(shown(fulfilment)))

    assert seen == [
        [["Claim"]],
        [
            ["Delivered"],
            ["Wrong ID: reject, refund"],
            ["No stock: reject, refund"],
            ["Reject, refund", "Not sure: review"],
            ["Release"],
        ],
        [["Delivered"], ["Senior: decide…"]],
        [],
    ]


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ([Move.CLAIM], "Claimed by anna, "),
        ([Move.CLAIM, Move.RELEASE], "Waiting: released by anna, "),
        ([Move.CLAIM, Move.REVIEW], "In review: sent by anna, "),
        ([Move.COMPLETE], "Delivered by anna, "),
        ([Move.REJECT], "Rejected (wrong player ID, refund due) by anna, "),
        (
            [Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED],
            "Failed (wrong player ID, not refunded) by anna, ",
        ),
    ],
)
def test_message_says_who_moved_the_order_and_when(moves: list[Move], words: str) -> None:
    fulfilment = bought()
    anna = make_operator(senior=True, username="anna", channel=Channel.TELEGRAM)
    for move in moves:
        move_now(
            reference=fulfilment.order_reference,
            move=move,
            operator=anna,
            reason=RejectReason.WRONG_ID,
        )
    event = last_event(fulfilment)

    text = Shown(shown(fulfilment, zone=ZoneInfo("Asia/Kolkata")).text).text

    at = event.created_at.astimezone(ZoneInfo("Asia/Kolkata"))
    assert f"{words}{at:%d %b %H:%M}" in text.splitlines()[0]


def test_open_orders_show_doubt_and_repetition() -> None:
    fulfilment = bought()
    doubt, again = "in the chat twice", "Announced again"

    waiting = shown(fulfilment, doubtful=True, repeats=1).text
    plain = shown(fulfilment).text
    move_now(reference=fulfilment.order_reference, move=Move.COMPLETE, operator=make_operator())
    ended = shown(fulfilment, doubtful=True, repeats=1).text

    assert [doubt in waiting, again in waiting] == [True, True]
    assert [doubt in plain, again in plain, doubt in ended, again in ended] == [False] * 4


def test_version_is_the_last_event_shown() -> None:
    fulfilment = bought()
    before = shown(fulfilment)
    move_now(reference=fulfilment.order_reference, move=Move.CLAIM, operator=make_operator())
    after = shown(fulfilment)

    assert before.version < after.version == last_event(fulfilment).pk
    assert {decode(button.data).version for row in after.rows for button in row} == {after.version}


def test_question_keeps_the_act_and_version() -> None:
    fulfilment = bought()
    press = Press(Action.DONE, fulfilment.pk, last_event(fulfilment).pk)

    text, ((yes,), (back,)) = confirmation(press, fulfilment, "anna")

    assert text == "Mark as delivered?"
    assert [yes.label, back.label] == ["anna: mark as delivered?", "Go back"]
    assert (decode(yes.data).action, decode(yes.data).sure) == (Action.DONE, True)
    assert (decode(back.data).action, decode(back.data).sure) == (Action.BACK, False)
    assert decode(yes.data).version == decode(back.data).version == press.version


def test_question_names_what_is_left_to_pay_back() -> None:
    fulfilment = bought()
    press = Press(Action.FAILED, fulfilment.pk, last_event(fulfilment).pk)

    labels = [confirmation(press, fulfilment, "anna")[1][0][0].label]
    for number, part in enumerate(("1.00", "3.99")):
        credit_topup(
            fulfilment_id=fulfilment.pk,
            amount=Decimal(part),
            actor="dora",
            channel=Channel.ADMIN,
            note="late",
            booking_reference=f"part {number}",
        )
        labels.append(confirmation(press, fulfilment, "anna" * 40)[1][0][0].label)

    assert labels == [
        "anna: reject and refund 4.99 USD?",
        "annaannaannaannaann…: reject and refund 3.99 USD?",
        "annaannaannaannaann…: reject, with nothing left to refund?",
    ]


def test_choices_of_a_senior_move_nothing_by_themselves() -> None:
    fulfilment = bought()
    press = Press(Action.DECIDE, fulfilment.pk, last_event(fulfilment).pk)

    presses = [decode(button.data) for row in decisions(press) for button in row]

    expected = ["WRONG_ID", "NO_STOCK", "FAILED", "UNREFUNDED", "BACK"]
    assert [each.action.name for each in presses] == expected
    assert {(each.version, each.sure) for each in presses} == {(press.version, False)}


@pytest.mark.parametrize("credited", [False, True])
def test_message_of_a_failed_order_says_whether_it_was_paid_back(credited: bool) -> None:
    fulfilment = bought()
    anna = make_operator(senior=True, username="anna", channel=Channel.TELEGRAM)
    moves = [Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED] if credited else [Move.REJECT]
    for move in moves:
        move_now(reference=fulfilment.order_reference, move=move, operator=anna)
    before = shown(fulfilment).text.splitlines()[0]

    if credited:
        credit_topup(
            fulfilment_id=fulfilment.pk,
            amount=Decimal("4.99"),
            actor="dora",
            channel=Channel.ADMIN,
            note="late",
            booking_reference="all",
        )
    else:
        carry_out_refund(fulfilment.pk)

    assert ("not refunded" if credited else "refund due") in before
    assert "refund credited" in shown(fulfilment).text.splitlines()[0]


def test_age_is_left_out_while_an_order_is_fresh() -> None:
    fulfilment = bought()

    def text(minutes: int) -> str:
        return shown(fulfilment, now=fulfilment.created_at + timedelta(minutes=minutes)).text

    assert "old at" not in text(0) + text(9)
    assert "10 min old at" in text(10)


@pytest.mark.parametrize(
    ("age", "next_age"),
    [
        ("0", "10"),
        ("9:59", "10"),
        ("10", "20"),
        ("20", "30"),
        ("30", "60"),
        ("60", "120"),
        ("150", "180"),
        ("2879", "2880"),
        ("2880", "4320"),
    ],
)
def test_age_is_edited_less_often_the_older_an_order_is(age: str, next_age: str) -> None:
    fulfilment = bought()
    minutes, _, seconds = age.partition(":")
    old = timedelta(minutes=int(minutes), seconds=int(seconds or 0))

    due = next_age_at(fulfilment, fulfilment.created_at + old)

    assert due == fulfilment.created_at + timedelta(minutes=int(next_age))


def test_retired_message_has_no_buttons() -> None:
    fulfilment = bought()

    message = retired(fulfilment)

    assert message.rows == []
    assert fulfilment.order_reference in Shown(message.text).codes
