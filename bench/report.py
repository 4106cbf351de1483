"""The table, and docs/benchmarks.md with its charts."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.measures import MEASURES, Measure, Rounds, Spread
from bench.world import Sizes

WITH_HISTORY = ("aged", "products", "orders", "orders-far")


def show_table(measures: Sequence[Measure], rounds: Rounds, *, sizes: Sizes) -> str:
    """Markdown: one line per measure."""
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
    """Markdown: the figures behind the ratios."""
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
    """Writes the report, and its charts into `images` beside it."""
    from bench import charts  # noqa: PLC0415  nothing but a report needs what draws them

    images = path.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    charts.draw_ratios(measures, rounds, images / "bench-targets.svg", sizes=sizes)
    charts.draw_rates(rounds, images / "bench-rates.svg")
    described = "\n".join(f"| {name} | {value} |" for name, value in machine.items())
    path.write_text(f"""\
# Benchmarks

Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}. Every number is the median of
{sizes.rounds} rounds with the lowest and the highest of them; each round runs every subject once,
for {sizes.seconds:g} seconds, and a ratio is taken within a round. `bench/__init__.py` is the way
into the code.

{show_table(measures, rounds, sizes=sizes)}
{_left_out(measures, sizes)}
![How far each measure is from its target](images/bench-targets.svg)

## The figures behind the ratios

{show_figures(rounds)}

![Requests per second](images/bench-rates.svg)

## What ran

| | |
|---|---|
{described}

- PostgreSQL, the cache, the load generator and the program under test share the machine, so every
  microsecond counts, of whichever of them. Absolute figures are of this machine only.
- The load is wrk over HTTP: 16 connections, one code per purchase, 100 wallets, 50 shelves, a new
  UUID as idempotency key for each. Nothing of the service is switched off: keys are looked up,
  requests counted, codes and answers encrypted, every constraint and trigger in place.
- The database waits for the disk with every purchase (`fsync`, `full_page_writes` and
  `synchronous_commit` are on); its settings are PostgreSQL's defaults.
- pgbench and the peers work on copies of the same tables with the same indexes, checks and foreign
  keys, and without our triggers. `bench/floor.sql` and `bench/peers/` say what they leave out.
- The service and its peers run in granian, with as many processes each.
- wrk corrects its percentiles for requests that a slow answer held back. At half of the top rate
  requests follow a timetable.
{_history(measures, sizes)}""")


def _left_out(measures: Sequence[Measure], sizes: Sizes) -> str:
    """What a run of some measures did not measure."""
    missing = [measure.title(sizes) for measure in MEASURES if measure not in measures]
    lines = [f"- {title}" for title in missing]
    return "\n".join(["", "Not part of this run:", "", *lines, ""]) if missing else ""


def _history(measures: Sequence[Measure], sizes: Sizes) -> str:
    """How the long history was made, where one was measured."""
    if not any(measure.name in WITH_HISTORY for measure in measures):
        return ""
    return f"""\
- {sizes.aged_codes:,} codes in stock were loaded by SQL with triggers off. {sizes.aged_orders:,}
  sales were made by the service's own SQL functions, a thousand to a transaction, and all belong
  to one client; their idempotency records are all still there.
- Medians of lists are of one connection: how long a request takes, not how many fit.
"""


def _spread(spread: Spread) -> str:
    return f"{_number(spread.low)} to {_number(spread.high)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
