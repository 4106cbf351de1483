"""Deletes old rows and catches up with counting while a merchant buys, and compares the purchases
with those between; then compares what the tables occupy with what they occupy after VACUUM FULL.

A job works for about 15 seconds, as a scheduled task does, and rests for as long, until it has
handled its rows. So both kinds of purchases meet the same disk. A count runs twice in that time.

RETENTION_ROWS=500000 sets how many idempotency keys, request records and orders of a round are old
or uncounted, and RETENTION_ROUNDS the number of rounds. RETENTION_ORDERS is the length of the
history: at least 1.5 times as many, because a third of the orders are of one account.
RETENTION_ONLY=uncounted runs the jobs with this word in their names. With PAGES_KEEP the database
stays, and `reconcile` finds the orders that are counted twice.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import quantiles
from typing import Any

from django.conf import settings
from django.db import connection
from pytest_django import DjangoDbBlocker

from accounts.models import ApiClient
from embedded.environment import PROJECT
from labs.installation.buyers import Buyers
from labs.pages.filling import say
from labs.pages.history import database_with
from tests.concurrency.racing import execute
from tests.factories import Merchant, add_codes, make_product, own_shelf
from tests.live import owner_url

ORDERS = int(os.environ.get("RETENTION_ORDERS", "3001"))
ROWS = int(os.environ.get("RETENTION_ROWS", "2000"))
ROUNDS = int(os.environ.get("RETENTION_ROUNDS", "1"))
ONLY = os.environ.get("RETENTION_ONLY", "")
FULL = ROWS >= 100_000
MOST = 1.2  # times the slowest hundredth of the purchases without a job
SECONDS = 15 if FULL else 1  # of one run of a job
# Seconds between two runs of a count.
EVERY = settings.CELERY_BEAT_SCHEDULE["count-sales"]["schedule"] if FULL else 0.5
OLD_KEYS = """
    INSERT INTO idempotency_idempotencyrecord
        (client_id, key, fingerprint, attempt, created_at, started_at, order_reference, bought_at,
         response)
    SELECT 1 + n %% 200, 'old-' || n, sha256('old'), 1, at, at, '01OLD' || lpad(n::text, 21, '0'),
           at, decode(repeat('5e', 440), 'hex')
      FROM generate_series(1, %s) AS n,
           LATERAL (SELECT now() - interval '9 days' + n * interval '1 ms' AS at) AS times
"""
# The oldest records become old. After the first round, most of them are new rows.
OLD_REQUESTS = """
    WITH wanted AS (SELECT %s AS rows),
    aged AS (
        UPDATE accounts_requestrecord SET at = at - interval '60 days'
         WHERE id < (SELECT min(id) FROM accounts_requestrecord) + (SELECT rows FROM wanted)
        RETURNING id)
    INSERT INTO accounts_requestrecord
        (at, request_id, client_id, account_id, method, path, status, code, reason,
         order_reference, idempotency_key, milliseconds)
    SELECT now() - interval '60 days', gen_random_uuid(), 1, 1, 'POST', '/api/v1/orders', 409,
           'order_refused', 'insufficient_balance', NULL, 'old-' || n, 4
      FROM wanted, generate_series(1, rows - (SELECT count(*) FROM aged)) AS n
"""
# The newest orders of each client become those of yesterday, and uncounted.
UNCOUNTED = """
    WITH behind AS (
        UPDATE figures_countedsales SET orders = greatest(0, orders - %s / 200)
        RETURNING client_id, orders)
    UPDATE orders_order AS sale SET created_at = now() - interval '1 day'
      FROM behind WHERE sale.client_id = behind.client_id AND sale.number > behind.orders
"""
SIZES = """
    SELECT pg_relation_size(table_name::regclass), pg_indexes_size(table_name::regclass)
      FROM unnest(%s::text[]) AS table_name
"""
TABLES = ["idempotency_idempotencyrecord", "accounts_requestrecord", "figures_dailysales"]
# What beat does with a count.
TWICE = f"""
import time

def job():
    total = 0
    for _ in range(2):
        total += count()
        time.sleep({EVERY})
    return total
