"""`make bench` runs every kind of subject and prints the table of measures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from labs.bench.measures import MEASURES, Measure, Spread
from labs.bench.report import show_table
from labs.bench.subjects import SUBJECTS
from labs.bench.world import TINY

ONLY = [
    *(
        "floor",
        "functions",
        "duties",
        "fastapi",
        "drf",
        "metrics",
        "records",
        "price-list",
        "replays",
    ),
    *("order", "topups", "orders-far", "half-rate", "beside-lists", "import"),
]


@pytest.mark.wrk
def test_a_tiny_run_prints_a_table_and_writes_the_page(tmp_path: Path) -> None:
    """Each peer shows that it writes a purchase (labs/bench/peers/check.py)."""
    page = tmp_path / "benchmarks.md"
    command = [sys.executable, "-m", "embedded", "exec", "--fast", "--", sys.executable]
    ran = subprocess.run(
        [*command, "-m", "labs.bench", "--size=tiny", "--workers=1", f"--report={page}"]
        + [f"--only={name}" for name in ONLY],
        cwd=PROJECT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("| yes |") + ran.stdout.count("| **no** |") == len(ONLY)
    assert f"page 1 of {TINY.little_orders:,}" in ran.stdout
    assert page.read_text().count("| yes |") == ran.stdout.count("| yes |")
    assert "| voucher purchases/s |" in page.read_text()


def test_every_measure_uses_figures_of_a_subject() -> None:
    figures = {figure for subject in SUBJECTS for figure in subject.figures}
    assert {figure for measure in MEASURES for figure in measure.figures} <= figures
    assert len({measure.name for measure in MEASURES}) == len(MEASURES)


def test_a_ratio_is_taken_within_a_round() -> None:
    measure = Measure("x", "ours ÷ theirs", "ours", "theirs", ">=", 2)
    rounds = {"ours": [20.0, 100.0, 9.0], "theirs": [10.0, 40.0, 3.0]}
    assert measure.result(rounds) == Spread(median=2.5, low=2.0, high=3.0)
    assert measure.holds(measure.result(rounds))
    assert "| ours ÷ theirs | 2.50 | 2.00 to 3.00 | >= 2 | yes |" in show_table(
        [measure], rounds, sizes=TINY
    )


def test_a_missed_target_is_marked() -> None:
    measure = Measure("x", "memory", "MB", None, "<=", 200)
    assert "| memory | 201 | 201 to 201 | <= 200 | **no** |" in show_table(
        [measure], {"MB": [201]}, sizes=TINY
    )
