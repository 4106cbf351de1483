"""The table, and docs/benchmarks.md with its charts."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.measures import Measure, Rounds, Spread
from bench.world import Sizes

logging.getLogger("matplotlib").setLevel(logging.WARNING)
mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "bench", "svg.fonttype": "none", "font.size": 9})
BLUE, GREY, RED = "#2563eb", "#94a3b8", "#dc2626"


def show_table(measures: Sequence[Measure], rounds: Rounds) -> str:
    """Markdown: one line per measure."""
    lines = ["| measure | median | lowest to highest | target | holds |", "|---|---|---|---|---|"]
    for measure in measures:
        result = measure.result(rounds)
        holds = "yes" if measure.holds(result) else "**no**"
        lines.append(
            f"| {measure.what} | {_number(result.median)} | {_spread(result)}"
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
    images = path.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    _draw_ratios(measures, rounds, images / "bench-targets.svg")
    _draw_rates(rounds, images / "bench-rates.svg")
    described = "\n".join(f"| {name} | {value} |" for name, value in machine.items())
    path.write_text(f"""\
# Benchmarks

Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}. Every number is the median of
{sizes.rounds} rounds with the lowest and the highest of them; each round runs every subject once,
for {sizes.seconds:g} seconds, and a ratio is taken within a round. `bench/__init__.py` is the way
into the code.

{show_table(measures, rounds)}

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
- {sizes.aged_codes:,} codes in stock were loaded by SQL with triggers off. {sizes.aged_orders:,}
  sales were made by the service's own SQL functions, a thousand to a transaction, and all belong
  to one client; their idempotency records are all still there.
- Medians of lists are of one connection: how long a request takes, not how many fit.
- wrk corrects its percentiles for requests that a slow answer held back. At half of the top rate
  requests follow a timetable.
""")


def _draw_ratios(measures: Sequence[Measure], rounds: Rounds, path: Path) -> None:
    """Each measure as a part of its target, so that all fit on one axis; the better, the longer."""
    figure, axes = plt.subplots(figsize=(8, 0.34 * len(measures) + 0.8), layout="constrained")
    for place, measure in enumerate(reversed(measures)):
        result = measure.result(rounds)
        ends = [_better(measure, value) for value in (result.median, result.low, result.high)]
        colour = BLUE if measure.holds(result) else RED
        axes.barh(place, ends[0], color=colour, height=0.6)
        axes.plot([min(ends), max(ends)], [place, place], color="black", linewidth=1)
    axes.axvline(1, color="black", linestyle="--", linewidth=1)
    axes.set_yticks(range(len(measures)), [measure.what for measure in reversed(measures)])
    axes.set_xlabel("target = 1; longer is better; the line spans the rounds")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _better(measure: Measure, value: float) -> float:
    return value / measure.target if measure.sign == ">=" else measure.target / value


def _draw_rates(rounds: Rounds, path: Path) -> None:
    rates = {name: Spread.of(values) for name, values in rounds.items() if name.endswith("/s")}
    rates |= {name: Spread.of(rounds[name]) for name in rounds if "purchases/s" in name}
    figure, axes = plt.subplots(figsize=(8, 0.34 * len(rates) + 0.8), layout="constrained")
    for place, (name, spread) in enumerate(reversed(rates.items())):
        ours = "peer" not in name and "pgbench" not in name
        axes.barh(place, spread.median, color=BLUE if ours else GREY, height=0.6)
        axes.plot([spread.low, spread.high], [place, place], color="black", linewidth=1)
    axes.set_yticks(range(len(rates)), list(reversed(rates)))
    axes.set_xlabel("per second; the line spans the rounds")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _spread(spread: Spread) -> str:
    return f"{_number(spread.low)} to {_number(spread.high)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
