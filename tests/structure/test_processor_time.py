"""A run of tests reports its processor time by folder, and CI fails over its budget."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.environment import PROJECT

BUSY = """import time


def test_computes() -> None:
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
"""


@pytest.mark.parametrize(
    ("budget", "in_ci", "processes", "code"),
    [("0.2", True, "-n1", 1), ("0.2", False, "-n0", 0), ("60", True, "-n0", 0)],
)
def test_ci_fails_over_the_budget(
    tmp_path: Path, budget: str, in_ci: bool, processes: str, code: int
) -> None:
    place = tmp_path / "tests" / "busy"
    place.mkdir(parents=True)
    (place / "test_busy.py").write_text(BUSY)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "xdist", "-p", "tests.processor_time"),
            *(processes, f"--budget={budget}", "tests"),
        ],
        cwd=tmp_path,
        env={
            **environment,
            "PYTHONPATH": str(PROJECT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **({"CI": "true"} if in_ci else {}),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == code, done.stdout + done.stderr
    assert "Processor time: " in done.stdout
    assert "tests/busy 0" in done.stdout
    assert ("exceeds the budget" in done.stdout) == (budget == "0.2")
