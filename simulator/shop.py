"""The simulated shop: free money, and codes that are marked as not real."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.core.checks import CheckMessage, Error
from django.db import connection
from django.utils import timezone

from accounts.models import Account, ApiClient
from accounts.services import create_client
from catalogue.imports.code_import import add_codes
from catalogue.models import Product, Shelf
from catalogue.stock.codes import Code
from merchants.money.book_keys import issue_book_key
from orders.models import Order
from topups.fulfilment.fulfilments import MoveRefused, Operator, Overtaken, move_fulfilment
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import Channel, Fulfilment, FulfilmentStatus, TopUpProduct
from wallets.provisioning import create_account

MARK = "NOT-REAL"
BALANCE = Decimal("1000000.00")
LOCAL = ("127.0.0.1", "localhost", "::1")
# Prices that binary floating point cannot hold.
PRICES = [Decimal(price) for price in ("0.10", "1.15", "4.35", "9.99", "19.49")]
MOVES = {
    "reject": (Move.CLAIM, Move.REJECT),
    "review": (Move.CLAIM, Move.REVIEW),
    "unrefunded": (Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED),
    "wait": (),
}
DELIVER = (Move.CLAIM, Move.COMPLETE)
SLOW_AFTER = timedelta(seconds=10)


@dataclass(frozen=True)
class Shop:
    client: ApiClient
    key: str
    products: list[int]
    topup_products: list[int]


def open_shop(*, products: int = 5, codes: int = 500, rate_limit: int = 600) -> Shop:
    """A new merchant with products of its own."""
    account = create_account(
        name=f"Simulated shop {secrets.token_hex(3)}",
        currency="USD",
        balance=BALANCE,
        with_wallet=True,
        actor="simulator",
    )
    client, key = create_client(name="Simulated", account_id=account.pk, rate_limit=rate_limit)
    made = [_product(number, codes) for number in range(products)]
    topups = [
        TopUpProduct.objects.create(name=f"Gems {number}", currency="USD", price=price)
        for number, price in enumerate(PRICES)
    ]
    return Shop(client, key, made, [topup.pk for topup in topups])


def open_books(shop: Shop) -> str:
    """A key for the books of the shop's account."""
    account = Account.objects.get(clients=shop.client)
    owner = User.objects.create_user(f"simulated-owner-{secrets.token_hex(3)}")
    return issue_book_key(account=account, actor=owner)


def _product(number: int, codes: int) -> int:
    product = Product.objects.create(name=f"Card {number}", currency="USD", type="voucher")
    shelf = Shelf.objects.get(product=product, variation=None)
    Shelf.objects.filter(pk=shelf.pk).update(price=PRICES[number % len(PRICES)])
    rows = (
        (line, Code(f"{MARK}-{product.pk}-{line}-{secrets.token_hex(4).upper()}"))
        for line in range(codes)
    )
    add_codes(shelf=shelf, rows=rows)
    return product.pk


def check_settings(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """simulator.E001 and E002: it never starts with the settings or the data of production."""
    database = settings.DATABASES["default"]
    problems = []
    if database["HOST"] not in LOCAL:
        problems.append("the database is on another host")
    if settings.HTTPS:
        problems.append("HTTPS is on")
    if urlsplit(settings.PUBLIC_URL).hostname not in LOCAL:
        problems.append("PUBLIC_URL names another host")
    if settings.TELEGRAM_BOT_TOKEN:
        problems.append("TELEGRAM_BOT_TOKEN is set")
    if problems:
        text = f"These are settings of production: {', '.join(problems)}."
        return [Error(text, hint="Start it with `make simulate`.", id="simulator.E001")]
    if ApiClient._meta.db_table not in connection.introspection.table_names():
        return []  # an empty database of servers of its own
    strangers = ApiClient.objects.exclude(name="Simulated").exists()
    if strangers or Order.objects.exclude(client__name="Simulated").exists():
        return [Error("The database has clients that are not simulated.", id="simulator.E002")]
    return []


def make_operator() -> Operator:
    """An operator who may decide reviews."""
    name = f"simulated-operator-{secrets.token_hex(3)}"
    user = User.objects.create_user(name, is_staff=True)
    names = ["fulfil", "decide_review"]
    permissions = Permission.objects.filter(content_type__app_label="topups", codename__in=names)
    user.user_permissions.set(permissions)
    return Operator(user=User.objects.get(pk=user.pk), channel=Channel.ADMIN)


def work_on_orders(operator: Operator) -> None:
    """Moves each new order as its player id asks, and carries out refunds."""
    for fulfilment in Fulfilment.objects.filter(status=FulfilmentStatus.PENDING).order_by("pk"):
        word = fulfilment.player_id.partition("-")[0]
        if word == "slow" and timezone.now() - fulfilment.created_at < SLOW_AFTER:
            continue
        for move in MOVES.get(word, DELIVER):
            try:
                move_fulfilment(
                    reference=fulfilment.order_reference,
                    version=version_of(fulfilment),
                    move=move,
                    operator=operator,
                    note="simulated",
                )
            except (MoveRefused, Overtaken):
                break
    sweep_refunds()
