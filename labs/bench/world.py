"""The benchmark databases, each loaded once, and the programs that serve them.

start     a new service: codes in stock, nothing sold
aged      ten million codes in stock, a million sold in a million orders of one client
thick     a hundred orders of 99 codes each of one client, and codes in stock
little    ten thousand codes in stock, a thousand orders of one client
peers     a copy of `start` for pgbench and the peers: the same tables, indexes, checks and foreign
          keys, but no triggers, because the peers do that work themselves
"""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from embedded.environment import PROJECT
from embedded.processes import Process, free_port
from embedded.screen import Screen
from labs.bench.data import (
    COLLECTOR,
    MERCHANTS,
    SHELVES,
    WITH_PRICE_LIST,
    Keys,
    add_price_list,
    load_codes,
    load_merchants_and_catalogue,
    register_keys,
    sell,
    vacuum,
)
from labs.bench.load import BenchError, Load, run_load
from labs.bench.peers.check import check_peer

START_TIMEOUT = 60.0  # seconds
ORDERS_TO_READ = 2000
THICK_ORDERS, THICK_CODES = 100, 99  # the largest page of orders
SERVICE = ("--interface=wsgi", "config.wsgi:application")
UNMETERED = ("--interface=wsgi", "labs.bench.peers.unmetered:application")
ASGI = ("--interface=asgi", "--loop=uvloop")
PEERS = {
    "fastapi": (*ASGI, "labs.bench.peers.fastapi_peer:application"),
    "duties": (*ASGI, "labs.bench.peers.fastapi_duties_peer:application"),
    "drf": ("--interface=wsgi", "labs.bench.peers.drf_peer:application"),
}

screen = Screen()


@dataclass(frozen=True)
class Sizes:
    """The amount of data and the length of the runs."""

    seconds: float
    rounds: int
    start_codes: int
    hot_codes: int
    aged_codes: int
    aged_orders: int
    little_codes: int
    little_orders: int
    imported: int
    remembered: tuple[int, int]  # the memory of a worker is compared after these two counts
    warm: bool = True  # whether each subject runs once before the first round

    @property
    def far_page(self) -> int:
        """A page at the far end of the list: page 10,000 of a million orders."""
        return max(1, self.aged_orders // 100)


# Short runs in many rounds: other load on the machine then affects all subjects of a round. A round
# sells up to 120,000 of the codes at the start.
FULL = Sizes(
    4, 9, 1_500_000, 100_000, 10_000_000, 1_000_000, 10_000, 1_000, 1_000_000, (1_000, 100_000)
)
QUICK = Sizes(2, 2, 100_000, 20_000, 100_000, 10_000, 10_000, 1_000, 50_000, (200, 2_000))
TINY = Sizes(1, 1, 50_000, 10_000, 20_000, 100, 100, 10, 1_000, (20, 100), warm=False)


@dataclass
class Site:
    """A database and the program that serves it. `data` is the Lua file for the load generator.

    PostgreSQL knows the program's connections by `name`.
    """

    name: str
    database: str
    port: int
    data: Path
    process: Process

    def load(self, kind: str, **settings: float | str | Path) -> Load:
        """Runs the load generator against the program; see `run_load`."""
        return run_load(kind, port=self.port, **{"data": self.data, **settings})  # type: ignore[arg-type]

    def worker_memory(self) -> float:
        """The average resident memory of the workers, in MB."""
        sizes = [_resident_mb(pid) for pid in self._workers()]
        return sum(sizes) / len(sizes)

    def processor_seconds(self) -> dict[int, float]:
        """The processor time of the program so far, and of the database for its connections.

        By process. Leaves out closed connections, and what PostgreSQL does for all of them, such as
        vacuuming.
        """
        with psycopg.connect(self.database) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = %s", [self.name]
            ).fetchall()
        processes = [self.process.pid, *self._workers(), *(pid for (pid,) in rows)]
        return {pid: _processor_seconds(pid) for pid in processes}

    def _workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]


