"""Downloads all orders of one account over HTTP while a client buys, and measures both.

EXPORTS_ORDERS=1000000 sets the number of orders, EXPORTS_ONLY a part of the names of the files, and
EXPORTS_REST the seconds of purchases before each file. With PAGES_KEEP the database stays.
"""

import http.client
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from pytest_django import DjangoDbBlocker

from accounts.models import Account, ApiClient
from catalogue.models import Shelf
from labs.bench.data import load_merchants_and_catalogue, register_keys
from labs.installation.buyers import Buyers
from labs.installation.postgres import children_of
from labs.pages.filling import Spread, built_later, fill, say
from labs.pages.history import KEPT
from merchants.models import Membership
from tests.database import another_database, connect, kept_database
from tests.factories import Merchant, add_codes, make_product, own_shelf
from tests.live import HOST, LiveServer, live_server, owner_url
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_staff, signed_in

ORDERS = int(os.environ.get("EXPORTS_ORDERS", "3000"))
ONLY = os.environ.get("EXPORTS_ONLY", "")
REST = float(os.environ.get("EXPORTS_REST", "1"))
PAUSE = 0.02  # seconds between two purchases of the buyer
FILES = {
    "merchant, CSV": "/merchant/orders/orders.csv?client=1",
    "merchant, XLSX": "/merchant/orders/orders.xlsx?client=1",
    "staff, CSV": "/admin/orders/order/export.csv?client__id__exact=1",
    "staff, XLSX": "/admin/orders/order/export.xlsx?client__id__exact=1",
}


def test_a_long_list_is_downloaded_while_a_client_buys(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock(), database(), live_server(workers=1) as server:
        browsers = {
            "merchant": browser_of(Membership.objects.get(account=1)),
            "staff": signed_in(User.objects.get(is_superuser=True)),
        }
        shelf = Shelf.objects.get(available_stock__gt=0)
        merchant = Merchant(ApiClient.objects.get(pk=2), http=server.http)
        body = {"product_id": shelf.product_id, "quantity": 1}
        buyer = Buyers([merchant.key], [body], [server], pause=PAUSE)
        with buyer.running(threads=1):
            for name, path in FILES.items():
                if ONLY in name:
                    cookies = browsers[name.partition(",")[0]].cookies
                    session = cookies[settings.SESSION_COOKIE_NAME].OutputString([])
                    measure(name, path, session, server, buyer)


@contextmanager
def database() -> Iterator[None]:
    """A database in which client 1 has made all orders, for Django inside the block."""
    name = f"exports_{ORDERS}"
    with kept_database(name) if KEPT else another_database(name):
        if not Account.objects.exists():
            load(name)
        yield


def load(name: str) -> None:
    """Fills the new database of Django's connection."""
    url = owner_url()
    register_keys(url)
    load_merchants_and_catalogue(url, merchants=1)
    with connect(name, autocommit=True) as rows, built_later(rows):
        rows.execute("SELECT setval('wallets_ledgerentry_id_seq', %s)", [ORDERS + 10_000])
        fill(rows, ORDERS, Spread(client="1", number="n"))
    add_codes(own_shelf(make_product(price="0.07")), 20_000 if ORDERS > 10_000 else 1_000)
    make_member(Account.objects.get(pk=1))
    make_staff(superuser=True)
    with connect(name, autocommit=True) as rows:
        rows.execute("VACUUM ANALYZE")


def measure(name: str, path: str, cookie: str, server: LiveServer, buyer: Buyers) -> None:
    """Downloads one file after a time of purchases alone, and prints the figures of both."""
    worker = Path("/proc") / str(worker_of(server.pid))
    (worker / "clear_refs").write_text("5")  # the peak begins at the present size
    before = kilobytes(worker)
    began = time.monotonic()
    time.sleep(REST)  # purchases alone
    first = time.monotonic()
    size, lines, waited = download(server.port, path, cookie)
    last = time.monotonic()
    assert ".csv" not in path or lines == ORDERS + 1
    say(
        "file",
        name=name,
        orders=ORDERS,
        seconds=round(last - first, 1),
        first_byte_seconds=round(waited, 1),
        megabytes=round(size / 1e6, 1),
        peak_mb=round(kilobytes(worker) / 1024),
        before_mb=round(before / 1024),
        alone=figures(buyer.between(began, first)),
        beside=figures(buyer.between(first, last)),
    )


def figures(times: list[float]) -> dict[str, Any]:
    return {
        "purchases": len(times),
        "median_ms": round(median(times), 1),
        "p99_ms": round(quantiles(times, n=100)[98], 1),
    }


def download(port: int, path: str, cookie: str) -> tuple[int, int, float]:
    """The bytes and the line breaks of the file, and the seconds until its first byte."""
    asked = time.monotonic()
    reader = http.client.HTTPConnection(HOST, port, timeout=900)
    reader.request("GET", path, headers={"Cookie": cookie})
    answer = reader.getresponse()
    assert answer.status == 200, (path, answer.status, answer.headers)
    part = answer.read(1)
    waited, size, lines, end = time.monotonic() - asked, 0, 0, b""
    while part:
        size, lines, end = size + len(part), lines + part.count(b"\n"), (end + part)[-100:]
        part = answer.read(1_000_000)
    reader.close()
    assert b"incomplete" not in end
    return size, lines, waited


def worker_of(master: int) -> int:
    """The process that serves requests: the child of the server that uses most memory."""
    return max(children_of(master), key=lambda pid: kilobytes(Path(f"/proc/{pid}")))


def kilobytes(process: Path) -> int:
    """The peak of its resident memory."""
    status = (process / "status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])
