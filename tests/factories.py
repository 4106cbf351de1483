"""Small makers of what a test needs; each returns what it made and hides nothing."""

import itertools
import json
from decimal import Decimal
from typing import Any

from django.db import connection

from accounts.keys import issue_key
from accounts.models import Account, ApiClient
from catalogue.codes import Code, seal_code
from catalogue.models import Category, Product, ReferenceLink, Shelf, Variation
from tests.answers import CheckedClient
from wallets.services import deposit, open_wallet

_numbers = itertools.count(1)


def make_account(*, balance: str = "100.00", currency: str = "USD", wallet: bool = True) -> Account:
    account = Account.objects.create(name=f"Merchant {next(_numbers)}", currency=currency)
    if wallet:
        open_wallet(account=account)
        if Decimal(balance):
            deposit(account=account, amount=Decimal(balance), actor="test")
    return account


def make_client(account: Account | None = None, **fields: Any) -> ApiClient:
    return ApiClient.objects.create(account=account, name=f"Client {next(_numbers)}", **fields)


def make_product(*, price: str | None = "9.99", codes: int = 0, **fields: Any) -> Product:
    """A product, its own shelf priced and stocked. `quantity_step` goes to the shelf."""
    step = fields.pop("quantity_step", 1)
    fields = {"name": f"Product {next(_numbers)}", "currency": "USD", **fields}
    product = Product.objects.create(**fields)
    _fill(own_shelf(product), price=price, step=step, codes=codes)
    return product


def make_variation(
    product: Product, *, price: str | None = "9.49", codes: int = 0, **fields: Any
) -> Variation:
    step = fields.pop("quantity_step", 1)
    fields = {"name": f"Variation {next(_numbers)}", **fields}
    variation = Variation.objects.create(product=product, **fields)
    _fill(Shelf.objects.get(variation=variation), price=price, step=step, codes=codes)
    return variation


def make_category(*, active: bool = True) -> Category:
    return Category.objects.create(name=f"Category {next(_numbers)}", active=active)


def own_shelf(product: Product) -> Shelf:
    return Shelf.objects.get(product=product, variation=None)


def link(account: Account, reference: str, shelf: Shelf) -> ReferenceLink:
    return ReferenceLink.objects.create(account=account, reference=reference, shelf=shelf)


def add_codes(shelf: Shelf, number: int) -> list[str]:
    """Puts codes on a shelf, some with serial and pin; returns them in the order of sale."""
    codes = [f"CODE-{next(_numbers):06d}" for _ in range(number)]
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO catalogue_vouchercode (shelf_id, sealed, digest) VALUES (%s, %s, %s)",
            [
                (shelf.pk, seal_code(Code(code, f"SN-{code}", "1234")), code.encode())
                for code in codes
            ],
        )
        cursor.execute(
            "UPDATE catalogue_shelf SET available_stock = available_stock + %s WHERE id = %s",
            [number, shelf.pk],
        )
    return codes


def _fill(shelf: Shelf, *, price: str | None, step: int, codes: int) -> None:
    Shelf.objects.filter(pk=shelf.pk).update(
        price=None if price is None else Decimal(price), quantity_step=step
    )
    if codes:
        add_codes(shelf, codes)


class Merchant:
    """A merchant's program: calls the API with its key, and knows how to buy."""

    def __init__(self, client: ApiClient, http: Any = None) -> None:
        self.client = client
        self.key = issue_key(client=client)
        self.http = http or CheckedClient()

    def get(self, path: str, **query: Any) -> Any:
        return self.http.get(f"/api/v1{path}", query, headers=self._headers())

    def buy(self, key: str | None = None, **body: Any) -> Any:
        """POST /orders with a JSON body and an Idempotency-Key (a new one unless given)."""
        return self.post(json.dumps(body), key=key or f"key-{next(_numbers)}")

    def post(self, body: str | bytes, *, key: str | None, **headers: str) -> Any:
        idempotency = {} if key is None else {"Idempotency-Key": key}
        return self.http.post(
            "/api/v1/orders",
            body,
            content_type=headers.pop("content_type", "application/json"),
            headers={**self._headers(), **idempotency, **headers},
        )

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


def make_merchant(*, balance: str = "100.00", **fields: Any) -> Merchant:
    """A merchant with an account, a wallet, a client and a key."""
    return Merchant(make_client(make_account(balance=balance), **fields))
