"""Each question of docs/questions.md is answered in a browser, with as many clicks as it says."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import Error as PlaywrightError

from accounts.models import ApiKey
from audit.actor import on_behalf_of
from catalogue.models import VoucherCode
from figures.sales_counting import count_sales
from operators.catalogue.code_reveal import reveal_codes
from operators.imports.catalogue_file import import_rows
from orders.models import Order
from tests.browsing import PASSWORD, take_session
from tests.factories import (
    Merchant,
    add_codes,
    buy_topup,
    make_account,
    make_client,
    make_operator,
    make_product,
    make_record,
    make_topup_product,
    move_now,
    own_shelf,
)
from tests.live import LiveServer
from tests.merchants.people import make_member
from tests.operators.back_office import make_staff, signed_in
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from wallets.services import deposit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone"),
]

TABLE = Path(__file__).parents[3] / "docs" / "questions.md"
ROW = re.compile(r"\| (staff|merchant) \| (.+?) \| ?(.*?) ?\| (\d+) \|")
MOST_CLICKS = 2
FIRST_PAGES = {"staff": "/admin/", "merchant": "/merchant/"}


@dataclass(frozen=True)
class Question:
    """A row of the table. `how` are its steps, such as `**Desk**` and `type *product*`."""

    who: str
    question: str
    how: list[str]
    clicks: int


def questions() -> list[Question]:
    rows = ROW.findall(TABLE.read_text())
    return [
        Question(who, question, how.split(" → ") if how else [], int(clicks))
        for who, question, how, clicks in rows
    ]


@dataclass(frozen=True)
class World:
    """What to type for the words in italics, and what the page with the answer says."""

    values: dict[str, str]
    answers: dict[str, list[str]]


def make_world(colleague: str) -> World:
    """One merchant with something to ask about. `colleague` is the username of staff."""
    account = make_account(balance="0")
    client = make_client(account)
    merchant = Merchant(client)
    key = ApiKey.objects.get(client=client)
    key.expires_at = datetime(2031, 5, 17, 9, 30, tzinfo=UTC)
    key.save()
    staff = make_staff()
    deposit(
        account=account,
        amount=Decimal("500.00"),
        actor=f"admin:{staff.username}",
        booking_reference="BANK-2026-117",
    )
    card = make_product(name="Card of ten", price="9.99")
    (code,) = add_codes(own_shelf(card), 1)
    sale = merchant.buy(product_id=card.pk, quantity=1).json()["data"]
    user = User.objects.get(username=colleague)
    with on_behalf_of(user):
        row = {"id": card.pk, "name": card.name, "currency": "USD", "price": "11.25"}
        import_rows({"products": [row]}, actor=f"admin:{colleague}", user=user)
    reveal_codes(
        codes=list(VoucherCode.objects.filter(shelf__product=card)),
        order=Order.objects.get(reference=sale["reference"]),
        actor=staff,
        note="a complaint",
    )
    gems = make_topup_product(name="Gems 60", price="4.99")
    waiting = buy_topup(merchant, gems, player_id="player-0042")
    refunded, due = (buy_topup(merchant, gems, player_id=f"wrong-{n}") for n in range(2))
    operator = make_operator()
    for reference in (refunded, due):
        rejected = move_now(reference=reference, move=Move.REJECT, operator=operator)
        if reference == refunded:
            carry_out_refund(rejected.pk)
    make_record(client, idempotency_key="shop-4711")
    member = make_member(account)
    count_sales()
    return World(
        values={
            "idempotency key": "shop-4711",
            "player ID": "player-0042",
            "order reference": refunded,
            "product": "Card of ten",
            "account": account.name,
            "key prefix": key.prefix,
            "bank reference": "BANK-2026-117",
            "voucher code": code,
            "username": colleague,
            "client": client.name,
            "member": member.user.email,
        },
        answers={
            "Why did this purchase fail?": ["409 order_refused insufficient_balance"],
            "Where is this player's order?": [waiting, "Claim", "player-0042"],
            "Was this order refunded?": [refunded, "4.99 USD refunded", "+4.99"],
            "Who changed this price?": ["price: 9.99 → 11.25", colleague],
            "What did we sell today?": ["Today 24.96 USD 4 orders"],
            "What sold best in the last 30 days?": ["By product, 30 days", "Gems 60 3 14.97"],
            "How much money does this merchant have?": [account.name, "480.03 USD"],
            "When does this key expire?": [key.prefix, "2031-05-17"],
            "Who booked this payment?": ["BANK-2026-117", "500.00", staff.username],
            "Who has seen this code, and which order was it sold with?": [
                sale["reference"],
                staff.username,
                "a complaint",
            ],
            "What did this colleague do?": [f"What {colleague} did", "price: 9.99 → 11.25"],
            "Which top-up has waited longest?": [waiting],
            "Which refunds are due?": [due],
            "What is sold out?": ["Card of ten", "on sale without codes"],
            "Why was my purchase refused?": ["insufficient_balance", "Add money to the wallet"],
            "Where is my player's order?": [waiting, "Gems 60", "Pending"],
            "When does my key expire?": [key.prefix, "2031-05-17"],
            "How much money is left?": ["480.03 USD"],
            "What did we spend in the last 30 days?": ["Gems 60", "24.96"],
            "Who can sign in to our account?": [member.user.email],
        },
    )


class Hand:
    """Does the steps of a row on a page, and counts clicks and presses of Enter."""

    def __init__(self, page: Page, values: dict[str, str]) -> None:
        self.page, self.values, self.clicks = page, values, 0

    def do(self, step: str) -> None:
        bold, italic = re.fullmatch(r"\*\*(.+)\*\*", step), re.fullmatch(r"\*(.+)\*", step)
        if step.startswith("type "):
            expect(self.page.locator("input:focus")).to_have_count(1)
            self.page.keyboard.insert_text(self.values[step.removeprefix("type ").strip("*")])
        elif step == "**Enter**":
            self.clicks += 1
            with self.page.expect_navigation():
                self.page.keyboard.press("Enter")
        elif found := bold or italic:
            self.clicks += 1
            self.named(found[1] if bold else self.values[found[1]]).click()
        else:
            raise AssertionError(f"{TABLE.name} has a step that nobody can do: {step}")

    def named(self, name: str) -> Locator:
        """What a person finds under this name: a link, or else a field."""
        links = self.page.get_by_role("link", name=name)
        place = links.or_(self.page.get_by_label(name).and_(self.page.locator("input")))
        return place.filter(visible=True).first


@contextmanager
def page_of(who: str, browser: Browser, live: LiveServer, name: str) -> Iterator[Page]:
    """A page on which somebody of this kind is signed in."""
    page = browser.new_page(base_url=live.base_url, viewport={"width": 1280, "height": 800})
    if who == "staff":
        take_session(page, live, signed_in(User.objects.get(username=name)))
    else:
        page.goto("/merchant/sign-in/")
        page.get_by_label("Email").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/merchant/")
    yield page
    page.close()


def test_every_question_is_answered_with_the_clicks_of_the_table(
    live: LiveServer, chromium: Browser
) -> None:
    anna = make_staff(superuser=True)
    world = make_world(anna.username)
    rows = questions()
    assert len(rows) == 20
    assert [row.question for row in rows] == list(world.answers)

    wrong = []
    for who, name in (("staff", anna.username), ("merchant", world.values["member"])):
        with page_of(who, chromium, live, name) as page:
            for row in (row for row in rows if row.who == who):
                wrong += [f"{row.question} {problem}" for problem in ask(page, row, world)]
    assert wrong == []


def ask(page: Page, row: Question, world: World) -> list[str]:
    """Does the steps of a row from the first page. Returns what is not as the table says."""
    page.goto(FIRST_PAGES[row.who])
    hand = Hand(page, world.values)
    try:
        for step in row.how:
            hand.do(step)
        for part in world.answers[row.question]:
            expect(page.get_by_role("main")).to_contain_text(part, use_inner_text=True)
    except (AssertionError, PlaywrightError) as failed:
        return [str(failed)]
    right = hand.clicks == row.clicks <= MOST_CLICKS
    return [] if right else [f"took {hand.clicks} clicks, not {row.clicks}"]
