"""The FastAPI peer with the duties of the service: as a team that needs them would write it.

To the purchase of fastapi_peer.py it adds: clients and accounts that are switched off, expired
keys, allowlists, the limit of requests in the cache, a request id, one JSON log line, sealed codes
and replays, exact decimals, and every row of the contract's idempotency table. It has no merchant
references, no variations and no top-ups.

Sealing and exact decimals are the functions of the service. The pool gives connections back without
a round trip, asyncpg prepares every statement, and granian serves it with uvloop.
"""

import hashlib
import ipaddress
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
import orjson
from fastapi import FastAPI, Request, Response
from redis.asyncio import Redis
from ulid import ULID

from catalogue.stock.codes import open_code
from core.database import sealing
from core.database.sealing import Context
from core.json_output import dumps
from labs.bench.peers.fastapi_peer import (
    BOOK,
    DEBIT,
    NUMBER,
    OFFER,
    ORDER,
    TAKE_STOCK,
    Purchase,
)

IN_PROGRESS_SECONDS = 300
MAX_KEY_BYTES = 128
WINDOW = 60  # seconds
ROUNDS = 100  # of a claim, while the record keeps changing

FIND_KEY = """
    SELECT key.digest, client.id AS client, client.enabled, client.rate_limit_per_minute,
           client.allowed_networks::text[] AS networks, account.id AS account,
           account.enabled AS account_enabled
      FROM accounts_apikey key
      JOIN accounts_apiclient client ON client.id = key.client_id
      JOIN accounts_account account ON account.id = client.account_id
     WHERE key.prefix = $1 AND key.revoked_at IS NULL
       AND (key.expires_at IS NULL OR key.expires_at > now())
"""
CLAIM = """
    WITH lazy AS (SELECT set_config('synchronous_commit', 'off', true))
    INSERT INTO idempotency_idempotencyrecord (client_id, key, fingerprint, attempt)
    SELECT $1, $2, $3, 1 FROM lazy ON CONFLICT (client_id, key) DO NOTHING RETURNING id
"""
FIND_CLAIM = """
    SELECT id, fingerprint, response, attempt, order_reference,
           started_at > clock_timestamp() - make_interval(secs => $3) AS runs
      FROM idempotency_idempotencyrecord WHERE client_id = $1 AND key = $2
"""
TAKE_OVER = """
    UPDATE idempotency_idempotencyrecord SET attempt = attempt + 1, started_at = clock_timestamp()
     WHERE id = $1 AND attempt = $2 AND order_reference IS NULL RETURNING attempt
"""
STAMP = """
    UPDATE idempotency_idempotencyrecord SET order_reference = $3, bought_at = now()
     WHERE id = $1 AND attempt = $2 AND order_reference IS NULL RETURNING id
"""
RELEASE = """
    WITH lazy AS (SELECT set_config('synchronous_commit', 'off', true))
    DELETE FROM idempotency_idempotencyrecord USING lazy
     WHERE id = $1 AND attempt = $2 AND order_reference IS NULL
"""
STORE = """
    WITH lazy AS (SELECT set_config('synchronous_commit', 'off', true))
    UPDATE idempotency_idempotencyrecord SET response = $3 FROM lazy
     WHERE id = $1 AND attempt = $2
"""
TAKE_CODES = """
    WITH next_codes AS (
        SELECT id FROM catalogue_vouchercode
         WHERE shelf_id = $1 AND order_id IS NULL AND hold_id IS NULL
         ORDER BY position LIMIT $2 FOR UPDATE
    )
    UPDATE catalogue_vouchercode code SET order_id = $3
      FROM next_codes WHERE code.id = next_codes.id RETURNING code.sealed, code.digest
"""

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[None]]


class Refused(Exception):
    """A failure of the contract."""

    def __init__(self, status: int, code: str, **extra: Any) -> None:
        super().__init__(code)
        self.status, self.code, self.extra = status, code, extra


