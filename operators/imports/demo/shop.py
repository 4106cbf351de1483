"""A demo shop for the first start of the service."""

import json
import os
import secrets
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from accounts.api_access.keys import find_client, issue_key
from accounts.models import Account, ApiClient
from accounts.services import create_client
from catalogue.models import Product, Shelf, VoucherCode
from catalogue.stock.batches import BatchDetails
from core.api.paths import API_BASE
from core.command_line import shell_actor
from core.database.functions import database_now
from core.inputs import InputProblem
from figures.stock_counting import count_stock
from merchants.models import Membership, Role
from operators.imports.catalogue_file import import_rows
from operators.imports.demo.clock import movable_clock, restore_clock
from operators.imports.demo.history import DAYS, GOODS, History, Shop, add_stock
from topups.models import TopUpProduct
from wallets.provisioning import create_account

FILE_NAME = "demo.json"
MERCHANT = "Demo merchant"
BALANCE = Decimal("1000.00")
ADMIN = "admin"
OWNER = "owner@demo.example"

# High ids that are unlikely to be in use.
CATALOGUE: dict[str, Any] = {
    "categories": [
        {"id": 9001, "name": "Gift cards"},
        {"id": 9002, "name": "Games"},
    ],
    "products": [
        {
            "id": 9001,
            "name": "Steam Wallet 10 USD",
            "type": "voucher",
            "category": 9001,
            "currency": "USD",
            "price": "9.99",
        },
        {
            "id": 9002,
            "name": "PlayStation Store 20",
            "type": "voucher",
            "category": 9001,
            "currency": "USD",
            "price": "19.49",
            "variations": [
                {"id": 9001, "name": "United States", "price": "19.20"},
                {"id": 9002, "name": "United Kingdom", "price": "24.75"},
            ],
        },
        {
            "id": 9003,
            "name": "Game trial, pack of three",
            "type": "voucher",
            "category": 9002,
            "currency": "USD",
            "price": "2.50",
            "quantity_step": 3,
        },
        {
            "id": 9004,
            "name": "Xbox Gift Card 15 USD",
            "type": "voucher",
            "category": 9001,
            "currency": "USD",
            "price": "14.60",
            "active": False,
        },
    ],
    "topup_products": [
        {
            "id": 9001,
            "name": "Gems 60",
            "category": 9002,
            "currency": "USD",
            "price": "4.99",
            "available_stock": 120,
            "announce": True,
            "fields": [
                {
                    "id": 1,
                    "name": "server",
                    "label": "Server",
                    "type": "dropdown",
                    "required": True,
                    "options": [
                        {"value": "eu", "label": "Europe"},
                        {"value": "us", "label": "America"},
                    ],
                }
            ],
        },
        {
            "id": 9002,
            "name": "Diamonds 100",
            "category": 9002,
            "currency": "USD",
            "price": "1.49",
        },
    ],
}
TRY_PRODUCT = 9001


@dataclass(frozen=True)
class Demo:
    """The credentials of the demo shop, stored in `var/demo.json`. Only its owner can read it."""

    api_key: str = ""
    admin_password: str = ""
    owner_password: str = ""


def load_demo(*, with_history: bool = True) -> Demo:
    """Adds the demo shop, its merchant with an owner, an admin user, and sales of three months.

    A second run adds nothing and returns the same, unless the first one was interrupted: then it
    fills shelves without codes. If the key or the file is lost, it issues a new key; a lost
    password is returned as an empty string. Raises InputProblem if the database has data that are
    not the demo's.
    """
    path = settings.VAR_DIR / FILE_NAME
    demo = _read(path)
    is_new = _is_empty()
    if not is_new and not _is_demo():
        raise InputProblem(
            "The demo was not added: this database has accounts, products or users that are not the"
            " demo's. Use an empty database."
        )
    if not is_new:
        restore_clock()
    now = database_now()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    past = movable_clock(today - timedelta(days=DAYS))
    with past if is_new and with_history else nullcontext() as clock:
        with transaction.atomic():
            merchant = _open_shop() if is_new else Account.objects.get(name=MERCHANT)
            demo = replace(
                demo,
                api_key=_keep_key(merchant, demo.api_key),
                admin_password=_keep_admin(demo.admin_password),
                owner_password=_keep_owner(merchant, demo.owner_password),
            )
            _write(path, demo)
        if clock is not None:
            history = History(_shop_of(merchant, demo), clock)
            history.run(until=now)
    if is_new and clock is not None:
        history.leave_work()
    else:
        _fill_shelves_without_codes()
    count_stock()  # at the true time: the next count of the schedule is an hour away
    return demo