"""
LAST = 5_000  # rows: a run of fewer is the last one
# Each job runs in a process of its own, as a worker does.
JOBS = {
    "expired keys": (
        OLD_KEYS,
        "from functools import partial; from idempotency.cleanup import cleanup_records;"
        f" job = partial(cleanup_records, seconds={SECONDS})",
    ),
    "old request records": (
        OLD_REQUESTS,
        "from functools import partial;"
        " from accounts.api_access.request_records import delete_old_records;"
        f" job = partial(delete_old_records, seconds={SECONDS})",
    ),
    "a day of uncounted sales": (
        UNCOUNTED,
        f"from figures.sales_counting import count_sales as count{TWICE}",
    ),
    "a day of uncounted margins": (
        UNCOUNTED.replace("figures_countedsales", "figures_countedmargin"),
        f"from figures.margin_counting import count_margins as count{TWICE}",
    ),
}


def test_purchases_beside_retention(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> None:
    jobs = {name: job for name, job in JOBS.items() if ONLY in name}
    with django_db_blocker.unblock(), database_with(ORDERS):
        product = make_product(price="0.07")
        add_codes(own_shelf(product), max(20_000, 3 * ROWS // 2) * ROUNDS)
        merchant: Any = Merchant(ApiClient.objects.get(pk=2))
        buyer = Buyers(
            [merchant.key], [{"product_id": product.pk, "quantity": 1}], [merchant], pause=0
        )
        beside: dict[str, list[float]] = {name: [] for name in jobs}
        alone: dict[str, list[float]] = {name: [] for name in jobs}
        with buyer.running(threads=1):
            for number in range(ROUNDS):
                for name, (script, job) in jobs.items():
                    prepare(script)
                    seconds = total = 0.0
                    for first, last, rows in runs_of(job):
                        beside[name] += buyer.between(first, last)
                        alone[name] += buyer.between(last, 2 * last - first)
                        seconds, total = seconds + last - first, total + rows
                    say("job", number=number, name=name, rows=total, seconds=round(seconds, 1))
                say("round", number=number, sizes=occupied())
        say("after the rounds", sizes=occupied())
        execute("SET statement_timeout = 0")
        for table in TABLES:
            execute(f"VACUUM FULL {table}")
        execute("RESET statement_timeout")
        say("after VACUUM FULL", sizes=occupied())
    figures = {name: compare(beside[name], alone[name]) for name in jobs}
    for name, one in figures.items():
        say("purchases", beside=name, **one)
    assert all(beside.values())
    assert not FULL or max(one["ratio"] for one in figures.values()) <= MOST


def prepare(script: str) -> None:
    """Makes rows old, without triggers, and waits until that is written."""
    execute("SET session_replication_role = replica")
    execute("SET statement_timeout = 0")
    execute(script, ROWS)
    execute("RESET session_replication_role")
    if "orders_order" in script:
        execute("VACUUM orders_order")  # a real day leaves no old versions of its rows
    execute("RESET statement_timeout")
    execute("CHECKPOINT")
    time.sleep(1 if not FULL else 20)


def runs_of(job: str) -> Iterator[tuple[float, float, int]]:
    """Runs the job in a process of its own until it has handled ROWS rows, or few are left.

    Rests as long after each run. Yields when each run began and ended, and of how many rows."""
    script = (
        f"import sys, django; django.setup()\n{job}\nprint(flush=True)\n"
        "for _ in sys.stdin: print(job(), flush=True)"
    )
    name = connection.settings_dict["NAME"]
    url = f"{owner_url().rsplit('/', 1)[0]}/{name}"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=PROJECT,
        env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdout.readline()
        rows, left = LAST, ROWS
        while rows >= LAST and left > 0:
            first = time.monotonic()
            print(file=worker.stdin, flush=True)
            rows = int(worker.stdout.readline())
            last = time.monotonic()
            time.sleep(last - first)
            yield first, last, rows
            left -= rows


def compare(beside: list[float], alone: list[float]) -> dict[str, Any]:
    """The slowest hundredth of each, in milliseconds, and the first divided by the second."""
    if min(len(beside), len(alone)) < 100:
        return {"purchases": len(beside), "ratio": 1.0}
    slow, slow_alone = (quantiles(times, n=100)[98] for times in (beside, alone))
    return {
        "purchases": len(beside),
        "p99_ms": round(slow, 1),
        "p99_alone_ms": round(slow_alone, 1),
        "ratio": round(slow / slow_alone, 2),
    }


def occupied() -> list[int]:
    """Megabytes of each table and of its indexes."""
    with connection.cursor() as cursor:
        cursor.execute(SIZES, [TABLES])
        return [size // 2**20 for row in cursor.fetchall() for size in row]
