"""The data of a scenario: one merchant, one shelf, one top-up product, put back in milliseconds."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import psycopg
from django.db import connection
from django.test import Client

from core.database.key_ring import key_ring
from idempotency.services import fingerprint
from labs.interleavings.contract import Seen
from labs.interleavings.participants import CONTESTED
from operators.upkeep.reconcile import CHECKS, GUARDS
from tests.concurrency.books import FINDINGS
from tests.concurrency.racing import execute
from tests.factories import (
    Merchant,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
)

PRICE = 10  # of a code and of a top-up, in USD
RETRIES = 4
FIVE_MINUTES = 301
ONE_DAY = 86_401
SEVEN_DAYS = 7 * 86_400 + 1
# A booking adds an audit entry and the key of its reference. No call of a participant names them.
CHANGED = (*CONTESTED, "audit_auditentry", "wallets_bookingkey")
LOOK = """
    SELECT (SELECT balance FROM wallets_wallet WHERE account_id = %(account)s),
           (SELECT available_stock FROM catalogue_shelf
             WHERE product_id = %(product)s AND variation_id IS NULL),
           (SELECT available_stock FROM topups_topupproduct WHERE id = %(topup)s),
           (SELECT coalesce(jsonb_object_agg(key, jsonb_build_object(
                'attempt', attempt, 'bought', order_reference IS NOT NULL,
                'late', started_at <= clock_timestamp() - interval '300 seconds',
                'stored', response IS NOT NULL, 'content', encode(fingerprint, 'hex'))), '{}')
              FROM idempotency_idempotencyrecord)
"""


@dataclass(frozen=True)
class Request:
    """A purchase that a participant sends."""

    key: str
    kind: str  # `voucher` or `top_up`
    variant: str = ""  # another content with the same meaning


@dataclass
class World:
    """The data that every scenario starts with."""

    merchant: Merchant
    product: int
    topup: int
    operators: list[Any] = field(default_factory=list)
    reference: str = ""  # of a top-up order that exists from the start
    version: int = 0  # of that order
    _clients: dict[int, Client] = field(default_factory=dict)

    def body(self, request: Request) -> dict[str, Any]:
        if request.kind == "voucher":
            variant = {"variation_id": None} if request.variant else {}
            return {"product_id": self.product, "quantity": 1, **variant}
        player = f"player{request.variant}"
        return {"delivery_type": "top_up", "system_product_id": self.topup, "player_id": player}

    def content(self, request: Request) -> str:
        """The fingerprint of the request, as `LOOK` shows it."""
        body = self.body(request)
        return fingerprint(endpoint="POST /orders", query=[], body=body).hex()

    def send(self, request: Request, *, sender: int = -1) -> Any:
        """Sends the purchase through the whole stack. Each sender has its own HTTP client."""
        if sender not in self._clients:
            self._clients[sender] = Client(raise_request_exception=False)
        http = self._clients[sender]
        headers = {
            "Authorization": f"Bearer {self.merchant.key}",
            "Idempotency-Key": request.key,
        }
        return http.post(
            "/api/v1/orders",
            json.dumps(self.body(request)),
            content_type="application/json",
            headers=headers,
        )

    def read(self, reference: str) -> Any:
        return self.merchant.get(f"/orders/{reference}")

    def look(self, database: psycopg.Connection) -> Seen:
        """The committed data now."""
        names = {
            "account": self.merchant.client.account_id,
            "product": self.product,
            "topup": self.topup,
        }
        row = database.execute(LOOK, names, prepare=True).fetchone()
        assert row is not None
        balance, codes, packages, records = row
        return Seen(balance, {"voucher": codes, "top_up": packages}, records)


def make_world(*, money: int = 30, codes: int = 3, packages: int = 2) -> World:
    key_ring()  # the first one in an empty database registers the keys, which is no step
    merchant = make_merchant(balance=f"{money}.00", rate_limit_per_minute=1_000_000)
    merchant.http = Client()
    product = make_product(price=f"{PRICE}.00", codes=codes)
    topup = make_topup_product(price=f"{PRICE}.00", available_stock=packages)
    operators = [make_operator(senior=True), make_operator(senior=True)]
    return World(merchant, product.pk, topup.pk, operators)


def remember() -> None:
    """Keeps the present rows of the tables that participants change."""
    for table in CHANGED:
        execute(f"DROP TABLE IF EXISTS schedule.{table}")
        execute(f"CREATE TABLE schedule.{table} AS TABLE public.{table}")


def put_back(database: psycopg.Connection) -> None:
    """Makes these tables as `remember` found them, on a connection that has triggers off."""
    database.execute(_PUT_BACK.encode())


def grow_older(seconds: int) -> None:
    """Lets this much time pass for every idempotency record, as a participant."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE idempotency_idempotencyrecord"
            " SET created_at = created_at - make_interval(secs => %(passed)s),"
            "     started_at = started_at - make_interval(secs => %(passed)s),"
            "     bought_at = bought_at - make_interval(secs => %(passed)s)",
            {"passed": seconds},
        )


def faults(database: psycopg.Connection) -> list[str]:
    """The findings of `reconcile` and tests/concurrency/books.py: one sentence each."""
    return [text for (text,) in database.execute(_all_checks(database), prepare=True)]


def names_of_orders(database: psycopg.Connection) -> list[str]:
    return [name for (name,) in database.execute("SELECT reference FROM orders_order ORDER BY id")]


_PUT_BACK = "BEGIN;" + "".join(
    f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM schedule.{table};" for table in CHANGED
) + "COMMIT"  # fmt: skip


@cache
def _all_checks(database: psycopg.Connection) -> bytes:
    """One query with every check of data; whether triggers exist does not change here."""
    ours = [
        f"SELECT $${problem}: $$ || found::text FROM ({query}) AS found"
        for problem, query in FINDINGS.items()
    ]
    fill = psycopg.ClientCursor(database).mogrify
    theirs = [
        fill(check.sql.encode(), check.parameters() if check.parameters else None)
        for check in CHECKS
        if check is not GUARDS
    ]
    return " UNION ALL ".join(
        [*ours, *(f"SELECT * FROM ({one}) AS one" for one in theirs)]
    ).encode()


def outcome(answer: Any) -> str:
    """`bought`, `replayed`, `crashed`, the reason or code of a failure, or an exception."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, BaseException):
        return repr(answer)
    if answer.status_code == 201:
        return "replayed" if "Idempotent-Replay" in answer.headers else "bought"
    error = answer.json()["error"]
    return str(error.get("reason") or error["code"])


def answers(results: Sequence[Any]) -> list[str]:
    return [outcome(result) for result in results]


def retry(send: Callable[[], Any]) -> tuple[str, str]:
    """Sends a purchase again by the documented rules, until its outcome is known; returns it, and
    the order's reference. Waits are made short: the records grow older instead."""
    for _ in range(RETRIES):
        answer = send()
        if outcome(answer) == "request_in_progress":
            grow_older(FIVE_MINUTES)
        else:
            return outcome(answer), reference_of(answer)
    return "request_in_progress", ""


def reference_of(answer: Any) -> str:
    """The reference of the order that a response shows or names; empty if there is none."""
    body = answer.json()
    return str(body.get("data", body.get("error", {})).get("reference") or "")
