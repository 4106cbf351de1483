"""Reports the processor time of a run by folder. In CI, a run that exceeds its budget fails.

It counts the test processes and what they started, without PostgreSQL and Valkey, which serve all.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from multiprocessing import forkserver
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

TOLERANCE = 1.1  # another run of the same tests differs by less than a tenth
TICKS = os.sysconf("SC_CLK_TCK")
SPENT = pytest.StashKey[dict[str, float]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budget", type=float, help="seconds of processor time that CI allows a run")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SPENT] = defaultdict(float)


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[SPENT]["collection"] = _used()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _used()
    done = yield
    folder = "/".join(Path(item.nodeid.partition("::")[0]).parent.parts[:2]) or "."
    item.config.stash[SPENT][folder] += _used() - before
    return done


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    spent = config.stash[SPENT]
    if config.pluginmanager.hasplugin("dsession"):
        spent["xdist"] = sum(os.times()[:2])
    else:
        spent["fixtures of the run"] = _used() - sum(spent.values())
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["processor_time"] = dict(spent)
    elif os.environ.get("CI") and _exceeds_budget(config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_testnodedown(node: Any) -> None:
    """Adds what a process of xdist counted."""
    spent = node.config.stash[SPENT]
    for name, seconds in getattr(node, "workeroutput", {}).get("processor_time", {}).items():
        spent[name] += seconds


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    spent, budget = config.stash[SPENT], config.option.budget
    largest_first = sorted(spent.items(), key=itemgetter(1), reverse=True)
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in largest_first)
    allowed = f" of {budget:.0f}" if budget else ""
    terminalreporter.write_line(f"Processor time: {sum(spent.values()):.0f}{allowed} s ({parts})")
    if _exceeds_budget(config):
        terminalreporter.write_line(
            "This exceeds the budget by more than a tenth"
            " (docs/decisions/0047-time-of-the-tests.md)."
        )


def _exceeds_budget(config: pytest.Config) -> bool:
    budget = config.option.budget
    return bool(budget) and sum(config.stash[SPENT].values()) > TOLERANCE * budget


def _used() -> float:
    """Seconds of this process, of its children that ended, and of the server of quick starts."""
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system + _used_by_forks()


def _used_by_forks() -> float:
    pid = getattr(forkserver._forkserver, "_forkserver_pid", None)
    if pid is None:
        return 0.0
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, numbers[11:15])) / TICKS
