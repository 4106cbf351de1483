"""Searches the schedules of a scenario, and checks what each of them leaves."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from labs.interleavings.contract import ENDS_WITH_ORDER, ENDS_WITHOUT, is_allowed
from labs.interleavings.participants import gates, is_private
from labs.interleavings.pauses import Weaknesses, paused_sql, pauses
from labs.interleavings.scenarios import Scenario
from labs.interleavings.scheduler import NotDeterministic, Point, Scheduler, Trace, explore
from labs.interleavings.world import (
    PRICE,
    Request,
    World,
    answers,
    faults,
    make_world,
    names_of_orders,
    put_back,
    reference_of,
    remember,
    retry,
)

REPEATS = 100  # of choices that did not meet what they met before


@dataclass
class Search:
    """The findings in the schedules of one scenario so far."""

    name: str
    schedules: int = 0
    crashed: int = 0
    waited: int = 0  # schedules in which a call waited for a lock
    repeats: int = 0  # because PostgreSQL let another waiter go first
    longest: int = 0
    outcomes: Counter[tuple[str, ...]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.schedules} schedules ({self.crashed} with a crash, {self.waited}"
            f" with a wait for a lock), up to {self.longest} steps, {len(self.outcomes)} outcomes,"
            f" {self.repeats} repeats"
        )


class Arena:
    """A scenario whose schedules can be run again and again."""

    def __init__(self, name: str, scenario: Scenario, scheduler: Scheduler, world: World) -> None:
        self.name, self.scenario, self.world = name, scenario, world
        self._scheduler = scheduler
        paused = {file.replace("/sql/", "_").removesuffix(".sql") for file in scenario.files}
        self._without_gate = paused | scenario.private
        self._tasks = [self._task(number) for number in range(len(scenario.participants))]

    def run(
        self, choices: Sequence[str], *, seed: int | None = None, crashes: int | None = None
    ) -> tuple[Trace, list[str]]:
        """Runs one schedule on fresh data. Returns what happened and what is wrong with it.

        With a seed, it chooses what `choices` leave open. `crashes` replaces the scenario's bound.
        """
        put_back(self._scheduler.connection)
        bounds = self.scenario.bounds
        pick = {} if seed is None else {"choose": random.Random(seed).choice}
        trace = self._scheduler.run(
            self._tasks,
            choices,
            bounds if crashes is None else replace(bounds, crashes=crashes),
            observe=partial(self.world.look, self._scheduler.connection),
            needs_no_choice=self._needs_no_choice,
            **pick,
        )
        return trace, list(self._wrong(trace))

    def search(
        self,
        *,
        limit: int | None = None,
        crashes: int | None = None,
    ) -> Search:
        """Runs every schedule, up to a limit or the first failure."""
        found = Search(self.name)
        problems: list[str] = []

        def run(choices: Sequence[str], before: Sequence[Point]) -> Trace:
            trace, problems[:] = self._run_as_before(choices, before, found, crashes=crashes)
            return trace

        for trace in explore(run):
            self._note(found, trace, problems)
            if found.failures or found.schedules == limit:
                break
        return found

    def _run_as_before(
        self,
        choices: Sequence[str],
        before: Sequence[Point],
        found: Search,
        *,
        crashes: int | None,
    ) -> tuple[Trace, list[str]]:
        """Runs the schedule in which these choices meet the same points as before.

        If two calls waited for one row, PostgreSQL decides which went on first. It is then asked
        again, up to REPEATS times. Raises NotDeterministic after that, or if no two calls waited.
        """
        left = REPEATS if any(len(point.blocked) > 1 for point in before) else 0
        while True:
            try:
                trace, problems = self.run(choices, crashes=crashes)
                _compare(trace, before)
            except NotDeterministic:
                if left == 0:
                    raise
                left -= 1
                found.repeats += 1
            else:
                return trace, problems

    def sample(self, number: int) -> Search:
        """Runs this many schedules, or up to the first failure. Seeds choose them, so every run
        chooses the same."""
        found = Search(self.name)
        for seed in range(number):
            trace, problems = self.run([], seed=seed)
            self._note(found, trace, problems)
            if found.failures:
                break
        return found

    def _needs_no_choice(self, label: str) -> bool:
        return label in self._without_gate or is_private(label, self.scenario.own)

    def _note(self, found: Search, trace: Trace, problems: list[str]) -> None:
        found.schedules += 1
        found.crashed += trace.crashes > 0
        found.waited += any(point.blocked for point in trace.points)
        found.longest = max(found.longest, len(trace.points))
        found.outcomes[tuple(answers(trace.results))] += 1
        if problems:
            found.failures.append(
                f'SCHEDULE="{self.name}:{trace.schedule}" make test'
                f' ARGS="-n0 labs/interleavings/test_replay.py"\n'
                + "\n".join(f"  {problem}" for problem in problems)
                + f"\n{trace.steps()}"
            )

    def _task(self, number: int) -> Any:
        participant = self.scenario.participants[number]
        if isinstance(participant, Request):
            return partial(self.world.send, participant, sender=number)
        return partial(participant, self.world)

    def _wrong(self, trace: Trace) -> Iterator[str]:
        database, told = self._scheduler.connection, answers(trace.results)
        orders = names_of_orders(database)
        if len(orders) > self.scenario.orders:
            yield f"{len(orders)} orders"
        yield from self._wrong_answers(trace, told)
        others = tuple(
            outcome for number, outcome in enumerate(told) if number not in self.scenario.requests
        )
        allowed = self.scenario.others
        if allowed is not None and "crashed" not in others and others not in allowed:
            yield f"outcomes {others} are not allowed"
        yield from self._wrong_ends(trace, told)

    def _wrong_answers(self, trace: Trace, told: list[str]) -> Iterator[str]:
        """Answers that the contract does not allow, or that contradict another or the data."""
        bodies: dict[tuple[str, str], bytes] = {}
        for number, request in self.scenario.requests.items():
            answer, what = trace.results[number], told[number]
            content = self.world.content(request)
            if what == "crashed":
                continue
            if not is_allowed(
                trace, number, what,
                key=request.key, content=content, kind=request.kind, price=PRICE,
            ):  # fmt: skip
                yield f"participant {number}: {what!r} is not allowed"
            if what in ("bought", "replayed"):
                same = bodies.setdefault((request.key, content), answer.content)
                if same != answer.content and self.scenario.orders == 1:
                    yield f"participant {number}: another response for the same key"
                yield from self._wrong_order(answer.json()["data"]["reference"], answer)
            elif what == "request_abandoned":
                yield from self._wrong_order(answer.json()["error"]["reference"], None)

    def _wrong_order(self, reference: str, answer: Any) -> Iterator[str]:
        """Whether GET shows the order that a response names."""
        shown = self.world.read(reference)
        if shown.status_code != 200:
            yield f"order {reference} cannot be read"
        elif answer is not None and shown.json()["data"]["codes"] != answer.json()["data"]["codes"]:
            yield f"order {reference} has other codes than its response"

    def _wrong_ends(self, trace: Trace, told: list[str]) -> Iterator[str]:
        """Retries each request by the documented rules; then counts debits and deliveries."""
        for participant in self.scenario.participants:
            if not isinstance(participant, Request) and "crashed" in told:
                participant(self.world)  # a task that died runs again
        before = set(names_of_orders(self._scheduler.connection))
        bought: dict[str, set[str]] = {}
        for number, request in self.scenario.requests.items():
            end, reference = retry(partial(self.world.send, request))
            if end not in ENDS_WITH_ORDER | ENDS_WITHOUT:
                yield f"the retries of {request} end with {end!r}"
            told_before = "" if told[number] == "crashed" else reference_of(trace.results[number])
            bought.setdefault(request.key, set()).update({reference, told_before} - {""})
        after = set(names_of_orders(self._scheduler.connection))
        if any(len(references) > 1 for references in bought.values()) and not self.scenario.forgets:
            yield f"a key has several orders: {bought}"
        new = after - before
        if not new <= set().union(*bought.values()):
            yield "a retry made an order and did not say so"
        yield from faults(self._scheduler.connection)


def _compare(trace: Trace, before: Sequence[Point]) -> None:
    """Raises NotDeterministic if other options or other waiting participants were met."""
    for point, same in zip(trace.points, before, strict=False):
        if (point.options, point.blocked) != (same.options, same.blocked):
            raise NotDeterministic(f"other points were met before:\n{trace.steps()}")


@contextmanager
def arena(name: str, scenario: Scenario, weaknesses: Weaknesses | None = None) -> Iterator[Arena]:
    """A scenario with its data, its paused functions and its participants."""
    with pauses(), paused_sql(scenario.files, weaknesses), gates():
        world = make_world(**scenario.size)
        scenario.prepare(world)
        remember()
        scheduler = Scheduler(len(scenario.participants))
        try:
            yield Arena(name, scenario, scheduler, world)
        finally:
            scheduler.close()
