"""Three months of the demo shop, made by the service itself, so that each page shows something.

Each purchase, delivery, refund, credit, price and import is made by the function that pages and the
API call, at the time to which the demo's clock is set. Sales come from a fixed seed, so two shops
that are loaded on one day are alike, except for their codes and keys.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.companies import save_company
from accounts.models import ApiClient, Logo, OwnCompany
from accounts.services import create_client
from audit.models import AuditAction
from audit.services import record_action
from cases.models import Case
from cases.services import answer_case, credit_case, open_case, replace_code_of_case
from catalogue.imports.code_import import add_codes
from catalogue.models import PriceList, Shelf, VoucherCode
from catalogue.price_lists import Target, Terms, add_price_entry, assign_price_list
from catalogue.prices import set_prices
from catalogue.stock.batches import BatchDetails, FileDigest, add_batch
from catalogue.stock.codes import Code
from core.api.outcome import Outcome
from core.command_line import shell_actor
from figures.margin_counting import count_margins
from figures.models import ExchangeRate
from figures.sales_counting import count_sales
from figures.stock_counting import count_stock
from operators.imports.demo.clock import Clock
from operators.imports.jobs import run_import, upload_file
from operators.imports.models import ImportKind
from orders.models import Order
from orders.purchase import buy
from topups.fulfilment.fulfilments import Operator, move_fulfilment
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import Channel, Fulfilment, RejectReason
from wallets.evidence.closes import close_days
from wallets.evidence.roots import sign_ledger
from wallets.models import BankDetails, Wallet
from wallets.provisioning import create_account
from wallets.services import deposit
from wallets.transfers import announce_transfer

LOGO = Path(__file__).with_name("logo.png")
DAYS = 91
OPENS, OPEN_FOR = timedelta(hours=7), timedelta(hours=15)
SOME_TIME = timedelta(minutes=40)  # for the last delivery
SECOND_MERCHANT = "Corner Games"
PRICE_LIST = "Partner prices"
LOW, PAID_IN = Decimal(700), Decimal(2500)
ALONE = Decimal(8)  # below the limit for one person's credit
SUPPLIERS = {"north": ("Northwind Digital", "USD"), "rhein": ("Rheinkarten GmbH", "EUR")}
# Product and variation: codes for each delivery, supplier, and cost of a code in their currency.
# Nobody wrote down what the packs of three cost.
GOODS: dict[tuple[int, int | None], tuple[int, str, str | None]] = {
    (9001, None): (160, "north", "8.71"),
    (9002, 9001): (70, "north", "16.90"),
    (9002, 9002): (40, "rhein", "19.80"),
    (9003, None): (120, "north", None),
}
STEPS = {9003: 3}
FEW = 45  # codes
# Days since the start.
PRICE_RISE, NEW_RATE, PARTNERSHIP = 40, 30, 33
CREDITED, REPLACED = 60, 74
# Orders of both merchants by weekday, Monday first. More are sold each month.
RHYTHM = (4, 3, 4, 5, 7, 8, 6)


@dataclass
class Shop:
    """The demo shop before its history. `owner` is a member of the merchant, `admin` is staff."""

    merchant: ApiClient
    admin: User
    owner: User


class History:
    """Makes the history, day by day."""

    def __init__(self, shop: Shop, clock: Clock) -> None:
        self.shop, self.clock = shop, clock
        self.start = clock.now
        self.dice = random.Random(9001)  # noqa: S311  sales are no secret
        self.orders, self.day = 0, -1
        self.partner = _second_merchant()
        self.operator = Operator(user=shop.admin, channel=Channel.ADMIN)

    def run(self, until: datetime) -> None:
        """Makes the history up to the present day, as far as it has passed, and signs it."""
        _enter_companies(self.shop)
        for day in range(DAYS + 1):
            begins = self.start + timedelta(days=day)
            times = sorted(self.dice.random() for _ in range(self._sales_of(day)))
            for moment in (begins + OPENS + at * OPEN_FOR for at in times):
                if moment > until - SOME_TIME:
                    break
                self._begin(day)
                self._wait_until(moment)
                self._sell(day)
        while count_sales() or count_margins():
            pass
        sign_ledger()

    def leave_work(self) -> None:
        """Opens the work of today: a case, a transfer, a top-up, an import with a doubt."""
        admin, owner = self.shop.admin, self.shop.owner
        case = self._complain("The shop says that this code is not valid. Can you help?")
        text = "Thank you. We ask the supplier. In which country is the player's account?"
        answer_case(case=case, version=case.version, actor=admin, text=text)
        case.refresh_from_db()
        answer_case(case=case, version=case.version, actor=owner, text="In Germany.")
        announce_transfer(
            account=case.account, amount=Decimal(2000), reference="INV-2026-118", actor=owner
        )
        body = {"system_product_id": 9002, "player_id": "100200300"}
        self._buy(self.partner, {"delivery_type": "top_up", **body}, topup=True)
        _upload_doubtful_file(admin)

    def _begin(self, day: int) -> None:
        """Does what a morning brings: the close of the day before, and the work of staff."""
        if day == self.day:
            return
        self.day = day
        self._wait_until(self.start + timedelta(days=day, hours=5))
        close_days()
        self._restock(day)
        if day == NEW_RATE:
            _add_rate("1.0941", self.clock.now.date())
        if day == PARTNERSHIP:
            _agree_on_prices(self.partner, self.shop.admin)
        if day == PRICE_RISE:
            steam = Shelf.objects.filter(product=9001)
            prices = {one.pk: (one.price, Decimal("10.19")) for one in steam}
            set_prices(rows=steam, prices=prices, actor=self.shop.admin)
        if day in (CREDITED, REPLACED):
            self._settle_a_case(day)
        for client in (self.shop.merchant, self.partner):
            self._pay_in(client, day)
        if day % 7 == 0 or day == DAYS - 1:
            count_stock()

    def _wait_until(self, moment: datetime) -> None:
        """A delivery may have taken longer."""
        self.clock.set(max(self.clock.now, moment))

    def _restock(self, day: int) -> None:
        """Deliveries follow the stock. The last one of packs of three expires soon."""
        for (product, variation), (number, supplier, cost) in GOODS.items():
            shelf = Shelf.objects.get(product=product, variation=variation)
            is_last = product in STEPS and day == DAYS - 10
            if shelf.available_stock < FEW or is_last:
                expires = (self.start + timedelta(days=DAYS + 12)).date() if is_last else None
                details = _details(supplier, cost, expires)
                add_stock(shelf, number, details=details, actor=self.shop.admin)

    def _sales_of(self, day: int) -> int:
        weekday = (self.start + timedelta(days=day)).weekday()
        return RHYTHM[weekday] + day // 30 - self.dice.randrange(3) + 4 * (day >= DAYS - 1)

    def _pay_in(self, client: ApiClient, day: int) -> None:
        wallet = Wallet.objects.select_related("account").get(account=client.account_id)
        if wallet.balance < LOW:
            deposit(
                account=wallet.account,
                amount=PAID_IN,
                actor=f"admin:{self.shop.admin.get_username()}",
                booking_reference=f"bank transfer {4700 + day}-{client.pk}",
                reason="Your bank transfer. Thank you.",
            )

    def _sell(self, day: int) -> None:
        client = self.dice.choices((self.shop.merchant, self.partner), (5, 3))[0]
        if self.dice.random() < (0.12 if day < DAYS - 1 else 0.5):  # for charts of the last hours
            self._top_up(client)
            return
        product, variation = self.dice.choices(list(GOODS), (9, 4, 2, 3))[0]
        number = self.dice.choices((1, 2, 3, 5), (6, 3, 2, 1))[0] * STEPS.get(product, 1)
        body = {"product_id": product, "quantity": number}
        if variation is not None:
            body["variation_id"] = variation
        self._buy(client, body, topup=False)

    def _top_up(self, client: ApiClient) -> None:
        """One in nine cannot be delivered, and is paid back."""
        player = f"{self.dice.randrange(10**8, 10**9)}"
        body = {"system_product_id": 9001, "player_id": player, "fields": {"1": "eu"}}
        if self.dice.random() < 0.4:
            body = {"system_product_id": 9002, "player_id": player}
        reference = self._buy(client, {"delivery_type": "top_up", **body}, topup=True)
        self._move(reference, Move.CLAIM, minutes=self.dice.randrange(1, 9))
        if self.dice.random() < 0.11:
            self._move(reference, Move.REJECT, minutes=4)
            carry_out_refund(Fulfilment.objects.get(order_reference=reference).pk)
        else:
            self._move(reference, Move.COMPLETE, minutes=self.dice.randrange(1, 6))

    def _move(self, reference: str, move: Move, *, minutes: int) -> None:
        self.clock.set(self.clock.now + timedelta(minutes=minutes))
        move_fulfilment(
            reference=reference,
            version=version_of(Fulfilment.objects.get(order_reference=reference)),
            move=move,
            operator=self.operator,
            reason=RejectReason.WRONG_ID,
            message="There is no player with this id." if move == Move.REJECT else "",
        )

    def _buy(self, client: ApiClient, body: dict[str, Any], *, topup: bool) -> str:
        self.orders += 1
        outcome = Outcome()
        buy(
            client=client,
            key=f"demo-{self.orders}",
            parameters=[],
            body=body,
            topup=topup,
            purchase=body,
            outcome=outcome,
        )
        return outcome.order_reference

    def _settle_a_case(self, day: int) -> None:
        case = self._complain("The code was used before. Please check it.")
        self.clock.set(self.clock.now + timedelta(hours=1))
        admin = self.shop.admin
        if day == REPLACED:
            replace_code_of_case(case=case, version=case.version, actor=admin)
        else:
            credit_case(
                case=case,
                version=case.version,
                actor=admin,
                amount=ALONE,
                note="Credited, because the code came late.",
                may_book=True,
            )

    def _complain(self, text: str) -> Case:
        """A case of the merchant about a code of its latest order of Steam codes."""
        sold = Order.objects.filter(client=self.shop.merchant, shelf__product=9001, case_id=None)
        order = sold.latest("pk")
        code = VoucherCode.objects.filter(order_id=order.pk).order_by("pk").first()
        return open_case(order=order, code=code, actor=self.shop.owner, text=text)


def _upload_doubtful_file(admin: User) -> None:
    """Codes of which two have lost the leading zero of their PIN in a spreadsheet."""
    lines = ["code,serial_number,pin_code"]
    for line, code in make_codes(40):
        pin = code.pin_code if line < 39 else code.pin_code[1:]
        lines.append(f"{code.code},{code.serial_number},{pin}")
    row = upload_file(
        kind=ImportKind.CODES,
        content="\n".join(lines).encode(),
        file_name="steam-december.csv",
        shelf=Shelf.objects.get(product=9001, variation=None),
        actor=admin,
        token=uuid4(),
        details=_details("north", "8.64", None),
    )
    run_import(pk=row.pk)


def make_codes(number: int) -> Iterator[tuple[int, Code]]:
    """Codes that nobody honours, each with its line in a file."""
    for line in range(1, number + 1):
        text = secrets.token_hex(8).upper()
        parts = [text[start : start + 4] for start in range(0, len(text), 4)]
        pin = f"{1000 + secrets.randbelow(9000)}"
        yield line, Code("-".join(["DEMO", *parts]), f"SN{line:06d}", pin)


def add_stock(shelf: Shelf, number: int, *, details: BatchDetails, actor: User) -> None:
    """Adds a batch of codes, as an import does."""
    digest = FileDigest()
    digest.begin()
    with transaction.atomic():
        add_codes(shelf=shelf, rows=make_codes(number), expires_on=details.expires_on)
        add_batch(
            shelf=shelf,
            number=number,
            details=details,
            digest=digest,
            imported_by=f"admin:{actor.get_username()}",
        )
        record_action(
            actor=actor,
            action=AuditAction.CODES_IMPORTED,
            on=shelf,
            reference=str(shelf),
            note=f"Codes: {number}",
        )


def _details(supplier: str, cost: str | None, expires: date | None) -> BatchDetails:
    name, currency = SUPPLIERS[supplier]
    return BatchDetails(
        supplier=name,
        unit_cost=None if cost is None else Decimal(cost),
        cost_currency="" if cost is None else currency,
        expires_on=expires,
    )


def _second_merchant() -> ApiClient:
    account = create_account(
        name=SECOND_MERCHANT,
        currency="USD",
        balance=PAID_IN,
        with_wallet=True,
        actor=shell_actor(),
    )
    return create_client(name="Till", account_id=account.pk)[0]


def _enter_companies(shop: Shop) -> None:
    """The data that statements need, and the first rate for the supplier who is paid in euros."""
    OwnCompany.objects.create(
        legal_name="Demo Vouchers Ltd",
        address="1 Example Street\nDublin",
        country="IE",
        tax_number="IE0000000XX",
        contact="Accounts department",
        billing_email="accounts@demo.example",
        footer="This company does not exist.",
        logo=Logo.objects.create(picture=LOGO.read_bytes()),
    )
    BankDetails.objects.create(
        currency="USD", details="Demo Vouchers Ltd\nIBAN IE00 DEMO 0000 0000 0000 00"
    )
    data = {
        "legal_name": "Demo Merchant GmbH",
        "address": "Beispielweg 2\n10115 Berlin",
        "country": "DE",
        "billing_email": shop.owner.email,
    }
    account = shop.merchant.account
    assert account is not None  # noqa: S101
    save_company(account=account, data=data, actor=shop.admin)
    _add_rate("1.0874", (timezone.now() - timedelta(days=1)).date())


def _add_rate(rate: str, day: date) -> None:
    row = ExchangeRate.objects.create(currency="EUR", into="USD", day=day, rate=Decimal(rate))
    record_action(actor=None, action=AuditAction.ADDED, on=row, reference=str(row))


def _agree_on_prices(client: ApiClient, admin: User) -> None:
    """Four percent off everything, and a fixed price of Steam codes."""
    price_list = PriceList.objects.create(name=PRICE_LIST, currency="USD")
    record_action(actor=admin, action=AuditAction.ADDED, on=price_list, reference=PRICE_LIST)
    steam = Target(shelf_id=Shelf.objects.get(product=9001, variation=None).pk)
    for target, terms in (
        (Target(), Terms(percent_off=Decimal(4))),
        (steam, Terms(price=Decimal("9.49"))),
    ):
        add_price_entry(price_list_id=price_list.pk, target=target, terms=terms, actor=admin)
    assert client.account_id is not None  # noqa: S101
    assign_price_list(account_id=client.account_id, price_list_id=price_list.pk, actor=admin)
