"""A pytest plugin that runs the collected tests on each mutant, instead of once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import psycopg
import pytest
from tqdm import tqdm

from labs.mutants.constraints import constraint_mutants
from labs.mutants.forks import Copy, run_forked
from labs.mutants.lists import equivalents, listed_mutants
from labs.mutants.memory import Memory
from labs.mutants.mutant import Mutant, Stale
from labs.mutants.python_code import apply_python
from labs.mutants.selection import Selection, is_of_use
from labs.mutants.sql_rules import sql_mutants

# The test that the session itself runs. It sets up and loads what the forks copy.
FIRST = "labs/mutants/test_mutants.py::test_the_service_works"


@dataclass(frozen=True)
class Verdict:
    """The fate of a mutant. It survived if nothing else is set."""

    mutant: Mutant
    killer: str = ""  # the test that failed
    equivalent: str = ""  # the written reason why no test can fail
    stale: str = ""  # why the mutant could not be tried

    @property
    def failed(self) -> bool:
        """Whether a developer must act: write a test, a reason, or another mutant."""
        return not self.killer and not self.equivalent


class Runner:
    """Judges the mutants that `choose` takes from all of them."""

    def __init__(self, choose: Callable[[list[Mutant]], list[Mutant]], memory: Memory) -> None:
        self.verdicts: list[Verdict] = []
        self._choose = choose
        self._memory = memory
        self._selection = Selection()
        self._reasons = equivalents()
        self._copy = Copy()
        self._passing: set[str] = set()

    @property
    def arguments(self) -> list[str]:
        """The tests that pytest must collect."""
        return [FIRST, *self._selection.tests]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leaves out tests that show nothing about guards."""
        self._first = next(item for item in items if item.nodeid == FIRST)
        self._items = [
            item for item in items if isinstance(item, pytest.Function) and is_of_use(item)
        ]

    def pytest_runtestloop(self) -> bool:
        """Judges mutant after mutant. Raises Stale if the lists and the code disagree."""
        self._first.ihook.pytest_runtest_protocol(item=self._first, nextitem=self._items[0])
        mutants = [*sql_mutants(), *constraint_mutants(), *listed_mutants()]
        names = {mutant.name for mutant in mutants}
        self._memory.keep(names)
        unknown = set(self._reasons) - names
        if unknown:
            raise Stale(f"equivalent.toml explains mutants that are gone: {sorted(unknown)}")
        for mutant in tqdm(self._choose(mutants), unit="mutant", smoothing=0):
            verdict = self._judge(mutant)
            if verdict.failed:
                tqdm.write(f"{verdict.stale or 'survived'}: {mutant.name}")
            self.verdicts.append(verdict)
        return True

    def _judge(self, mutant: Mutant) -> Verdict:
        if mutant.name in self._reasons:
            return Verdict(mutant, equivalent=self._reasons[mutant.name])
        killer = self._memory.killer_of(mutant)
        if killer:
            return Verdict(mutant, killer=killer)
        try:
            items = self._selection.of(mutant, self._items)
            killer = self._killer(mutant, self._memory.best_first(mutant, items))
        except (Stale, psycopg.Error) as error:
            return Verdict(mutant, stale=f"{type(error).__name__}: {error}")
        if killer:
            self._memory.remember(mutant, killer)
        return Verdict(mutant, killer=killer)

    def _killer(self, mutant: Mutant, items: Sequence[pytest.Item]) -> str:
        """The test that fails on the mutant and not without it, or ''. Raises Stale."""
        if mutant.is_python:
            ran = run_forked(items, self._copy, mutate=partial(apply_python, mutant))
        else:
            ran = run_forked(
                items, self._copy,
                statements=mutant.text, undo=mutant.before, mutate=_count_no_guards,
            )  # fmt: skip
        if ran.error:
            raise Stale(ran.error)
        if ran.failed and ran.failed not in self._passing:
            alone = run_forked([item for item in items if item.nodeid == ran.failed], self._copy)
            if alone.failed or alone.error:
                raise Stale(f"{ran.failed} also fails without a mutant")
            self._passing.add(ran.failed)
        return ran.failed


def _count_no_guards() -> None:
    """Keeps `reconcile` from asking which guards are there: tests must miss what a guard does."""
    from operators.upkeep import reconcile  # noqa: PLC0415  Django is not set up before

    reconcile.CHECKS.remove(reconcile.GUARDS)
