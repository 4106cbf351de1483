"""Times requests of the API and opens the pages of both sites in databases with histories of
several lengths, runs the scheduled tasks there, and counts what they read.

PAGES_ORDERS=30000,5000000 names the lengths in orders, and PAGES_REPORT the file of the report.
PAGES_ACCOUNTS=20000 adds accounts without orders, with their clients, keys and members.
PAGES_KEEP=1 keeps the databases, so that the next run on the same servers does not load them
again; a report keeps them, too. PAGES_ONLY names a part of the addresses to open.
"""

import collections
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import resolve
from django.utils.module_loading import import_string
from pytest_django import DjangoDbBlocker

from core.backoffice.periods import Period
from core.cache import CacheLost
from core.database.functions import database_now
from labs.pages.addresses import (
    Address,
    merchant_pages,
    staff_pages,
    unlisted_names,
    untried_filters,
)
from labs.pages.history import database_with
from labs.pages.report import EXPLAINED, MOST_ROWS, Figures, Table, explanation, write_report
from labs.pages.requests import blocks_read, time_requests
from merchants.models import Membership
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from tests.merchants.people import browser_of
from tests.operators.back_office import signed_in
from tests.performance.plans import pages, recorded_plans, rows_read

SIZES = [int(size) for size in os.environ.get("PAGES_ORDERS", "3000").split(",")]
ONLY = os.environ.get("PAGES_ONLY", "")
REPORT = os.environ.get("PAGES_REPORT")
ROUNDS = 3 if REPORT else 1
# Pages that need no figure: they accept only forms, or belong to the sign-in of the person.
WITHOUT_FIGURES = {
    "cancel_prepared_file",  # accepts only forms
    "note",  # accepts only forms
    "passkey_remove",
    "end_request",  # no row waits in the history
    "prepared_file",  # one row, and its part, by a token
    "prepared_file_part",
    "staff_forgotten",
    "staff_password",
    "telegram_link",
    "two_factor",
    "two_factor_enrol",
}
# Its first run looks at everything, as the check below does.
LEFT_OUT = {"reconcile-nightly"}
MOST_SENT = 2_000_000  # bytes that are read of a file: a whole history is sent in bounded parts
# What differs between databases in an address.
NUMBER = re.compile(
    r"01[0-9A-Z]{24}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b\d{1,}\b|(?<=q=)[0-9A-Z]{6}$"
)
OF_A_KIND = 4  # addresses that differ only in such numbers, such as a filter by product


