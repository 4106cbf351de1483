"""The measures: a figure, or the ratio of two figures of one round, each with a target."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from labs.bench.world import Sizes

VOUCHERS = "voucher purchases/s"
PING = "GET /ping/s"
Rounds = Mapping[str, Sequence[float]]
COMPARE: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le}


@dataclass(frozen=True)
class Spread:
    """The median, the lowest and the highest value of several rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True)
class Measure:
    """A figure, or the ratio `figure` ÷ `over`, compared with a target by `sign`.

    `name` is the argument of `--only`. `what` may contain sizes, such as {s.aged_orders:,}.
    """

    name: str
    what: str
    figure: str
    over: str | None
    sign: str
    target: float

    @property
    def figures(self) -> set[str]:
        return {self.figure} | ({self.over} if self.over else set())

    def title(self, sizes: Sizes) -> str:
        """The description of the measure, with the sizes of this run."""
        return self.what.format(s=sizes)

    def result(self, rounds: Rounds) -> Spread:
        """The figure, or the ratio of each round, over all rounds."""
        values = rounds[self.figure]
        if self.over is None:
            return Spread.of(values)
        pairs = zip(values, rounds[self.over], strict=False)
        return Spread.of([value / over for value, over in pairs])

    def holds(self, result: Spread) -> bool:
        return COMPARE[self.sign](result.median, self.target)


MEASURES = [
    Measure("floor", "voucher purchases ÷ the same writes by pgbench", VOUCHERS,
            "pgbench, the same writes/s", ">=", 0.47),
    Measure("functions", "voucher purchases ÷ the service's own functions by pgbench", VOUCHERS,
            "pgbench, the service's functions/s", ">=", 0.5),
    Measure("duties", "voucher purchases ÷ FastAPI and asyncpg with the same duties", VOUCHERS,
            "FastAPI peer with the same duties, purchases/s", ">=", 1.15),
    Measure("fastapi", "voucher purchases ÷ the minimal FastAPI and asyncpg peer", VOUCHERS,
            "FastAPI peer purchases/s", ">=", 1.1),
    Measure("drf", "voucher purchases ÷ ordinary DRF and ORM", VOUCHERS,
            "DRF peer purchases/s", ">=", 6),
    Measure("metrics", "processor time of a purchase ÷ without metrics, at the same time",
            "with metrics, ms", "without metrics, ms", "<=", 1.03),
    Measure("records", "processor time of a purchase ÷ without request records, at the same time",
            "with request records, ms", "without request records, ms", "<=", 1.02),
    Measure("price-list",
            "processor time of a purchase with a price list ÷ without one, at the same time",
            "with a price list, ms", "without a price list, ms", "<=", 1.05),
    Measure("replays", "replays ÷ GET /ping", "replays/s", PING, ">=", 0.8),
    Measure("order", "GET /orders/{{reference}} ÷ GET /ping", "GET /orders/{reference}/s", PING,
            ">=", 0.8),
    Measure("hot-wallet", "purchases of one wallet ÷ of 100 wallets",
            "one hot wallet, purchases/s", VOUCHERS, ">=", 0.7),
    Measure("hot-shelf", "purchases from one shelf ÷ from 50 shelves",
            "one hot shelf, purchases/s", VOUCHERS, ">=", 0.7),
    Measure("aged", "purchases after {s.aged_orders:,} sales ÷ at the start",
            "purchases/s after many sales", VOUCHERS, ">=", 0.95),
    Measure("products", "GET /products p50 with {s.aged_codes:,} codes ÷ with {s.little_codes:,}",
            "GET /products p50, much stock, ms", "GET /products p50, little stock, ms", "<=", 1.2),
    Measure("orders", "GET /orders p50 with {s.aged_orders:,} orders ÷ with {s.little_orders:,}",
            "GET /orders p50, many orders, ms", "GET /orders p50, few orders, ms", "<=", 1.2),
    Measure("orders-far",
            "GET /orders p50, page {s.far_page:,} of {s.aged_orders:,} orders ÷ page 1 of"
            " {s.little_orders:,}",
            "GET /orders p50, many orders, far page, ms", "GET /orders p50, few orders, ms",
            "<=", 1.2),
    Measure("import",
            "import_codes of {s.imported:,} rows ÷ COPY of the same rows, sealed beforehand, into"
            " the same tables",
            "import_codes, s", "COPY of sealed rows, s", "<=", 1.5),
    Measure("import-memory", "import_codes, peak memory in MB", "import_codes, peak MB", None,
            "<=", 200),
    Measure("topups", "top-up purchases ÷ voucher purchases", "top-up purchases/s", VOUCHERS,
            ">=", 0.95),
    Measure("half-rate", "p99 ÷ p50 of purchases at half of the top rate", "p99 at half rate, ms",
            "p50 at half rate, ms", "<=", 3),
    Measure("half-rate-peer",
            "p99 at half of the top rate ÷ of FastAPI and asyncpg with the same duties, at half of"
            " its own", "p99 at half rate, ms", "peer p99 at half rate, ms", "<=", 1),
    Measure("beside-lists",
            "p95 of purchases beside six connections of another client that read 100 orders of 99"
            " codes ÷ alone",
            "purchase p95 beside lists of orders, ms", "purchase p95 alone, ms", "<=", 2),
    Measure("memory",
            "a worker's memory after {s.remembered[1]:,} purchases ÷ after {s.remembered[0]:,}",
            "worker memory late, MB", "worker memory early, MB", "<=", 1.1),
]  # fmt: skip
