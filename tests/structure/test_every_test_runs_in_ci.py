"""CI runs every test: what `make test` leaves out, `make system-test` runs."""

import re
import subprocess

import pytest

from embedded.environment import PROJECT


def recipe(target: str) -> list[str]:
    """The words of the command that `make TARGET` would run."""
    shown = subprocess.run(
        [
            "make",
            "--dry-run",
            "--old-file=.venv/dev.stamp",
            "--old-file=.venv/release.stamp",
            target,
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.replace("\\\n", " ").split()


def test_the_two_targets_together_run_every_test() -> None:
    left_out = {word.removeprefix("--ignore=") for word in recipe("test") if "--ignore=" in word}
    run = {word for word in recipe("system-test") if word.startswith(("labs", "tests/"))}
    assert left_out == run
    assert [path for path in run if not (PROJECT / path).exists()] == []
    assert not {"-k", "-m"} & set(recipe("test")[recipe("test").index("pytest") :])


@pytest.mark.parametrize("target", ["test", "system-test"])
def test_ci_runs_both(target: str) -> None:
    script = (PROJECT / ".ci" / "run").read_text()
    assert re.search(rf"^make {target}$", script, re.MULTILINE)
