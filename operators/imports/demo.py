"""A demo shop for the first start of the service."""

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from accounts.api_access.keys import find_client, issue_key
from accounts.models import Account, ApiClient
from accounts.services import create_client
from catalogue.imports.code_import import add_codes
from catalogue.models import Product, Shelf
from catalogue.stock.codes import Code
from core.api.paths import API_BASE
from core.command_line import shell_actor
from core.inputs import InputProblem
from merchants.models import Membership, Role
from operators.imports.catalogue_file import import_rows
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
            "available_stock": 50,
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
# Number of codes by product and variation. Product 9002 sells only variations.
STOCK = {(9001, None): 400, (9002, 9001): 200, (9002, 9002): 100, (9003, None): 300}
TRY_PRODUCT = 9001


@dataclass(frozen=True)
class Demo:
    """The credentials of the demo shop, stored in `var/demo.json`. Only its owner can read it."""

    api_key: str = ""
    admin_password: str = ""
    owner_password: str = ""


def load_demo() -> Demo:
    """Adds the demo shop, its merchant with an owner, and an admin user if they are missing.

    A second run adds nothing and returns the same. If the key or the file is lost, it issues a new
    key; a lost password is returned as an empty string. Raises InputProblem if other products use
    the demo's ids.
    """
    path = settings.VAR_DIR / FILE_NAME
    demo = _read(path)
    with transaction.atomic():
        merchant = Account.objects.filter(name=MERCHANT).order_by("pk").first()
        if merchant is None:
            merchant = _open_shop()
        demo = replace(
            demo,
            api_key=_keep_key(merchant, demo.api_key),
            admin_password=_keep_admin(demo.admin_password),
            owner_password=_keep_owner(merchant, demo.owner_password),
        )
        _write(path, demo)
    return demo


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

Buy a code:

curl -sS {base_url}{API_BASE}/orders \\
  -H 'Authorization: Bearer {demo.api_key}' \\
  -H 'Content-Type: application/json' \\
  -H 'Idempotency-Key: demo-{secrets.token_hex(4)}' \\
  -d '{body}'

Run it again: it prints the same answer, and nothing is debited. A different Idempotency-Key buys
another code."""


def _open_shop() -> Account:
    ids = [row["id"] for row in CATALOGUE["products"]]
    if Product.objects.filter(pk__in=ids).exists() or TopUpProduct.objects.filter(pk__in=ids):
        raise InputProblem(
            f"The demo was not added: there is no {MERCHANT!r}, but other products already use the"
            f" demo's ids ({ids[0]} and up). Use an empty database."
        )
    import_rows(CATALOGUE, actor=shell_actor())
    for (product, variation), number in STOCK.items():
        shelf = Shelf.objects.get(product=product, variation=variation)
        add_codes(shelf=shelf, rows=_make_codes(number))
    return create_account(
        name=MERCHANT,
        currency="USD",
        balance=BALANCE,
        with_wallet=True,
        actor=shell_actor(),
    )


def _make_codes(number: int) -> Iterator[tuple[int, Code]]:
    for line in range(1, number + 1):
        text = secrets.token_hex(8).upper()
        parts = [text[start : start + 4] for start in range(0, len(text), 4)]
        yield (
            line,
            Code("-".join(["DEMO", *parts]), f"SN{line:06d}", f"{secrets.randbelow(10000):04d}"),
        )


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
