"""The subjects: each prepares its data, makes one short run and returns its figures.

The report shows a figure under its name, such as "voucher purchases/s".
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psycopg

from embedded.environment import PROJECT
from labs.bench.data import FreshCodes, key_ids, wait_until_idle
from labs.bench.floor import FLOOR, FUNCTIONS, run_pgbench
from labs.bench.load import CONNECTIONS, BenchError, Load
from labs.bench.world import Site, World, database_roles

Figures = dict[str, float]
READERS = 6
ALONE = "purchase p95 alone, ms"
BESIDE_LISTS = "purchase p95 beside lists of orders, ms"
LIST_CONNECTIONS = 1  # measures the duration of one request without competing requests
TIMES_AS_LONG = 5  # as other subjects: two programs that sell at the same time
LAST_RECORDS = 6.0  # seconds until the last request records are written
TRIES = 3


@dataclass(frozen=True)
class Subject:
    """A repeatable run that returns these figures."""

    run: Callable[[World], Figures]
    figures: tuple[str, ...]
    rounds: int | None = None  # the most rounds, for a subject that takes long
    warm: bool = True  # whether a run before the first round warms up the caches


SUBJECTS: list[Subject] = []


def subject(
    *figures: str, rounds: int | None = None, warm: bool = True
) -> Callable[[Callable[[World], Figures]], Subject]:
    """Decorator: registers a function as the subject that returns these figures."""

    def register(run: Callable[[World], Figures]) -> Subject:
        SUBJECTS.append(Subject(run, figures, rounds, warm))
        return SUBJECTS[-1]

    return register


def _purchases(site: Site, kind: str, world: World) -> float:
    """Purchases per second. Raises BenchError when the database does not have all the orders."""
    before = _orders(site)
    load = site.load(kind, seconds=world.sizes.seconds)
    _compare(load.requests, _orders(site) - before)
    return load.per_second


def _compare(responses: int, orders: int) -> None:
    """Raises BenchError unless each response has its order. The last responses were not awaited."""
    if not responses <= orders <= responses + 2 * CONNECTIONS:
        raise BenchError(f"{responses} responses, but {orders} orders")


def _orders(site: Site) -> int:
    with psycopg.connect(site.database) as connection:
        rows = connection.execute("SELECT sum(orders) FROM orders_clientcounter").fetchone()
    return int(rows[0] or 0) if rows else 0


@subject("pgbench, the same writes/s")
def floor(world: World) -> Figures:
    tps = run_pgbench(world.database("peers"), FLOOR, seconds=world.sizes.seconds)
    return {"pgbench, the same writes/s": tps}


@subject("pgbench, the service's functions/s")
def functions(world: World) -> Figures:
    url, seconds = start(world).database, world.sizes.seconds
    tps = run_pgbench(url, FUNCTIONS, seconds=seconds, keys=key_ids())
    return {"pgbench, the service's functions/s": tps}


@subject("voucher purchases/s")
def vouchers(world: World) -> Figures:
    rate = _purchases(start(world), "voucher", world)
    world.top_rate = rate
    return {"voucher purchases/s": rate}


@subject("with metrics, ms", "without metrics, ms")
def metrics(world: World) -> Figures:
    sites = {"with metrics, ms": world.one_process(), "without metrics, ms": world.unmetered()}
    return _side_by_side(sites, world)


@subject("with request records, ms", "without request records, ms")
def records(world: World) -> Figures:
    site, without = world.one_process(), world.unrecorded()
    sites = {"with request records, ms": site, "without request records, ms": without}
    return _side_by_side(sites, world)


@subject("with a price list, ms", "without a price list, ms")
def price_lists(world: World) -> Figures:
    sites = {
        "with a price list, ms": world.with_price_list(),
        "without a price list, ms": world.one_process(),
    }
    return _side_by_side(sites, world)


def _side_by_side(sites: dict[str, Site], world: World) -> Figures:
    """The processor time of a purchase at each site, in ms, while all of them sell.

    The speed of a machine changes by more than the few percent that are measured here. Programs
    that run at the same time meet the same speed. Each is one process: the connections spread over
    several unevenly, which changes what a purchase costs. What is written after a purchase is
    measured too. All sites sell from the same database.
    """
    for _ in range(TRIES):
        figures = _sell_side_by_side(sites, world)
        if figures is not None:
            return figures
    raise BenchError(f"connections closed during each of {TRIES} runs")


def _sell_side_by_side(sites: dict[str, Site], world: World) -> Figures | None:
    """None if a process ended, such as that of a connection: nobody knows what time it took."""
    any_site = next(iter(sites.values()))
    orders_before = _orders(any_site)
    before = {figure: site.processor_seconds() for figure, site in sites.items()}
    seconds = TIMES_AS_LONG * world.sizes.seconds
    settings = {"seconds": seconds, "connections": CONNECTIONS // len(sites)}
    with ThreadPoolExecutor(len(sites)) as pool:
        loads = {
            figure: pool.submit(site.load, "voucher", **settings) for figure, site in sites.items()
        }
    requests = {figure: load.result().requests for figure, load in loads.items()}
    _compare(sum(requests.values()), _orders(any_site) - orders_before)
    time.sleep(LAST_RECORDS)
    after = {figure: site.processor_seconds() for figure, site in sites.items()}
    if any(before[figure].keys() - after[figure].keys() for figure in sites):
        return None
    return {
        figure: 1000
        * sum(seconds - before[figure].get(pid, 0) for pid, seconds in after[figure].items())
        / requests[figure]
        for figure in sites
    }


def sales(figure: str, site: Callable[[World], Site], kind: str = "voucher") -> None:
    """Registers a subject that only sells this kind at a site."""
    subject(figure)(lambda world: {figure: _purchases(site(world), kind, world)})


def start(world: World) -> Site:
    return world.service("start")


sales("FastAPI peer purchases/s", lambda world: world.peer("fastapi"))


@subject("FastAPI peer with the same duties, purchases/s")
def duties(world: World) -> Figures:
    world.peer_rate = rate = _purchases(world.peer("duties"), "voucher", world)
    return {"FastAPI peer with the same duties, purchases/s": rate}


sales("DRF peer purchases/s", lambda world: world.peer("drf"))


@subject("GET /ping/s")
def ping(world: World) -> Figures:
    load = start(world).load("ping", seconds=world.sizes.seconds)
    return {"GET /ping/s": load.per_second}


@subject("replays/s")
def replays(world: World) -> Figures:
    """Makes the purchases of one seed once, then sends the same requests again in a cycle."""
    site, seed = start(world), 20_260_101
    if world.replayable is None:
        primed = site.load("voucher", seconds=world.sizes.seconds, seed=seed)
        world.replayable = primed.requests - 2 * CONNECTIONS
    settings = {"seed": seed, "cycle": world.replayable}
    before = _orders(site)
    load = site.load("voucher", seconds=world.sizes.seconds, **settings)
    if _orders(site) - before > CONNECTIONS:
        raise BenchError("requests that should have been replays made purchases")
    return {"replays/s": load.per_second}


@subject("GET /orders/{reference}/s")
def reading(world: World) -> Figures:
    site = start(world)
    if not _orders(site):
        site.load("voucher", seconds=world.sizes.seconds)
    load = site.load("order", data=world.orders_to_read(site), seconds=world.sizes.seconds)
    return {"GET /orders/{reference}/s": load.per_second}


sales("one hot wallet, purchases/s", start, "hot_wallet")
sales("one hot shelf, purchases/s", start, "hot_shelf")
sales("top-up purchases/s", start, "topup")
sales("purchases/s after many sales", lambda world: world.service("aged"))


@subject("p50 at half rate, ms", "p99 at half rate, ms")
def half_rate(world: World) -> Figures:
    load = _at_half_rate(start(world), world.top_rate, world)
    return {"p50 at half rate, ms": load.p50, "p99 at half rate, ms": load.p99}


@subject("peer p50 at half rate, ms", "peer p99 at half rate, ms")
def peer_at_half_rate(world: World) -> Figures:
    """The peer with the same duties, at half of its own top rate."""
    load = _at_half_rate(world.peer("duties"), world.peer_rate, world)
    return {"peer p50 at half rate, ms": load.p50, "peer p99 at half rate, ms": load.p99}


def _at_half_rate(site: Site, top_rate: float | None, world: World) -> Load:
    rate = top_rate or site.load("voucher", seconds=world.sizes.seconds).per_second
    return site.load("voucher", seconds=2 * world.sizes.seconds, rate=rate / 2)


@subject(ALONE, BESIDE_LISTS)
def beside_lists(world: World) -> Figures:
    """One merchant buys, alone and while another reads the largest page of orders all the time."""
    site, seconds = world.service("thick"), world.sizes.seconds
    alone = site.load("hot_wallet", seconds=seconds, connections=1)
    with ThreadPoolExecutor(1) as pool:
        lists = pool.submit(
            site.load, "orders", seconds=seconds + 2, connections=READERS, page=1, per_page=100
        )
        time.sleep(1)
        beside = site.load("hot_wallet", seconds=seconds, connections=1)
        lists.result()
    return {ALONE: alone.p95, BESIDE_LISTS: beside.p95}


def median(figure: str, database: str, kind: str, *, far: bool = False) -> None:
    """Registers a subject that measures the duration of one request for a list."""

    def run(world: World) -> Figures:
        page = {"page": world.sizes.far_page if far else 1} if kind == "orders" else {}
        seconds, connections = world.sizes.seconds / 2, LIST_CONNECTIONS
        site = world.service(database)
        return {figure: site.load(kind, seconds=seconds, connections=connections, **page).p50}

    subject(figure)(run)


median("GET /products p50, much stock, ms", "aged", "products")
median("GET /products p50, little stock, ms", "little", "products")
median("GET /orders p50, many orders, ms", "aged", "orders")
median("GET /orders p50, many orders, far page, ms", "aged", "orders", far=True)
median("GET /orders p50, few orders, ms", "little", "orders")

_codes = FreshCodes()


@subject("import_codes, s", "import_codes, peak MB", "COPY of sealed rows, s", rounds=3, warm=False)
def imports(world: World) -> Figures:
    """Imports a file with `import_codes`, and as many rows, sealed beforehand, with COPY."""
    path, url = world.folder / "codes", world.database("little")
    try:
        _codes.write_sealed(path, world.sizes.imported)
        copied = _copy_seconds(path, world.sizes.imported, url)
        _codes.write(path, world.sizes.imported)
        wait_until_idle(url)
        seconds, peak = _import(path, url)
    finally:
        path.unlink()
    return {
        "import_codes, s": seconds,
        "import_codes, peak MB": peak,
        "COPY of sealed rows, s": copied,
    }


def _copy_seconds(path: Path, number: int, url: str) -> float:
    """The duration of COPY into the table of codes and of the change of stock, with commit."""
    since = time.perf_counter()
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        with (
            path.open("rb") as file,
            cursor.copy("COPY catalogue_vouchercode (shelf_id, sealed, digest) FROM STDIN") as copy,
        ):
            while part := file.read(1 << 18):
                copy.write(part)
        cursor.execute(
            "UPDATE catalogue_shelf SET available_stock = available_stock + %s WHERE id = 1",
            [number],
        )
    return time.perf_counter() - since


def _import(path: Path, url: str) -> tuple[float, float]:
    """The duration of the command in seconds, and its peak resident memory in MB."""
    since = time.perf_counter()
    command = [sys.executable, "manage.py", "import_codes", "1", str(path)]
    environment = {**os.environ, **database_roles(url)}
    child = subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise BenchError(f"import_codes failed: {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - since, used.ru_maxrss / 1024


@subject("worker memory early, MB", "worker memory late, MB", rounds=1, warm=False)
def memory(world: World) -> Figures:
    """Measures the memory of a single worker, which then makes every purchase."""
    early, late = world.sizes.remembered
    site = world.service("start", workers=1)
    at_early = _memory_after(site, early)
    return {
        "worker memory early, MB": at_early,
        "worker memory late, MB": _memory_after(site, late - early),
    }


def _memory_after(site: Site, purchases: int) -> float:
    wanted = _orders(site) + purchases
    while (missing := wanted - _orders(site)) > 0:
        site.load("voucher", seconds=min(10, max(0.5, missing / 500)))
    return site.worker_memory()
