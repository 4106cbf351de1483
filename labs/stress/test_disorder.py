"""Many orders are worked on in the chat while presses are lost, duplicated and reordered."""

import os
import random
import re
import time
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

import pytest

from operators.telegram.models import Announcement
from tests.commands import run
from tests.factories import buy_topup, make_merchant, make_topup_product
from tests.neighbour import ours
from tests.tasks.running import wait_until
from tests.telegram.fake_bot_api.faults import Disorder
from tests.telegram.fake_bot_api.objects import Message, Person, Press
from tests.telegram.running import Desk
from topups.models import Fulfilment, FulfilmentEvent
from wallets.models import EntryKind, LedgerEntry, Wallet

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

ORDERS = int(os.environ.get("STRESS_TELEGRAM_ORDERS", "40"))
PRICE = Decimal("4.99")
AT_ONCE = 20  # orders in work at the same time
PATIENCE = 4.0  # seconds after which a person presses again
LIMIT = 900.0
NAMES = ("anna", "berta", "carla")
WRONG_ID, NO_STOCK = "Wrong ID: reject, refund", "No stock: reject, refund"
ENDS = {"Delivered": 6, WRONG_ID: 2, NO_STOCK: 1, "Reject, refund": 1}
REASONS = {WRONG_ID: "wrong_id", NO_STOCK: "no_stock", "Reject, refund": "fulfilment_failed"}
QUESTIONS = {
    "Delivered": ": mark as delivered?",
    WRONG_ID: ": wrong ID: reject and refund 4.99 USD?",
    NO_STOCK: ": no stock: reject and refund 4.99 USD?",
    "Reject, refund": ": reject and refund 4.99 USD?",
}


@dataclass
class Work:
    """One order and its operator, who wants it to end with the act `end`."""

    person: Person
    message: Message
    end: str
    press: Press | None = None
    pressed: str = ""

    def step(self, desk: Desk) -> bool:
        """Presses the next button; returns whether the order has ended."""
        labels = self.message.buttons
        if not labels:
            return True
        asked = {f"{name}{QUESTIONS[self.end]}" for name in NAMES}
        confirm = next((one for one in labels if one in asked), "")
        wanted = next(one for one in (confirm, "Go back", self.end, "Claim") if one in labels)
        if self.press is not None:
            just_now = time.monotonic() - self.press.at < PATIENCE
            if just_now and (self.press.answer is None or wanted == self.pressed):
                return False
        self.press, self.pressed = desk.api.press(self.person, self.message, wanted), wanted
        return False


def test_each_order_ends_once_despite_disorder(desk: Desk) -> None:
    dice = random.Random(7)
    desk.telegram.crew.beat("sweep-announcements")  # finds orders whose task was lost
    people = [desk.staff(name)[0] for name in NAMES]
    product = make_topup_product(announce=True, price=str(PRICE), available_stock=ORDERS)
    merchant = make_merchant(balance=str(PRICE * ORDERS), rate_limit_per_minute=1_000_000)
    begun = time.monotonic()
    references = [buy_topup(merchant, product) for _ in range(ORDERS)]
    bought = time.monotonic()

    desk.api.disorder = Disorder(lost=0.1, duplicated=0.1, reordered=0.1)
    messages: dict[str, Message] = {}
    waiting, working = list(reversed(references)), list[Work]()
    while waiting or working:
        assert time.monotonic() - begun < LIMIT, _stuck(waiting, working)
        for message in desk.api.bot_messages(desk.group)[len(messages) :]:
            messages[_reference(message) or f"reply {message.id}"] = message
        while waiting and waiting[-1] in messages and len(working) < AT_ONCE:
            message = messages[waiting.pop()]
            (end,) = dice.choices(list(ENDS), list(ENDS.values()))
            working.append(Work(dice.choice(people), message, end))
            if dice.random() < 0.1:  # another operator wants a different end
                other = dice.choice([one for one in people if one is not working[-1].person])
                working.append(Work(other, message, dice.choice(list(ENDS))))
        working = [work for work in working if not work.step(desk)]
        desk.api.pause(0.02)
    desk.api.settle()
    ended = time.monotonic()
    print(f"bought in {bought - begun:.0f} s, ended in {ended - begun:.0f} s")  # noqa: T201
    assert all(desk.api.disorder.seen.values()), desk.api.disorder.seen
    print(desk.api.disorder.seen, Counter(call.method for call in desk.api.calls))  # noqa: T201

    orders = list(ours(Fulfilment).all())
    assert sorted(one.order_reference for one in orders) == sorted(references)
    assert {one.status for one in orders} == {"completed", "failed"}
    final = FulfilmentEvent.objects.filter(to_status__in=["completed", "failed"])
    last_moves = Counter(final.exclude(move="refund").values_list("fulfilment_id", flat=True))
    assert set(last_moves.values()) == {1}
    assert len(last_moves) == ORDERS
    failed = [one for one in orders if one.status == "failed"]
    wait_until(
        lambda: ours(LedgerEntry).filter(kind=EntryKind.REFUND).count() == len(failed),
        "the refunds",
    )
    account = merchant.client.account
    assert Wallet.objects.get(account=account).balance == PRICE * len(failed)
    refunded = ours(LedgerEntry).filter(kind=EntryKind.REFUND)
    assert len(set(refunded.values_list("order_reference", flat=True))) == len(failed)
    for one in orders:
        assert _ending(one) in messages[one.order_reference].text
    announced = [one for one in desk.api.bot_messages(desk.group) if _reference(one)]
    assert len(announced) == ORDERS
    run("reconcile")


def _ending(fulfilment: Fulfilment) -> str:
    """The words of the message for the end of the order."""
    if fulfilment.status != "failed":
        return "Delivered"
    label = next(key for key, reason in REASONS.items() if reason == fulfilment.failure_reason)
    words = {WRONG_ID: "wrong player ID, ", NO_STOCK: "no stock, "}
    return f"Rejected ({words.get(label, '')}refund "


def _stuck(waiting: list[str], working: list[Work]) -> str:
    """The state to look at if the work does not finish."""
    rows = Announcement.objects.filter(fulfilment__order_reference__in=waiting[-3:])
    lines = [f"{len(waiting)} have not started, {len(working)} are open:"]
    lines += [f"{row.state} {row.attempts} {row.lost_answers} {row.last_error}" for row in rows]
    for work in working[:5]:
        answer = work.press.answer if work.press else None
        lines.append(f"{work.message.text!r} {work.message.buttons} {work.pressed} {answer}")
    return "\n".join(lines)


def _reference(message: Message) -> str:
    found = re.search(r"^Order (\w{26})$", message.text, re.M)
    return found[1] if found else ""
