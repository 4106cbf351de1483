"""The goods, merchants and operators of the run. Everything secret carries the run's mark."""

from dataclasses import dataclass
from typing import Any

from catalogue.imports.code_import import add_codes
from catalogue.stock.codes import Code
from operators.telegram.models import PlatformSettings
from tests.factories import (
    Merchant,
    make_account,
    make_client,
    make_operator,
    make_product,
    make_topup_product,
    own_shelf,
)
from topups.fulfilment.fulfilments import Operator
from topups.models import Channel

ACCOUNTS, CLIENTS = 4, 3  # accounts, and clients of each
SHELVES = 12
AVERAGE = 1.375  # codes of a purchase (`merchants.py`)
BALANCE = "100000000.00"
PRICE = "0.37"


@dataclass(frozen=True)
class Shop:
    """`odd` are the bodies of purchases that are refused."""

    mark: str
    clients: list[Merchant]
    poor: Merchant
    vouchers: list[int]
    topups: list[int]
    odd: list[dict[str, Any]]
    operators: list[Operator]

    @property
    def all(self) -> list[Merchant]:
        return [*self.clients, self.poor]


def open_shop(mark: str, *, vouchers: int, topups: int, chat_id: int) -> Shop:
    """Enough codes, stock and money for so many purchases. One top-up in ten is announced."""
    accounts = [make_account(balance=BALANCE) for _ in range(ACCOUNTS)]
    merchants = [
        Merchant(make_client(account, rate_limit_per_minute=10_000_000), http=object())
        for account in accounts
        for _ in range(CLIENTS)
    ]
    poor = Merchant(make_client(make_account(balance="0"), rate_limit_per_minute=10_000_000))
    products = [make_product(price=PRICE) for _ in range(SHELVES)]
    each = int(vouchers * AVERAGE / SHELVES * 1.15) + 400
    for number, product in enumerate(products):
        rows = ((line, _code(mark, number, line)) for line in range(1, each + 1))
        add_codes(shelf=own_shelf(product), rows=rows)
    sold_out, unpriced = make_product(price=PRICE), make_product(price=None)
    packages = [
        *(make_topup_product(price="0.0725") for _ in range(4)),
        *(make_topup_product(price="1.99", available_stock=10 * topups + 100) for _ in range(5)),
        make_topup_product(price="2.50", announce=True),
    ]
    PlatformSettings.objects.create(announcing=True, chat_id=chat_id)
    return Shop(
        mark=mark,
        clients=merchants,
        poor=poor,
        vouchers=[product.pk for product in products],
        topups=[product.pk for product in packages],
        odd=[
            {"product_id": sold_out.pk, "quantity": 1},
            {"product_id": unpriced.pk, "quantity": 1},
            {"product_id": 999_999_999, "quantity": 1},
            {"merchant_reference": "unknown", "quantity": 1},
            {"product_id": products[0].pk, "quantity": 0},
        ],
        operators=[
            make_operator(senior=True, channel=channel)
            for channel in (Channel.ADMIN, Channel.COMMAND)
        ],
    )


def _code(mark: str, shelf: int, line: int) -> Code:
    number = f"{shelf:02d}{line:07d}"
    return Code(f"{mark}-{number}", f"{mark}-SN{number}", f"{mark}-PIN{number}")
