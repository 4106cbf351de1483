"""Runs participants under every order of their database calls, one call at a time.

A schedule is a list of choices, written as `0,1,1,0c`: which participant makes its next call, with
`c` if its process dies right after it. `explore` replays a prefix of choices and continues with the
first option of each later point; then it changes the last choice that has another option. So it
visits every schedule once, and keeps no state but the prefix.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

import psycopg

from labs.interleavings.participants import PATIENCE, Participant, State
from tests.live import owner_url

LOOK_AFTER = 0.004  # seconds without news, after which the scheduler looks for locks


class NotDeterministic(AssertionError):
    """A replayed prefix met other options than before: something else decides the order."""


@dataclass(frozen=True)
class Point:
    """A moment at which the scheduler chose."""

    options: tuple[str, ...]
    chosen: str
    label: str  # the call that was made
    blocked: frozenset[int]  # participants that waited for a lock
    seen: Any  # what `observe` returned

    @property
    def participant(self) -> int:
        return int(self.chosen.removesuffix("c"))


@dataclass
class Trace:
    """The events under one schedule."""

    points: list[Point] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    at_the_end: Any = None  # what `observe` returned after the last call

    @property
    def schedule(self) -> str:
        return ",".join(point.chosen for point in self.points)

    @property
    def crashes(self) -> int:
        return sum(point.chosen.endswith("c") for point in self.points)

    def steps(self) -> str:
        """The calls in their order, for a person."""
        return "\n".join(f"  {point.chosen:>3}  {point.label[:110]}" for point in self.points)


@dataclass(frozen=True)
class Bounds:
    """The limits of a search.

    crashes: how many participants die in one schedule.
    switches: how often a schedule changes the participant although the last one could go on; None
        for any number.
    twins: participants with the same request. The one with the lower number always begins:
        exchanging them gives the same schedule under other names.
    """

    crashes: int = 1
    switches: int | None = None
    twins: frozenset[int] = frozenset()


class Scheduler:
    """Threads with database connections, used for many schedules."""

    def __init__(self, size: int) -> None:
        self._changed = Condition()
        # Triggers are off: this connection only looks and puts rows back. Switching them off for
        # a moment would make it forget its plans.
        self.connection = psycopg.connect(
            owner_url(), autocommit=True, options="-c session_replication_role=replica"
        )
        self._participants = [Participant(number, self._changed) for number in range(size)]
        for number in range(size):
            self.connection.execute(f"CREATE SEQUENCE schedule.steps_{number}".encode())
            self.connection.execute(
                "SELECT pg_advisory_lock(%s, 1), pg_advisory_lock(%s, 2)", (number, number)
            )

    def close(self) -> None:
        for participant in self._participants:
            participant.stop()
        self.connection.close()

    def run(
        self,
        tasks: Sequence[Callable[[], Any]],
        choices: Sequence[str],
        bounds: Bounds,
        *,
        observe: Callable[[], Any] = lambda: None,
        needs_no_choice: Callable[[str], bool],
        choose: Callable[[tuple[str, ...]], str] = lambda options: options[0],
    ) -> Trace:
        """Runs one schedule: these choices, then `choose` decides.

        `needs_no_choice` says which calls are made without one. Raises NotDeterministic after the
        end of the schedule if a choice was impossible.
        """
        trace, impossible = Trace(), ""
        running = self._participants[: len(tasks)]
        for participant, task in zip(running, tasks, strict=True):
            participant.start(task, needs_no_choice)
            self._settle(running)
        started: set[int] = set()
        while options := _options(trace, running, started, bounds):
            chosen = choose(options)
            if len(trace.points) < len(choices) and not impossible:
                chosen = choices[len(trace.points)]
                if chosen not in options:
                    states = [(one.state.name, one.label, one.result) for one in running]
                    impossible = f"{chosen} is none of {options}: {states} after:\n{trace.steps()}"
                    chosen = options[0]
            participant = running[int(chosen.removesuffix("c"))]
            blocked = frozenset(one.number for one in running if one.state is State.BLOCKED)
            trace.points.append(Point(options, chosen, participant.label, blocked, observe()))
            started.add(participant.number)
            participant.crash = chosen.endswith("c")
            self._grant(participant)
            self._settle(running)
        if impossible:
            raise NotDeterministic(impossible)
        trace.results = [participant.result for participant in running]
        trace.at_the_end = observe()
        return trace

    def _grant(self, participant: Participant) -> None:
        with self._changed:
            participant.state = State.RUNNING
        if participant.paused is None:
            participant.grant()
            return
        step, participant.paused = participant.paused, None
        number = participant.number
        self.connection.execute(
            "SELECT pg_advisory_lock(%s, %s), pg_advisory_unlock(%s, %s)",
            (number, step + 2, number, step),
        )

    def _settle(self, running: Sequence[Participant]) -> None:
        """Waits until each participant is ready, has ended, or waits for a lock of another."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with self._changed:
                self._changed.wait_for(
                    lambda: all(one.state is not State.RUNNING for one in running), LOOK_AFTER
                )
            with self._changed:
                before = [one.state for one in running]
            self._wait_for_dead(running)
            waiting = [one for one in running if one.state in (State.RUNNING, State.BLOCKED)]
            if not waiting:
                return
            blocked = self._blocked(waiting, running)
            with self._changed:
                # A participant that changed state meanwhile may have released a lock: look again.
                if before != [one.state for one in running]:
                    continue
                for one in waiting:
                    one.state = State.BLOCKED if one.pid in blocked else State.RUNNING
                states = {one.state for one in running}
            if State.RUNNING not in states and State.READY in states:
                return
        raise AssertionError(f"stuck: {[(one.state, one.label) for one in running]}")

    def _blocked(self, waiting: Sequence[Participant], running: Sequence[Participant]) -> set[int]:
        """The server processes that wait for a lock of another participant."""
        others = [one.pid for one in running]
        found = self.connection.execute(
            "SELECT pid FROM unnest(%s::int[]) AS pid WHERE pg_blocking_pids(pid) && %s::int[]",
            ([one.pid for one in waiting], others),
        )
        return {pid for (pid,) in found}

    def _wait_for_dead(self, running: Sequence[Participant]) -> None:
        """Waits until PostgreSQL has noticed which processes are dead, and rolled back."""
        for one in running:
            while one.disconnected:
                if not self.connection.execute(
                    "SELECT FROM pg_stat_activity WHERE pid = %s", (one.pid,)
                ).rowcount:
                    one.disconnected = False
                    break
                time.sleep(0.0005)


