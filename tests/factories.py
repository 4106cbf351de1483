"""Small functions that make what a test needs. Each returns what it made."""

import base64
import hashlib
import itertools
import json
import secrets
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import Permission, User
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Account, ApiClient, ApiKey, RequestRecord
from catalogue.imports.code_import import add_codes as stock_codes
from catalogue.models import Batch, Category, Product, ReferenceLink, Shelf, Variation
from catalogue.stock.batches import BatchDetails, FileDigest, add_batch
from catalogue.stock.codes import Code
from orders.models import LostPurchase
from tests.answers import CheckedClient
from topups.fulfilment.fulfilments import Operator, move_fulfilment
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import (
    Channel,
    Fulfilment,
    RejectReason,
    TopUpField,
    TopUpFieldOption,
    TopUpProduct,
)
from wallets import services
from wallets.models import COUNTERPARTS, EntryKind, LedgerEntry
from wallets.services import open_wallet

NEIGHBOUR = "The Neighbour"  # the name of the account that tests/neighbour.py makes
_numbers = itertools.count(1)
RUN = secrets.token_hex(3)  # a laboratory keeps its database, and the codes of earlier runs


def make_account(*, balance: str = "100.00", currency: str = "USD", wallet: bool = True) -> Account:
    account = Account.objects.create(name=f"Merchant {next(_numbers)}", currency=currency)
    if wallet:
        open_wallet(account=account)
        if Decimal(balance):
            _begin_ledger(account, Decimal(balance))
    return account


def _begin_ledger(account: Account, amount: Decimal) -> None:
    """A deposit in one statement. The trigger of the ledger does the rest, as for each entry."""
    LedgerEntry.objects.create(
        wallet_id=account.pk,
        kind=EntryKind.DEPOSIT,
        counterpart=COUNTERPARTS[EntryKind.DEPOSIT],
        amount=amount,
        balance_after=0,
        actor="test",
        booking_reference=new_booking_reference(),
    )


def deposit(*, account: Account, amount: Decimal, actor: str = "test") -> LedgerEntry:
    return services.deposit(
        account=account, amount=amount, actor=actor, booking_reference=new_booking_reference()
    )


def adjust(
    *, account: Account, amount: Decimal, actor: str = "test", note: str = ""
) -> LedgerEntry:
    return services.adjust(
        account=account,
        amount=amount,
        actor=actor,
        note=note,
        booking_reference=new_booking_reference(),
    )


def new_booking_reference() -> str:
    return f"booking {next(_numbers)} {secrets.token_hex(4)}"


def make_client(account: Account | None = None, **fields: Any) -> ApiClient:
    fields = {"name": f"Client {next(_numbers)}", **fields}
    return ApiClient.objects.create(account=account, **fields)


def make_key(client: ApiClient) -> str:
    """A live key without an audit entry: the audit trail of a test holds only what it tests."""
    prefix = secrets.token_hex(6)
    key = f"vk_{prefix}_{secrets.token_hex(32)}"
    digest = hashlib.sha256(key.encode()).hexdigest()
    ApiKey.objects.create(client=client, prefix=prefix, digest=digest)
    return key


def new_encryption_key(key_id: int) -> str:
    """A key for CODE_ENCRYPTION_KEYS."""
    return f"{key_id}:{base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()}"


def make_record(client: ApiClient, **fields: Any) -> RequestRecord:
    """The record of a refused purchase."""
    defaults: dict[str, Any] = {
        "at": timezone.now(),
        "request_id": uuid4(),
        "client": client,
        "account": client.account,
        "method": "POST",
        "path": "/api/v1/orders",
        "status": 409,
        "code": "order_refused",
        "reason": "insufficient_balance",
        "idempotency_key": "shop-4711",
        "milliseconds": 12,
    }
    return RequestRecord.objects.create(**{**defaults, **fields})


def make_lost_purchase(client: ApiClient, price: str = "2.00", **fields: Any) -> LostPurchase:
    """A purchase of 22 November 2026 that a restore lost, as `hold_codes` records it."""
    return LostPurchase.objects.create(
        reference=f"LOST{next(_numbers):022}",
        client=client,
        total_price=Decimal(price),
        sold_at=datetime(2026, 11, 22, tzinfo=UTC),
        **{"currency": "USD", **fields},
    )


def make_batch(shelf: Shelf, number: int = 2, *, expires_on: date | None = None) -> Batch:
    """An import of so many codes, which may have expired already."""
    rows = [(line, Code(f"BATCH-{next(_numbers)}")) for line in range(number)]
    digest = FileDigest()
    digest.begin()
    with transaction.atomic():
        return add_batch(
            shelf=shelf,
            number=stock_codes(shelf=shelf, rows=rows, expires_on=expires_on),
            details=BatchDetails(supplier="Supplier", expires_on=expires_on),
            digest=digest,
            imported_by="test",
        )


def make_product(*, price: str | None = "9.99", codes: int = 0, **fields: Any) -> Product:
    """A product whose own shelf has a price and codes. `quantity_step` goes to the shelf."""
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