@dataclass
class World:
    """Databases and programs, each created on first use. `make_world` stops the programs."""

    sizes: Sizes
    folder: Path
    workers: int
    threads: int
    _stack: ExitStack
    top_rate: float | None = None  # voucher purchases per second of the last run
    peer_rate: float | None = None  # the same of the peer with the same duties
    replayable: int | None = None  # number of purchases in the sequence that is replayed
    _databases: dict[str, str] = field(default_factory=dict)
    _sites: dict[str, Site] = field(default_factory=dict)
    _keys: Keys | None = None
    _checked: set[str] = field(default_factory=set)

    def database(self, name: str) -> str:
        """The URL of a database, which is created and loaded on first use."""
        if name not in self._databases:
            with screen.step(f"database {name}"):
                self._databases[name] = self._load(name)
        return self._databases[name]

    def service(self, name: str, *, workers: int | None = None) -> Site:
        """The service on the database of this name."""
        return self._site(name, name, SERVICE, workers or self.workers)

    def one_process(self) -> Site:
        """The service on the database `start`, to compare with the following three."""
        return self._site("one process", "start", SERVICE, 1)

    def unmetered(self) -> Site:
        """The same without its metrics."""
        return self._site("unmetered", "start", UNMETERED, 1)

    def unrecorded(self) -> Site:
        """The same without request records."""
        return self._site("unrecorded", "start", SERVICE, 1, "labs.bench.peers.unrecorded_settings")

    def with_price_list(self) -> Site:
        """The same. Its load generator buys for merchants with a price list."""
        site = self._site("price list", "start", SERVICE, 1)
        return replace(site, data=self._write_table("price_list", "", clients=WITH_PRICE_LIST))

    def peer(self, name: str) -> Site:
        """A peer on the database `peers`. On first use, it shows that it writes a purchase."""
        site = self._site(name, "peers", PEERS[name], self.workers)
        if name not in self._checked:
            check_peer(
                port=site.port,
                database=site.database,
                client=1,
                bearer=json.loads(self._bearer(1)),
                key=name,
                duties=name == "duties",
            )
            self._checked.add(name)
        return site

    def orders_to_read(self, site: Site) -> Path:
        """The path of a Lua file for the load generator with orders of many clients. The service
        cannot open those of functions.sql, whose references have digits only."""
        with psycopg.connect(site.database) as connection:
            rows = connection.execute(
                "SELECT client_id, reference FROM orders_order WHERE client_id <> %s"
                " AND reference ~ '[A-Z]' LIMIT %s",
                [COLLECTOR, ORDERS_TO_READ],
            ).fetchall()
        orders = [
            f"{{{self._bearer(client)}, {json.dumps(reference)}}}" for client, reference in rows
        ]
        return self._write_table("orders", f"orders = {{{', '.join(orders)}}}")

    def _load(self, name: str) -> str:
        sizes = self.sizes
        match name:
            case "template":
                url = self._create(name)
                _manage("migrate", "--verbosity=0", url=url)
                register_keys(url)
                self._keys = load_merchants_and_catalogue(url, merchants=WITH_PRICE_LIST[-1] - 1)
                add_price_list(url)
                return url
            case "start":
                url = self._create(name, like="template")
                load_codes(url, sizes.start_codes, hot=sizes.hot_codes)
            case "peers":
                url = self._create(name, like="start")
                with psycopg.connect(url) as connection:
                    _disable_triggers(connection)
                    _disable_sequential_scans(connection)
            case "aged":
                url = self._create(name, like="template")
                load_codes(url, sizes.aged_codes + sizes.aged_orders)
                vacuum(url)
                sell(url, sizes.aged_orders)
            case "little":
                url = self._create(name, like="template")
                load_codes(url, sizes.little_codes + sizes.little_orders)
                sell(url, sizes.little_orders)
            case "thick":
                url = self._create(name, like="template")
                load_codes(url, THICK_ORDERS * THICK_CODES + sizes.start_codes)
                sell(url, THICK_ORDERS, quantity=THICK_CODES)
            case _:
                raise ValueError(name)
        vacuum(url)
        return url

    def _create(self, name: str, like: str | None = None) -> str:
        """Creates an empty database, or a copy of the database `like`. Returns its URL."""
        if like:
            self.database(like)
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
            sql.Identifier(f"bench_{name}"),
            sql.Identifier(f"bench_{like}" if like else "template1"),
        )
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(statement)
        parts = urlsplit(os.environ["DATABASE_URL"])
        return urlunsplit(parts._replace(path=f"/bench_{name}"))

    def _site(
        self,
        name: str,
        database: str,
        program: Sequence[str],
        workers: int,
        settings: str = "config.settings_api",  # the peers set their own
    ) -> Site:
        key = f"{name} {workers}"
        if key not in self._sites:
            self.database("peers")  # a database with open connections cannot be copied
            port = free_port()
            environment = {
                **os.environ,
                **database_roles(self.database(database)),
                "DJANGO_SETTINGS_MODULE": settings,
                "GRANIAN_WORKERS": str(workers),
                "METRICS_DIR": str(self.folder / "metrics"),
                "PGAPPNAME": key,
            }
            if "--interface=wsgi" in program:
                program = [f"--blocking-threads={self.threads}", *program]
            process = self._stack.enter_context(
                _serving(
                    program, port=port, environment=environment, log=self.folder / f"{key}.log"
                )
            )
            self._sites[key] = Site(key, self.database(database), port, self._table(), process)
        return self._sites[key]

    def _table(self) -> Path:
        """The path of the Lua file for the load generator."""
        return self._write_table("base", "")

    def _write_table(
        self, name: str, more: str, *, clients: Sequence[int] = range(1, MERCHANTS + 1)
    ) -> Path:
        bearers = ", ".join(self._bearer(client) for client in clients)
        numbers = range(1, SHELVES + 1)
        path = self.folder / f"{name}.lua"
        path.write_text(
            f"return {{ bearers = {{{bearers}}}, collector = {self._bearer(COLLECTOR)},\n"
            f"products = {{{', '.join(map(str, numbers))}}},\n"
            f"topups = {{{', '.join(f'{{id = {n}, field = 1}}' for n in numbers)}}},\n{more} }}\n"
        )
        return path

    def _bearer(self, client: int) -> str:
        assert self._keys is not None
        return f'"Bearer {self._keys.by_client[client]}"'


