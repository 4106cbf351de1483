"""Opens the pages of both sites in a database with a long history, and times them.

PAGES_ORDERS=30000,5000000 names the sizes, and PAGES_REPORT a Markdown file for the figures.
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
from django.core.cache import cache
from django.test import Client
from pytest_django import DjangoDbBlocker

from idempotency.cleanup import cleanup_records
from labs.pages.addresses import merchant_pages, staff_pages, unlisted_names
from labs.pages.history import database_with
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import signed_in
from tests.performance.plans import nodes, recorded_plans

SIZES = [int(size) for size in os.environ.get("PAGES_ORDERS", "3000").split(",")]
CALLS = 3
# Pages that need no figure: they accept only forms, or belong to the sign-in of the person.
WITHOUT_FIGURES = {
    "note",  # accepts only forms
    "passkey_remove",
    "telegram_link",
    "two_factor",
    "two_factor_enrol",
}


@dataclass(frozen=True)
class Figures:
    """The times of a page in milliseconds, and the rows that its statements read."""

    first: float
    usual: float
    rows: int


@pytest.mark.filterwarnings("ignore:.*naive datetime")  # of the theme's filter by time
def test_every_page_opens_and_reconcile_finds_nothing(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock():
        tables = [measure(orders) for orders in SIZES]
    text = show(tables)
    if report := os.environ.get("PAGES_REPORT"):
        Path(report).write_text(text)
    sys.stdout.write(text)


def test_no_page_is_missing() -> None:
    assert unlisted_names() == WITHOUT_FIGURES


def measure(orders: int) -> dict[str, Figures]:
    """The figures of each page and job by its address or name."""
    with database_with(orders):
        staff = signed_in()
        order = Order.objects.filter(client_id=1).latest("id")
        merchant = browser_of(make_member(order.client.account))
        figures = dict(opened(staff, staff_pages(staff)))
        figures |= dict(opened(merchant, merchant_pages(order)))
        for job in (check_everything, cleanup_records):
            start = time.perf_counter()
            job()
            took = 1000 * (time.perf_counter() - start)
            figures[job.__name__] = Figures(took, took, 0)
    return figures


def check_everything() -> None:
    """`reconcile` finds nothing."""
    assert reconcile()["findings"] == []


def opened(browser: Client, addresses: Iterator[str]) -> Iterator[tuple[str, Figures]]:
    """The figures of each page."""
    for address in addresses:
        times = []
        for _ in range(CALLS):
            cache.clear()  # exports and searches are limited
            start = time.perf_counter()
            answer = read(browser, address)
            times.append(1000 * (time.perf_counter() - start))
        assert answer.status_code == 200, (address, answer.status_code)
        cache.clear()
        with recorded_plans() as plans:
            read(browser, address)
        most = max((rows_read(plan["Plan"]) for plan in plans), default=0)
        yield address, Figures(times[0], median(times), most)


def read(browser: Client, address: str) -> Any:
    """The response, read to its end."""
    answer = browser.get(address)
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
    sizes = "".join(f" {n:,}: first ms | ms | rows of a statement |" for n in SIZES)
    lines = [f"| page or job |{sizes}", "|---|" + "---:|" * 3 * len(SIZES)]
    for name in tables[-1]:
        cells = (
            f" {one.first:.0f} | {one.usual:.0f} | {one.rows:,} |" if one else " | | |"
            for one in (table.get(name) for table in tables)
        )
        lines.append(f"| `{name}` |" + "".join(cells))
    return "\n".join(lines) + "\n"