# The neighbour has the same name for another shelf, and another name for the same shelf.
_LINK_AT_THE_NEIGHBOUR = """
    WITH neighbour AS (SELECT id FROM accounts_account WHERE name = %(neighbour)s),
    spare AS (
        SELECT min(link.id) AS id FROM catalogue_referencelink link, neighbour
         WHERE account_id = neighbour.id AND reference LIKE 'spare-%%'
    ),
    same_name AS (
        UPDATE catalogue_referencelink AS link SET reference = %(reference)s FROM spare
         WHERE link.id = spare.id AND NOT EXISTS (
            SELECT FROM catalogue_referencelink other
             WHERE other.account_id = link.account_id AND other.reference = %(reference)s)
    )
    INSERT INTO catalogue_referencelink (account_id, reference, shelf_id)
    SELECT id, 'theirs-' || %(shelf)s, %(shelf)s FROM neighbour
    ON CONFLICT DO NOTHING
"""


def link(account: Account, reference: str, shelf: Shelf) -> ReferenceLink:
    """The account's reference of a shelf. The neighbour links both the other way around."""
    names: dict[str, str | int] = {
        "neighbour": NEIGHBOUR, "reference": reference, "shelf": shelf.pk,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_LINK_AT_THE_NEIGHBOUR, names)
    return ReferenceLink.objects.create(account=account, reference=reference, shelf=shelf)


def add_codes(shelf: Shelf, number: int) -> list[str]:
    """Puts codes on a shelf, some with serial number and PIN. Returns them in the order of sale."""
    codes = [f"CODE-{RUN}-{next(_numbers):06d}" for _ in range(number)]
    rows = [(line, Code(code, f"SN-{code}", "1234")) for line, code in enumerate(codes, start=1)]
    stock_codes(shelf=shelf, rows=rows)
    return codes


def _fill(shelf: Shelf, *, price: str | None, step: int, codes: int) -> None:
    Shelf.objects.filter(pk=shelf.pk).update(
        price=None if price is None else Decimal(price), quantity_step=step
    )
    if codes:
        add_codes(shelf, codes)


class Merchant:
    """A merchant's program, which calls the API with its key."""

    def __init__(self, client: ApiClient, http: Any = None) -> None:
        self.client = client
        self.key = make_key(client)
        self.http = http or CheckedClient()

    @property
    def account(self) -> Account:
        """The account of the merchant's client, which must have one."""
        assert self.client.account is not None
        return self.client.account

    def get(self, path: str, **query: Any) -> Any:
        return self.http.get(f"/api/v1{path}", query, headers=self._headers())

    def buy(self, key: str | None = None, **body: Any) -> Any:
        """Sends POST /orders with a JSON body and an Idempotency-Key, a new one unless given."""
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


def make_topup_product(*, price: str = "4.99", **fields: Any) -> TopUpProduct:
    """A top-up product that can be bought. Its stock is not counted unless given."""
    fields = {"name": f"Gems {next(_numbers)}", "currency": "USD", **fields}
    return TopUpProduct.objects.create(price=Decimal(price), **fields)


def make_field(product: TopUpProduct, type: str = "text", **fields: Any) -> TopUpField:
    """A field of a top-up product; `options` are the values of a dropdown."""
    options = fields.pop("options", ())
    number = next(_numbers)
    names = {"number": number, "name": f"field_{number}", "label": f"Field {number}"}
    field = TopUpField.objects.create(product=product, type=type, **{**names, **fields})
    for position, value in enumerate(options):
        TopUpFieldOption.objects.create(field=field, value=value, position=position)
    return field


def make_operator(
    *, senior: bool = False, channel: Channel = Channel.ADMIN, **fields: Any
) -> Operator:
    """An operator with the permission to move fulfilments, acting through a channel."""
    fields = {"username": f"operator{next(_numbers)}", "is_staff": True, **fields}
    user = User.objects.create_user(**fields)
    names = ["fulfil", "decide_review"] if senior else ["fulfil"]
    permissions = Permission.objects.filter(content_type__app_label="topups", codename__in=names)
    user.user_permissions.set(permissions)
    return Operator(user=User.objects.get(pk=user.pk), channel=channel)


def buy_topup(merchant: Merchant, product: TopUpProduct | None = None, **body: Any) -> str:
    """Buys a top-up by the API and returns the order's reference."""
    product = product or make_topup_product()
    body = {"player_id": "0012345", **body}
    answer = merchant.buy(delivery_type="top_up", system_product_id=product.pk, **body)
    assert answer.status_code == 201, answer.content
    reference: str = answer.json()["data"]["reference"]
    return reference


def move_now(
    *,
    reference: str,
    move: Move,
    operator: Operator,
    reason: RejectReason = RejectReason.OTHER,
    note: str = "",
    message: str = "",
) -> Fulfilment:
    """Moves an order as it is now, like an operator who has just looked at it."""
    found = Fulfilment.objects.filter(order_reference=reference).first()
    return move_fulfilment(
        reference=reference,
        version=version_of(found) if found else 0,
        move=move,
        operator=operator,
        reason=reason,
        note=note,
        message=message,
    )