@contextmanager
def make_world(sizes: Sizes, folder: Path, *, workers: int, threads: int) -> Iterator[World]:
    """A world whose programs are stopped at the end of the block."""
    with ExitStack() as stack:
        yield World(sizes, folder, workers, threads, stack)


@contextmanager
def _serving(
    program: Sequence[str], *, port: int, environment: Mapping[str, str], log: Path
) -> Iterator[Process]:
    with log.open("wb") as output:
        process = Process(
            "web",
            [
                *(sys.executable, "-m", "granian", "--no-ws", "--log-level=error"),
                *("--host=127.0.0.1", f"--port={port}", "--runtime-threads=1"),
                *("--blocking-threads-idle-timeout=600", *program),
            ],
            environment=environment,
            folder=PROJECT,
            output=output,
        )
        try:
            _wait_until_ready(process, port, log)
            yield process
        finally:
            process.stop()


def _wait_until_ready(process: Process, port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while process.exit_code() is None and time.monotonic() < deadline:
        probe = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            probe.request("GET", "/healthz")
            if probe.getresponse().status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        finally:
            probe.close()
    raise BenchError(f"{log.stem} does not respond:\n{log.read_text(errors='replace')[-2000:]}")


def database_roles(url: str) -> dict[str, str]:
    """The environment of a process that works on this database with the role of the service.

    `url` names the owner, for `migrate`.
    """
    service = urlsplit(os.environ["SERVICE_DATABASE_URL"]).netloc.rpartition("@")[0]
    at = urlsplit(url)
    netloc = f"{service}@{at.netloc.rpartition('@')[2]}"
    return {
        "DATABASE_URL": at._replace(netloc=netloc).geturl(),
        "MIGRATION_DATABASE_URL": url,
    }


def _manage(*arguments: str, url: str) -> None:
    subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env={**os.environ, **database_roles(url)},
        check=True,
    )


def _disable_triggers(connection: "psycopg.Connection[tuple[str, ...]]") -> None:
    """Disables our own triggers; foreign keys are still checked."""
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for (table,) in tables.fetchall():
        connection.execute(
            sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier(table))
        )


def _disable_sequential_scans(connection: "psycopg.Connection[tuple[str, ...]]") -> None:
    """Sets enable_seqscan = off, as our SQL functions do: a kept plan must suit large tables."""
    connection.execute(
        sql.SQL("ALTER DATABASE {} SET enable_seqscan = off").format(
            sql.Identifier(connection.info.dbname)
        )
    )


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _processor_seconds(pid: int) -> float:
    """The processor time of the living threads of a process."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9
