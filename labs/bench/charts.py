"""Draws the charts of docs/benchmarks.md. Only `make bench` installs matplotlib."""

import logging
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

from labs.bench.measures import Measure, Rounds, Spread
from labs.bench.world import Sizes

logging.getLogger("matplotlib").setLevel(logging.WARNING)
mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "bench", "svg.fonttype": "none", "font.size": 9})
BLUE, GREY, RED = "#2563eb", "#94a3b8", "#dc2626"


def draw_ratios(measures: Sequence[Measure], rounds: Rounds, path: Path, *, sizes: Sizes) -> None:
    """Writes a bar chart of all measures, each relative to its target. A longer bar is better."""
    figure, axes = plt.subplots(figsize=(8, 0.34 * len(measures) + 0.8), layout="constrained")
    for place, measure in enumerate(reversed(measures)):
        result = measure.result(rounds)
        ends = [_better(measure, value) for value in (result.median, result.low, result.high)]
        colour = BLUE if measure.holds(result) else RED
        axes.barh(place, ends[0], color=colour, height=0.6)
        axes.plot([min(ends), max(ends)], [place, place], color="black", linewidth=1)
    axes.axvline(1, color="black", linestyle="--", linewidth=1)
    axes.set_yticks(range(len(measures)), [m.title(sizes) for m in reversed(measures)])
    axes.set_xlabel("target = 1; longer is better; the line spans the rounds")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _better(measure: Measure, value: float) -> float:
    return value / measure.target if measure.sign == ">=" else measure.target / value


def draw_rates(rounds: Rounds, path: Path) -> None:
    """Writes a bar chart of requests per second: the service in blue, other programs in grey."""
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
