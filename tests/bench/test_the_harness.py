"""`make bench` works: a tiny run of every kind of subject, and the report it writes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.load import find_wrk
from bench.measures import MEASURES, Measure, Spread
from bench.report import show_table
from bench.subjects import SUBJECTS
from config.embedded.environment import PROJECT

ONLY = ["floor", "fastapi", "drf", "replays", "order", "topups", "orders", "half-rate", "import"]


@pytest.mark.skipif(not find_wrk(), reason="wrk, the load generator, is not installed")
def test_a_tiny_run_ends_with_a_report(tmp_path: Path) -> None:
    report = tmp_path / "benchmarks.md"
    command = [sys.executable, "-m", "config.embedded", "exec", "--fast", "--", sys.executable]
    ran = subprocess.run(
        [*command, "-m", "bench", "--size=tiny", "--workers=1", f"--report={report}"]
        + [f"--only={name}" for name in ONLY],
        cwd=PROJECT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    text = report.read_text()
    assert text.count("| yes |") + text.count("| **no** |") == len(ONLY)
    for chart in ("bench-targets.svg", "bench-rates.svg"):
        assert chart in text
        assert (tmp_path / "images" / chart).read_text().startswith("<?xml")


def test_every_measure_has_its_figures() -> None:
    figures = {figure for subject in SUBJECTS for figure in subject.figures}
    assert {figure for measure in MEASURES for figure in measure.figures} <= figures
    assert len({measure.name for measure in MEASURES}) == len(MEASURES)


def test_a_ratio_is_taken_within_a_round() -> None:
    measure = Measure("x", "ours ÷ theirs", "ours", "theirs", ">=", 2)
    rounds = {"ours": [20.0, 100.0, 9.0], "theirs": [10.0, 40.0, 3.0]}
    assert measure.result(rounds) == Spread(median=2.5, low=2.0, high=3.0)
    assert measure.holds(measure.result(rounds))
    assert "| ours ÷ theirs | 2.50 | 2.00 to 3.00 | >= 2 | yes |" in show_table([measure], rounds)


def test_a_measure_that_misses_its_target_says_so() -> None:
    measure = Measure("x", "memory", "MB", None, "<=", 200)
    assert "| memory | 201 | 201 to 201 | <= 200 | **no** |" in show_table([measure], {"MB": [201]})