class Logged:
    """ASGI middleware: sets X-Request-Id and writes one line for each request."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, status = str(uuid4()), 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-request-id", request_id.encode()))
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        finally:
            line = {
                "event": "request_finished",
                "code": status,
                "request": f"{scope['method']} {scope['path']}",
                "user_id": scope.get("state", {}).get("client"),
                "request_id": request_id,
                "level": "info",
                "timestamp": datetime.now(UTC),
            }
            sys.stderr.write(orjson.dumps(line, option=orjson.OPT_UTC_Z).decode() + "\n")


async def _no_reset(connection: Any) -> None:
    """Requests change nothing of a session, so asyncpg need not spend a round trip on it."""


@asynccontextmanager
async def connected(app: FastAPI) -> AsyncIterator[None]:
    app.state.cache = Redis.from_url(os.environ["REDIS_URL"])
    async with asyncpg.create_pool(
        os.environ["DATABASE_URL"], min_size=8, max_size=8, reset=_no_reset
    ) as pool:
        app.state.pool = pool
        yield
    await app.state.cache.aclose()


application = FastAPI(lifespan=connected)
application.add_middleware(Logged)


@application.exception_handler(Refused)
async def refuse(request: Request, refused: Refused) -> Response:
    """The failure as a response."""
    body = {"success": False, "error": {"code": refused.code, **refused.extra}}
    return _json(dumps(body), refused.status)


@application.post("/api/v1/orders")
async def buy(purchase: Purchase, request: Request) -> Response:
    """POST /orders for voucher codes."""
    state = request.app.state
    key = read_idempotency_key(request)
    async with state.pool.acquire() as connection:
        caller = await find_caller(connection, request)
        request.state.client = client = caller["client"]
        await count_request(state.cache, client, caller["rate_limit_per_minute"])
        fingerprint = hashlib.sha256(b"POST /orders" + purchase.model_dump_json().encode()).digest()
        row = f"{client}:{key}".encode()
        record, attempt, stored = await claim(connection, client, key, fingerprint)
        if stored is not None:
            body = sealing.open_sealed(stored, Context.REPLAY_BODY, row)
            return _json(body, 201, {"Idempotent-Replay": "true"})
        try:
            async with connection.transaction():
                order = await write_order(connection, caller, record, attempt, purchase)
        except Refused:
            await connection.execute(RELEASE, record, attempt)
            raise
        body = dumps({"success": True, "data": order})
        sealed = sealing.seal(body, Context.REPLAY_BODY, row)
        await connection.execute(STORE, record, attempt, sealed)
    return _json(body, 201)


def _json(body: bytes, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status_code=status, media_type="application/json", headers=headers)


def read_idempotency_key(request: Request) -> str:
    """The idempotency key. Raises Refused."""
    key: str = request.headers.get("Idempotency-Key", "")
    if not key.strip():
        raise Refused(400, "idempotency_key_required")
    if len(key) > MAX_KEY_BYTES:
        raise Refused(400, "idempotency_key_too_long")
    if not (key.isascii() and key.isprintable()):
        raise Refused(422, "validation_failed")
    return key


async def find_caller(connection: Any, request: Request) -> Any:
    """The client and the account of the API key. Raises Refused."""
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    parts = key.split("_")
    if scheme.lower() != "bearer" or len(parts) != 3:
        raise Refused(401, "invalid_token")
    found = await connection.fetchrow(FIND_KEY, parts[1])
    digest = hashlib.sha256(key.encode()).hexdigest()
    if found is None or not secrets.compare_digest(found["digest"], digest):
        raise Refused(401, "invalid_token")
    if not (found["enabled"] and found["account_enabled"]):
        raise Refused(403, "client_disabled")
    if found["networks"]:
        address = ipaddress.ip_address(request.client.host)
        if not any(address in ipaddress.ip_network(text) for text in found["networks"]):
            raise Refused(403, "ip_not_allowed")
    return found


async def count_request(cache: Redis, client: int, limit: int) -> None:
    """Counts one request of this minute. Raises Refused beyond the limit."""
    window, passed = divmod(int(time.time()), WINDOW)
    name = f"peer:{client}:{window}"
    count = await cache.incr(name)
    if count == 1:
        await cache.expire(name, WINDOW)
    if count > limit:
        raise Refused(429, "rate_limited", retry_after_seconds=WINDOW - passed)


async def claim(
    connection: Any, client: int, key: str, fingerprint: bytes
) -> tuple[int, int, bytes | None]:
    """The record, the attempt, and the stored response if there is one. Raises Refused."""
    for _ in range(ROUNDS):
        record = await connection.fetchval(CLAIM, client, key, fingerprint)
        if record is not None:
            return record, 1, None
        held = await connection.fetchrow(FIND_CLAIM, client, key, IN_PROGRESS_SECONDS)
        if held is None:  # cleaned up or released in the meantime
            continue
        if held["fingerprint"] != fingerprint:
            raise Refused(409, "idempotency_key_reused")
        if held["response"] is not None:
            return held["id"], held["attempt"], held["response"]
        if held["runs"]:
            raise Refused(409, "request_in_progress")
        if held["order_reference"] is not None:
            raise Refused(409, "request_abandoned", reference=held["order_reference"])
        attempt = await connection.fetchval(TAKE_OVER, held["id"], held["attempt"])
        if attempt is not None:
            return held["id"], attempt, None
    raise RuntimeError("the idempotency record kept changing")


async def write_order(
    connection: Any, caller: Any, record: int, attempt: int, purchase: Purchase
) -> dict[str, Any]:
    """Writes a purchase in the caller's transaction. Returns the order. Raises Refused."""
    reference, quantity = str(ULID()), purchase.quantity
    if await connection.fetchval(STAMP, record, attempt, reference) is None:
        raise Refused(409, "request_in_progress")  # another attempt took the key over
    offer = await connection.fetchrow(OFFER, purchase.product_id)
    if offer is None:
        raise Refused(422, "validation_failed")
    total = offer["price"] * quantity
    order = await connection.fetchval("SELECT nextval('orders_order_id_seq')")
    if await connection.fetchval(TAKE_STOCK, offer["id"], quantity) is None:
        raise Refused(409, "order_refused", reason="insufficient_stock")
    codes = await connection.fetch(TAKE_CODES, offer["id"], quantity, order)
    balance = await connection.fetchval(DEBIT, caller["account"], total)
    if balance is None:
        raise Refused(409, "order_refused", reason="insufficient_balance")
    await connection.execute(BOOK, caller["account"], -total, balance, reference)
    number = await connection.fetchval(NUMBER, caller["client"])
    created_at = await connection.fetchval(
        ORDER, order, reference, caller["client"], number, offer["id"], quantity,
        offer["price"], total, offer["currency"],
    )  # fmt: skip
    return {
        "reference": reference,
        "status": "completed",
        "product_id": purchase.product_id,
        "variation_id": None,
        "merchant_reference": None,
        "quantity": quantity,
        "units": quantity,
        "units_per_sale": 1,
        "unit_price": offer["price"],
        "total_price": total,
        "currency": offer["currency"],
        "created_at": created_at,
        "codes": [open_code(code["sealed"], code["digest"]).as_json() for code in codes],
    }
