"""CI runs every test: what `make test` leaves out, `make system-test` runs."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import longest_files, pytest_collection_modifyitems
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


def exists(test: str) -> bool:
    """Whether there is this file or folder, or this function in its file. `--deselect` leaves out
    each function whose name begins so, and the other target would run only one."""
    path, _, name = test.partition("::")
    file = PROJECT / path
    if not name:
        return file.exists()
    return re.findall(rf"^def ({name}\w*)", file.read_text(), re.MULTILINE) == [name]


def test_the_two_targets_together_run_every_test() -> None:
    left_out = {
        word.partition("=")[2]
        for word in recipe("test")
        if word.startswith(("--ignore=", "--deselect="))
    }
    run = {word for word in recipe("system-test") if word.startswith(("labs", "tests/"))}
    assert left_out == run
    assert [test for test in run if not exists(test)] == []
    assert not {"-k", "-m"} & set(recipe("test")[recipe("test").index("pytest") :])


def test_the_longest_files_are_system_tests_and_run_first() -> None:
    """Otherwise one of them would begin late, and the other processes wait for its end."""
    listed = longest_files()
    assert [file for file in listed if not (PROJECT / file).is_file()] == []
    run = {word.partition("::")[0] for word in recipe("system-test")}
    assert [file for file in listed if not {file, *map(str, Path(file).parents)} & run] == []

    items: Any = [SimpleNamespace(location=(file,)) for file in ("short", *reversed(listed))]
    with_whole_files: Any = SimpleNamespace(getoption=lambda name, default: False)
    pytest_collection_modifyitems(with_whole_files, items)
    assert [item.location[0] for item in items] == [*listed, "short"]


def test_ci_runs_both_and_the_first_without_a_network() -> None:
    script = (PROJECT / ".ci" / "run").read_text().splitlines()
    assert {".ci/offline make test", "make system-test"} <= set(script)


def test_a_command_offline_reaches_only_this_machine() -> None:
    """Otherwise CI would not notice a test that downloads something."""
    run = [str(PROJECT / ".ci" / "offline"), "ip", "-brief", "address"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    if "no network namespaces" in done.stderr:
        pytest.skip("this machine has no network namespaces")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["lo"]
    assert "127.0.0.1/8" in done.stdout