def _fill_shelves_without_codes() -> None:
    """Adds codes to all shelves if there is no history, and to those that an interrupted history
    did not reach."""
    admin = get_user_model().objects.get(username=ADMIN)
    for (product, variation), (number, _supplier, _cost) in GOODS.items():
        shelf = Shelf.objects.filter(product=product, variation=variation).first()
        if shelf and not VoucherCode.objects.filter(shelf=shelf).exists():
            add_stock(shelf, number, details=BatchDetails(), actor=admin)


def welcome(demo: Demo, *, base_url: str) -> str:
    """The text that `load_demo` prints: addresses, passwords, the key and a purchase to paste."""
    base_url = base_url.rstrip("/")
    password = demo.admin_password or f"(not stored; set one: `manage.py changepassword {ADMIN}`)"
    owner_password = demo.owner_password or (
        f"(not stored; set one: `manage.py changepassword {OWNER}`)"
    )
    body = json.dumps({"product_id": TRY_PRODUCT, "quantity": 1})
    return f"""\
API      {base_url}{API_BASE}
Docs     {base_url}/docs/
Admin    {base_url}/admin/   user {ADMIN}, password {password}
         (at the first sign-in you set up a second factor, with an authenticator app)
Merchant {base_url}/merchant/   email {OWNER}, password {owner_password}
API key  {demo.api_key}

For the commands of the README:

export BASE={base_url}{API_BASE}
export KEY={demo.api_key}

Buy a code:

curl -sS {base_url}{API_BASE}/orders \\
  -H 'Authorization: Bearer {demo.api_key}' \\
  -H 'Content-Type: application/json' \\
  -H 'Idempotency-Key: demo-{secrets.token_hex(4)}' \\
  -d '{body}'

Run it again: it prints the same answer, and nothing is debited. A different Idempotency-Key buys
another code."""


def _is_empty() -> bool:
    models = (Account, Product, TopUpProduct, get_user_model())
    return not any(model._default_manager.exists() for model in models)


def _is_demo() -> bool:
    """Whether the database began as a demo: its first account is the demo's merchant, and sells
    what the demo sells."""
    first = Account.objects.order_by("pk").first()
    demo = {row["id"]: row["name"] for row in CATALOGUE["products"]}
    names = dict(Product.objects.filter(pk__in=demo).values_list("pk", "name"))
    return first is not None and first.name == MERCHANT and names.keys() == demo.keys()


def _open_shop() -> Account:
    import_rows(CATALOGUE, actor=shell_actor())
    return create_account(
        name=MERCHANT,
        currency="USD",
        balance=BALANCE,
        with_wallet=True,
        actor=shell_actor(),
    )


def _shop_of(merchant: Account, demo: Demo) -> Shop:
    client = find_client(demo.api_key)
    assert client is not None  # noqa: S101
    users = get_user_model().objects
    return Shop(client, users.get(username=ADMIN), users.get(username=OWNER))


def _keep_key(merchant: Account, key: str) -> str:
    client_of_key = find_client(key)
    if client_of_key is not None and client_of_key.account_id == merchant.pk:
        return key
    client = ApiClient.objects.filter(account=merchant).order_by("pk").first()
    if client is not None:
        return issue_key(client=client, actor=None)
    return create_client(name="Demo shop", account_id=merchant.pk)[1]


def _keep_admin(password: str) -> str:
    users = get_user_model().objects
    user = users.filter(username=ADMIN).first()
    if user is None:
        password = password or secrets.token_urlsafe(12)
        users.create_superuser(username=ADMIN, password=password)
        return password
    return password if user.check_password(password) else ""


def _keep_owner(merchant: Account, password: str) -> str:
    """The password of the demo merchant's owner, made on the first run; empty if it is lost."""
    users = get_user_model().objects
    user = users.filter(username=OWNER).first()
    if user is None:
        password = password or secrets.token_urlsafe(12)
        user = users.create_user(username=OWNER, email=OWNER, password=password)
        Membership.objects.create(user=user, account=merchant, role=Role.OWNER)
        return password
    return password if user.check_password(password) else ""


def _read(path: Path) -> Demo:
    try:
        return Demo(**json.loads(path.read_text()))
    except FileNotFoundError:
        return Demo()
    except (OSError, ValueError, TypeError):
        raise InputProblem(f"Cannot read {path}. Remove it to get a new key.") from None


def _write(path: Path, demo: Demo) -> None:
    """Replaces the file at once, so it is never incomplete and never readable by other users."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(demo), file)
    unfinished.replace(path)
