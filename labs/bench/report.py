"""Writes the table of measures, and docs/benchmarks.md."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from labs.bench.measures import MEASURES, Measure, Rounds, Spread
from labs.bench.subjects import TIMES_AS_LONG
from labs.bench.world import Sizes

WITH_HISTORY = ("aged", "products", "orders", "orders-far")


def show_table(measures: Sequence[Measure], rounds: Rounds, *, sizes: Sizes) -> str:
    """A Markdown table with one row per measure."""
    lines = ["| measure | median | lowest to highest | target | holds |", "|---|---|---|---|---|"]
    for measure in measures:
        result = measure.result(rounds)
        holds = "yes" if measure.holds(result) else "**no**"
        lines.append(
            f"| {measure.title(sizes)} | {_number(result.median)} | {_spread(result)}"
            f" | {measure.sign} {measure.target:g} | {holds} |"
        )
    return "\n".join(lines)


def show_figures(rounds: Rounds) -> str:
    """A Markdown table with one row per figure."""
    lines = ["| figure | median | lowest to highest | runs |", "|---|---|---|---|"]
    for name, values in rounds.items():
        spread = Spread.of(values)
        lines.append(f"| {name} | {_number(spread.median)} | {_spread(spread)} | {len(values)} |")
    return "\n".join(lines)


def write_report(
    path: Path,
    measures: Sequence[Measure],
    rounds: Rounds,
    *,
    sizes: Sizes,
    machine: Mapping[str, str],
) -> None:
    described = "\n".join(f"| {name} | {value} |" for name, value in machine.items())
    path.write_text(f"""\
# Benchmarks

A **no** means that the median missed a target that we set ourselves, and nothing about a guarantee.
[The targets](performance.md#the-targets-of-the-benchmark) says why for the most important ones.
The load average before this run was {machine["load average before"]} on {machine["processor"]}.

Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}. Each round runs every subject once, for
{sizes.seconds:g} seconds, or for {TIMES_AS_LONG * sizes.seconds:g} if it compares two programs
that sell at the same time. A ratio compares two figures of the same round. The tables show the
median, the lowest and the highest value of {sizes.rounds} rounds. `labs/bench/__init__.py`
explains the code.

{show_table(measures, rounds, sizes=sizes)}
{_left_out(measures, sizes)}
## The figures behind the ratios

{show_figures(rounds)}

## What ran

| | |
|---|---|
{described}

- PostgreSQL, the cache, the load generator and the measured program share the processors of one
  machine. Absolute figures are valid for this machine only.
- wrk sends the load over HTTP: 16 connections, one code per purchase, 100 wallets, 50 shelves, and
  a new UUID as idempotency key for each purchase. Every part of the service is on: keys are looked
  up, requests are counted, codes and stored responses are encrypted, and all constraints and
  triggers are in place.
- Every purchase waits for the disk (`fsync`, `full_page_writes` and `synchronous_commit` are on).
  The settings of the database are PostgreSQL's defaults.
- pgbench and the peers use copies of the same tables, with the same indexes, checks and foreign
  keys, but without our triggers. `labs/bench/floor.sql` and `labs/bench/peers/` say what they leave
  out. With the service's own functions (`labs/bench/functions.sql`), pgbench uses its database: the
  ratio shows what HTTP and Python cost.
- The service and its peers run in granian with the same number of processes. The minimal FastAPI
  peer neither counts requests nor logs nor encrypts; the peer with the same duties does. At its
  first use each peer shows that it writes a purchase (`labs/bench/peers/check.py`).
- wrk corrects its percentiles for requests that a slow response delayed. At half of the top rate,
  requests are sent at fixed times.
{_history(measures, sizes)}""")


def _left_out(measures: Sequence[Measure], sizes: Sizes) -> str:
    """The measures that this run left out."""
    missing = [measure.title(sizes) for measure in MEASURES if measure not in measures]
    lines = [f"- {title}" for title in missing]
    return "\n".join(["", "Not part of this run:", "", *lines, ""]) if missing else ""


def _history(measures: Sequence[Measure], sizes: Sizes) -> str:
    """The way the many orders were made, if a measure used them."""
    if not any(measure.name in WITH_HISTORY for measure in measures):
        return ""
    return f"""\
- {sizes.aged_codes:,} codes in stock were loaded by SQL with triggers off. The SQL functions of the
  service made {sizes.aged_orders:,} purchases, a thousand per transaction. All these orders belong
  to one client, and none of their idempotency records has been cleaned up.
- The p50 of a list is measured with one connection: it is the duration of one request without
  competing requests.
"""


def _spread(spread: Spread) -> str:
    return f"{_number(spread.low)} to {_number(spread.high)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