@pytest.mark.filterwarnings("ignore:.*naive datetime")  # of the theme's filter by time
def test_every_page_opens_and_reads_little_and_reconcile_finds_nothing(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> None:
    requested: Table = {}
    opened: Table = {}
    jobs: Table = {}
    try:
        with django_db_blocker.unblock():
            for number in range(ROUNDS):
                for size in SIZES:
                    with database_with(size):
                        time_requests(requested, size)
                        open_pages(opened, size, is_first=number == 0)
            for size in SIZES:
                with database_with(size):
                    run_jobs(jobs, size)
    finally:  # keeps the report of a long run that is interrupted
        if REPORT and opened:
            Path(REPORT).write_text(write_report(SIZES, ROUNDS, requested, opened, jobs))
    most = {name: max(one.rows for one in sizes.values()) for name, sizes in opened.items()}
    assert {name for name, rows in most.items() if rows > MOST_ROWS and not explanation(name)} == (
        set()
    )


def test_no_page_is_missing() -> None:
    assert unlisted_names() == WITHOUT_FIGURES


def test_no_filter_is_missing() -> None:
    assert untried_filters() == set()


def test_an_explanation_is_of_a_page() -> None:
    assert all(resolve(name.partition("?")[0]) for name in EXPLAINED)


def test_an_explanation_of_a_search_is_of_no_filter() -> None:
    assert explanation("/admin/orders/order/?q=Merchant+…")
    assert not explanation("/admin/orders/order/?state=failed")


def open_pages(table: Table, size: int, *, is_first: bool) -> None:
    """Opens each page, and notes its figures under its name. Fails at the end if one does not
    open."""
    order = Order.objects.filter(client_id=1).latest("id")
    chief = User.objects.get(is_superuser=True)
    member = Membership.objects.get(account=order.client.account)
    staff, merchant = signed_in(chief), browser_of(member)
    failed = []
    for browser, addresses in ((staff, staff_pages(staff)), (merchant, merchant_pages(order))):
        for name, address in named(addresses):
            clear_cache()  # exports and searches are limited
            # A report has times, which exclude those of plans. Without one, pages are opened once.
            watch: AbstractContextManager[Any] = nullcontext() if REPORT else recorded_plans()
            start = time.perf_counter()
            with watch as plans:
                answer = read(browser, address)
            took = 1000 * (time.perf_counter() - start)
            by_a_worker = answer.status_code == 302 and "/files/" in answer["Location"]
            if answer.status_code != 200 and not by_a_worker:
                failed.append(f"{address}: {answer.status_code}")
                continue
            if is_first:
                most = most_read(plans_of(browser, address) if REPORT else plans)
                table.setdefault(name, {})[size] = Figures(took, took, *most)
            elif known := table.get(name, {}).get(size):
                known.best = min(known.best, took)
    assert failed == []


def named(addresses: Iterator[Address]) -> Iterator[tuple[str, Address]]:
    """The addresses with names that are the same in each database."""
    seen: collections.Counter[str] = collections.Counter()
    for address in addresses:
        if ONLY in str(address):
            name = NUMBER.sub("…", str(address))
            seen[name] += 1
            if seen[name] <= OF_A_KIND:
                yield (name if seen[name] == 1 else f"{name} (another)"), address


def plans_of(browser: Client, address: Address) -> list[dict[str, Any]]:
    """The plans of a page that is opened once more."""
    clear_cache()
    with recorded_plans() as plans:
        read(browser, address)
    return plans


def clear_cache() -> None:
    """Clears the cache, also on a machine so busy that the cache misses its time limit."""
    for _ in range(30):
        with suppress(CacheLost):
            return cache.clear()
        time.sleep(1)
    raise CacheLost("the cache failed for half a minute")


def most_read(plans: list[dict[str, Any]]) -> tuple[int, int]:
    """The most rows, and the most blocks, that one of these statements reads."""
    rows = max((rows_read(plan["Plan"]) for plan in plans), default=0)
    return rows, max(map(pages, plans), default=0)


def run_jobs(table: Table, size: int) -> None:
    """Runs each scheduled task, and `reconcile` of some periods. The last of these fails if it
    finds anything."""
    for name, job in jobs().items():
        if ONLY in name:
            before = blocks_read()
            start = time.perf_counter()
            job()
            took = 1000 * (time.perf_counter() - start)
            table.setdefault(name, {})[size] = Figures(took, took, 0, blocks_read() - before)


def jobs() -> dict[str, Callable[[], Any]]:
    """The scheduled tasks and the checks by their names."""
    tasks = {
        name: import_string(entry["task"]).run
        for name, entry in settings.CELERY_BEAT_SCHEDULE.items()
        if name not in LEFT_OUT
    }
    now = database_now().replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    slice_ = Period(now - 400 * day, now - 296 * day)
    return {
        **tasks,
        "reconcile, a day": lambda: check(periods=[Period(now - day)], weekly=False),
        "reconcile, a day and a seventh of two years": lambda: check(
            periods=[Period(now - day), slice_], weekly=False
        ),
        "reconcile, everything": check,
    }


def check(**options: Any) -> None:
    """`reconcile` finds nothing."""
    assert reconcile(**options)["findings"] == []


def read(browser: Client, address: Address) -> Any:
    """The response, read to its end, or to MOST_SENT bytes of a file."""
    path, sent = address.path, address.sent
    answer = browser.post(path, sent, follow=True) if sent else browser.get(path)
    if answer.streaming:
        sent_bytes = 0
        for part in answer:
            sent_bytes += len(part)
            if sent_bytes > MOST_SENT:
                break
        answer.close()
    return answer
