"""Opens the pages of both sites in a database with a long history, and counts what they read.

PAGES_ORDERS=30000,5000000 names the sizes, and PAGES_REPORT a Markdown file for the figures.
PAGES_KEEP=1 keeps the databases, so that the next run on the same servers does not load them
again. PAGES_ONLY names a part of the addresses to open.
"""

import collections
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from pytest_django import DjangoDbBlocker

from idempotency.cleanup import cleanup_records
from labs.pages.addresses import (
    Address,
    merchant_pages,
    staff_pages,
    unlisted_names,
    untried_filters,
)
from labs.pages.history import database_with
from merchants.models import Membership
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from tests.merchants.people import browser_of
from tests.operators.back_office import signed_in
from tests.performance.plans import nodes, pages, recorded_plans

SIZES = [int(size) for size in os.environ.get("PAGES_ORDERS", "3000").split(",")]
ONLY = os.environ.get("PAGES_ONLY", "")
REPORT = os.environ.get("PAGES_REPORT")
CALLS = 3 if REPORT else 1
# Pages that need no figure: they accept only forms, or belong to the sign-in of the person.
WITHOUT_FIGURES = {
    "note",  # accepts only forms
    "passkey_remove",
    "staff_forgotten",
    "staff_password",
    "telegram_link",
    "two_factor",
    "two_factor_enrol",
}


@dataclass(frozen=True)
class Figures:
    """The times of a page in milliseconds, and the most that one of its statements reads: rows,
    and blocks of 8 kB."""

    first: float
    usual: float
    rows: int
    blocks: int


@pytest.mark.filterwarnings("ignore:.*naive datetime")  # of the theme's filter by time
def test_every_page_opens_and_reconcile_finds_nothing(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock():
        tables = [measure(orders) for orders in SIZES]
    text = show(tables)
    if REPORT:
        Path(REPORT).write_text(text)
    sys.stdout.write(text)


def test_no_page_is_missing() -> None:
    assert unlisted_names() == WITHOUT_FIGURES


def test_no_filter_is_missing() -> None:
    assert untried_filters() == set()


def measure(orders: int) -> dict[str, Figures]:
    """The figures of each page and job by its address or name."""
    with database_with(orders):
        order = Order.objects.filter(client_id=1).latest("id")
        chief = User.objects.get(is_superuser=True)
        member = Membership.objects.get(account=order.client.account)
        staff, merchant = signed_in(chief), browser_of(member)
        figures = dict(opened(staff, staff_pages(staff)))
        figures |= dict(opened(merchant, merchant_pages(order)))
        for job in (check_everything, cleanup_records):
            start = time.perf_counter()
            job()
            took = 1000 * (time.perf_counter() - start)
            figures[job.__name__] = Figures(took, took, 0, 0)
    return figures


def check_everything() -> None:
    """`reconcile` finds nothing."""
    assert reconcile()["findings"] == []


def opened(browser: Client, addresses: Iterator[Address]) -> Iterator[tuple[str, Figures]]:
    """The figures of each page. Fails at the end if one does not open."""
    failed = []
    for address in addresses:
        if ONLY not in str(address):
            continue
        times = []
        for _ in range(CALLS):
            cache.clear()  # exports and searches are limited
            start = time.perf_counter()
            answer = read(browser, address)
            times.append(1000 * (time.perf_counter() - start))
        if answer.status_code != 200:
            failed.append(f"{address}: {answer.status_code}")
            continue
        cache.clear()
        with recorded_plans() as plans:
            read(browser, address)
        most = max((rows_read(plan["Plan"]) for plan in plans), default=0)
        blocks = max(map(pages, plans), default=0)
        yield str(address), Figures(times[0], median(times), most, blocks)
    assert failed == []


def read(browser: Client, address: Address) -> Any:
    """The response, read to its end."""
    path, sent = address.path, address.sent
    answer = browser.post(path, sent) if sent else browser.get(path)
    if answer.streaming:
        collections.deque(answer, maxlen=0)
    return answer


def rows_read(plan: dict[str, Any]) -> int:
    """The rows that the scans of a statement looked at."""
    return sum(
        round(
            node["Actual Loops"]
            * (
                node["Actual Rows"]
                + node.get("Rows Removed by Filter", 0)
                + node.get("Rows Removed by Index Recheck", 0)
            )
        )
        for node in nodes(plan)
        if "Relation Name" in node
    )


def show(tables: list[dict[str, Figures]]) -> str:
    """One Markdown table: each page with its figures at each size."""
    sizes = "".join(f" {n:,}: first ms | ms | rows | blocks |" for n in SIZES)
    lines = [f"| page or job |{sizes}", "|---|" + "---:|" * 4 * len(SIZES)]
    for name in tables[-1]:
        cells = (
            f" {one.first:.0f} | {one.usual:.0f} | {one.rows:,} | {one.blocks:,} |"
            if one
            else " | | | |"
            for one in (table.get(name) for table in tables)
        )
        lines.append(f"| `{name}` |" + "".join(cells))
    return "\n".join(lines) + "\n"