def explore(run: Callable[[Sequence[str], Sequence[Point]], Trace]) -> Iterator[Trace]:
    """Yields the trace of every schedule.

    `run` runs one, which begins with the given choices. It also gets the points at which they were
    made before, and must meet the same ones: of them, only the last choice is another.
    """
    choices: list[str] = []
    points: list[Point] = []
    while True:
        trace = run(choices, points)
        yield trace
        points = trace.points
        while points and points[-1].chosen == points[-1].options[-1]:
            points.pop()
        if not points:
            return
        last = points[-1]
        following = last.options[last.options.index(last.chosen) + 1]
        choices = [*(point.chosen for point in points[:-1]), following]


def _options(
    trace: Trace, running: Sequence[Participant], started: set[int], bounds: Bounds
) -> tuple[str, ...]:
    """The choices of the next step; the first is to go on with the participant that went last."""
    last = trace.points[-1].participant if trace.points else None
    ready = [one for one in running if one.state is State.READY]
    if last is not None and running[last].state is State.READY:
        ready.sort(key=lambda one: one.number != last)
        if bounds.switches is not None and _switches(trace) >= bounds.switches:
            ready = ready[:1]
    options = []
    for one in ready:
        waiting_twins = {twin for twin in bounds.twins - started if twin < one.number}
        if one.number in bounds.twins and one.number not in started and waiting_twins:
            continue
        options.append(str(one.number))
        ends_a_call = one.paused is None or one.label.endswith(".end")
        if ends_a_call and trace.crashes < bounds.crashes:
            options.append(f"{one.number}c")
    return tuple(options)


def _switches(trace: Trace) -> int:
    """The number of changes of the participant although the one before could have gone on."""
    return sum(
        before.participant != after.participant
        and any(option.startswith(str(before.participant)) for option in after.options)
        for before, after in zip(trace.points, trace.points[1:], strict=False)
    )
