"""Buys once from a peer and looks at what it wrote, so that no peer is fast by leaving work out."""

import http.client
import json
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.rows import dict_row, tuple_row

from core.database import sealing
from core.database.sealing import Context
from labs.bench.load import BenchError

PURCHASE = {"product_id": 1, "quantity": 2}
# What a purchase changes, for one client, wallet and shelf.
BEFORE_AND_AFTER = """
    SELECT (SELECT balance FROM wallets_wallet WHERE account_id = %(client)s),
           (SELECT available_stock FROM catalogue_shelf WHERE product_id = 1),
           (SELECT count(*) FROM catalogue_vouchercode code JOIN catalogue_shelf shelf
                ON shelf.id = shelf_id WHERE product_id = 1 AND order_id IS NULL),
           (SELECT count(*) FROM orders_order WHERE client_id = %(client)s),
           coalesce((SELECT orders FROM orders_clientcounter WHERE client_id = %(client)s), 0)
"""
ORDER = """
    SELECT o.id, o.number, o.quantity, o.total_price, entry.amount, entry.balance_after,
           record.response, record.bought_at IS NOT NULL AS bought, record.client_id, record.key,
           (SELECT count(*) FROM catalogue_vouchercode WHERE order_id = o.id) AS codes
      FROM orders_order o
      JOIN wallets_ledgerentry entry ON entry.order_reference = o.reference
      JOIN idempotency_idempotencyrecord record ON record.order_reference = o.reference
     WHERE o.reference = %s
"""


def check_peer(
    *, port: int, database: str, client: int, bearer: str, key: str, duties: bool
) -> None:
    """Raises BenchError if a purchase of this client wrote less than the service would.

    `key` is the idempotency key to use. With `duties`, the stored response must be sealed and the
    codes opened, a retry must be replayed, the same key with another body refused, a refusal must
    release its key, and each response must have a request id.
    """
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:

        def state() -> list[Any]:
            with connection.cursor(row_factory=tuple_row) as cursor:
                return list(cursor.execute(BEFORE_AND_AFTER, {"client": client}).fetchone() or ())

        def expect(what: str, found: object, wanted: object) -> None:
            if found != wanted:
                raise BenchError(f"Wrong {what}: {found!r} instead of {wanted!r}.")

        before = state()
        status, headers, body = _post(port, bearer, key, PURCHASE)
        expect("status", status, 201)
        answered = json.loads(body, parse_float=Decimal)
        answered = answered.get("data", answered)  # the DRF peer has no envelope
        found = connection.execute(ORDER, [answered["reference"]]).fetchone() or {}
        total = found.get("total_price", 0)
        balance, stock, unsold, orders, number = before
        wanted = [balance - total, stock - 2, unsold - 2, orders + 1, number + 1]
        expect("books", state(), wanted)
        for name, value in {
            "number": number + 1, "quantity": 2, "amount": -total, "balance_after": balance - total,
            "bought": True, "codes": 2,
        }.items():  # fmt: skip
            expect(name, found.get(name), value)
        expect("price", Decimal(str(answered["total_price"])), total)
        if not duties:
            expect("stored response", bytes(found["response"]), body)
            return

        row = f"{client}:{key}".encode()
        opened = sealing.open_sealed(found["response"], Context.REPLAY_BODY, row)
        expect("sealed response", opened, body)
        names = {code["code"].partition("-")[0] for code in answered["codes"]}
        expect("codes", names, {"BENCH"})
        expect("length of the request id", len(headers.get("x-request-id", "")), 36)
        replayed = _post(port, bearer, key, PURCHASE)
        expect("replay", (replayed[0], replayed[1].get("idempotent-replay")), (201, "true"))
        expect("replay", replayed[2], body)
        status, _, body = _post(port, bearer, key, {**PURCHASE, "quantity": 1})
        code = json.loads(body)["error"]["code"]
        expect("response to a reused key", (status, code), (409, "idempotency_key_reused"))
        expect("orders after retries", state(), wanted)
        # A refusal releases its key.
        unknown = _post(port, bearer, f"{key}-2", {**PURCHASE, "product_id": 1_000_000})
        expect("status for an unknown product", unknown[0], 422)
        expect("status after a refusal", _post(port, bearer, f"{key}-2", PURCHASE)[0], 201)


def _post(
    port: int, bearer: str, key: str, body: dict[str, int]
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(
            "POST", "/api/v1/orders", json.dumps(body),
            {"Authorization": bearer, "Idempotency-Key": key, "Content-Type": "application/json"},
        )  # fmt: skip
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, headers, answer.read()
    finally:
        connection.close()
