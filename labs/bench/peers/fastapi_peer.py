"""The purchase written for speed: FastAPI, asyncpg and hand-written SQL.

It looks up the API key, claims the idempotency key, writes the purchase in one transaction, stores
the response and returns it. It has no rate limit, no encryption, no merchant references, no
variations, no protection against a late attempt, and no logs.
"""

import hashlib
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import asyncpg
import orjson
from fastapi import FastAPI, Header, HTTPException, Request, Response
from pydantic import BaseModel, Field
from ulid import ULID

FIND_KEY = """
    SELECT key.digest, client.id AS client, client.account_id AS account
      FROM accounts_apikey key
      JOIN accounts_apiclient client ON client.id = key.client_id
      JOIN accounts_account account ON account.id = client.account_id
     WHERE key.prefix = $1 AND key.revoked_at IS NULL AND client.enabled AND account.enabled
"""
CLAIM = """
    WITH lazy AS (SELECT set_config('synchronous_commit', 'off', true))
    INSERT INTO idempotency_idempotencyrecord (client_id, key, fingerprint, attempt)
    SELECT $1, $2, $3, 1 FROM lazy ON CONFLICT (client_id, key) DO NOTHING RETURNING id
"""
FIND_CLAIM = """
    SELECT fingerprint, response FROM idempotency_idempotencyrecord
     WHERE client_id = $1 AND key = $2
"""
STAMP = """
    UPDATE idempotency_idempotencyrecord SET order_reference = $2, bought_at = now() WHERE id = $1
"""
OFFER = """
    SELECT shelf.id, shelf.price, product.currency
      FROM catalogue_shelf shelf JOIN catalogue_product product ON product.id = shelf.product_id
     WHERE product.id = $1 AND shelf.variation_id IS NULL AND product.active
"""
TAKE_STOCK = """
    UPDATE catalogue_shelf SET available_stock = available_stock - $2
     WHERE id = $1 AND available_stock >= $2 RETURNING id
"""
TAKE_CODES = """
    WITH next_codes AS (
        SELECT id FROM catalogue_vouchercode
         WHERE shelf_id = $1 AND order_id IS NULL AND hold_id IS NULL
         ORDER BY position LIMIT $2 FOR UPDATE
    )
    UPDATE catalogue_vouchercode code SET order_id = $3
      FROM next_codes WHERE code.id = next_codes.id RETURNING code.sealed
"""
DEBIT = """
    UPDATE wallets_wallet SET balance = balance - $2
     WHERE account_id = $1 AND balance >= $2 RETURNING balance
"""
BOOK = """
    INSERT INTO wallets_ledgerentry
        (wallet_id, kind, counterpart, amount, balance_after, order_reference, actor, chain)
    VALUES ($1, 'purchase', 'sales', $2, $3, $4, 'client', '')
"""
NUMBER = """
    INSERT INTO orders_clientcounter AS counter (client_id, orders) VALUES ($1, 1)
    ON CONFLICT (client_id) DO UPDATE SET orders = counter.orders + 1 RETURNING orders
"""
ORDER = """
    INSERT INTO orders_order
        (id, reference, client_id, number, shelf_id, quantity, units_per_sale, unit_price,
         total_price, currency, codes_mac)
    VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9, decode(repeat('5e', 32), 'hex'))
    RETURNING created_at
"""
STORE = """
    WITH lazy AS (SELECT set_config('synchronous_commit', 'off', true))
    UPDATE idempotency_idempotencyrecord SET response = $2 FROM lazy WHERE id = $1
"""


@asynccontextmanager
async def connected(app: FastAPI) -> AsyncIterator[None]:
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=2, max_size=8) as pool:
        app.state.pool = pool
        yield


application = FastAPI(lifespan=connected)


class Purchase(BaseModel):
    """The body of a voucher purchase."""

    product_id: int = Field(ge=1)
    quantity: int = Field(ge=1, le=100)


@application.post("/api/v1/orders")
async def buy(
    purchase: Purchase,
    request: Request,
    authorization: str = Header(),
    idempotency_key: str = Header(),
) -> Response:
    """POST /orders for voucher codes."""
    async with request.app.state.pool.acquire() as connection:
        caller = await find_caller(connection, authorization.removeprefix("Bearer "))
        fingerprint = hashlib.sha256(purchase.model_dump_json().encode()).digest()
        record = await connection.fetchval(CLAIM, caller["client"], idempotency_key, fingerprint)
        if record is None:
            return await replay(connection, caller["client"], idempotency_key, fingerprint)
        async with connection.transaction():
            order = await write_order(connection, caller, record, purchase)
        body = orjson.dumps({"success": True, "data": order}, default=float)
        await connection.execute(STORE, record, body)
    return Response(body, status_code=201, media_type="application/json")


async def find_caller(connection: Any, key: str) -> Any:
    """The client and the account of an API key."""
    found = await connection.fetchrow(FIND_KEY, key.split("_")[1])
    digest = hashlib.sha256(key.encode()).hexdigest()
    if found is None or not secrets.compare_digest(found["digest"], digest):
        raise HTTPException(401)
    return found


async def replay(connection: Any, client: int, key: str, fingerprint: bytes) -> Response:
    """The stored response of an earlier request with this idempotency key."""
    held = await connection.fetchrow(FIND_CLAIM, client, key)
    if held is None or held["response"] is None or held["fingerprint"] != fingerprint:
        raise HTTPException(409)
    return Response(held["response"], status_code=201, media_type="application/json")


async def write_order(
    connection: Any, caller: Any, record: int, purchase: Purchase
) -> dict[str, Any]:
    """Writes a purchase in the caller's transaction. Returns the order."""
    reference = str(ULID())
    await connection.execute(STAMP, record, reference)
    offer = await connection.fetchrow(OFFER, purchase.product_id)
    if offer is None:
        raise HTTPException(422)
    total: Decimal = offer["price"] * purchase.quantity
    order = await connection.fetchval("SELECT nextval('orders_order_id_seq')")
    if await connection.fetchval(TAKE_STOCK, offer["id"], purchase.quantity) is None:
        raise HTTPException(409)
    codes = await connection.fetch(TAKE_CODES, offer["id"], purchase.quantity, order)
    balance = await connection.fetchval(DEBIT, caller["account"], total)
    if balance is None:
        raise HTTPException(409)
    await connection.execute(BOOK, caller["account"], -total, balance, reference)
    number = await connection.fetchval(NUMBER, caller["client"])
    created_at = await connection.fetchval(
        ORDER, order, reference, caller["client"], number, offer["id"], purchase.quantity,
        offer["price"], total, offer["currency"],
    )  # fmt: skip
    return {
        "reference": reference,
        "status": "completed",
        "product_id": purchase.product_id,
        "variation_id": None,
        "merchant_reference": None,
        "quantity": purchase.quantity,
        "units": purchase.quantity,
        "units_per_sale": 1,
        "unit_price": offer["price"],
        "total_price": total,
        "currency": offer["currency"],
        "created_at": created_at,
        "codes": [{"code": code["sealed"].hex()} for code in codes],
    }
