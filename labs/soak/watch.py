"""Memory, processor time and latency over the run, and whether they stay flat."""

import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")
MB = 1024 * 1024
RECOVERY = 5.0  # seconds after a fault that still count as disturbed
# How much more the last third may need than the first, and the last quarter than the second.
FLAT = {"p50": 1.5, "p99": 2.0, "processor ms per purchase": 1.15}
FLAT_MEMORY = 1.10
KINDS_JUDGED = ("witness web", "witness worker")
SERVICE = ("web", "witness web", "postgres")  # whose processor time a purchase needs


@dataclass(frozen=True)
class Happened:
    """One fault, from its beginning until it was healed, by the true time."""

    kind: str
    began: float
    healed: float


@dataclass
class Watch:
    """Samples of processes and of the number of purchases. Times are in seconds."""

    samples: list[dict[str, Any]] = field(default_factory=list)
    _spent: dict[int, float] = field(default_factory=dict)
    _total: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _shown: float = 0.0

    def sample(self, processes: Mapping[str, list[int]], bought: int) -> None:
        """`memory` is the private resident memory of an average process of a kind, in MB, except
        for PostgreSQL, where it is the sum; `spent` is the processor time of a kind so far."""
        memory: dict[str, float] = {}
        for kind, pids in processes.items():
            sizes = [size for size in map(private_mb, pids) if size]
            if sizes:
                memory[kind] = sum(sizes) / (1 if kind == "postgres" else len(sizes))
            for pid in pids:
                seconds = processor_seconds(pid)
                self._total[kind] += max(0.0, seconds - self._spent.get(pid, 0.0))
                self._spent[pid] = seconds
        known = {"memory": memory, "spent": dict(self._total), "bought": bought}
        self.samples.append({"time": time.time(), **known})

    def show(self, faults: int, outcomes: Mapping[str, int], *, every: float = 10.0) -> None:
        """Writes a line of progress, at most once in `every` seconds."""
        if self.samples and time.monotonic() > self._shown + every:
            self._shown = time.monotonic()
            memory = self.samples[-1]["memory"]
            sizes = " ".join(f"{kind} {memory[kind]:.0f}" for kind in sorted(memory))
            line = f"{time.strftime('%H:%M:%S')} {dict(outcomes)} {faults} faults | MB: {sizes}"
            print(line, file=sys.stderr, flush=True)  # noqa: T201


def figures(
    watch: Watch, times: Iterable[float], took: Iterable[float], happened: Sequence[Happened]
) -> dict[str, Any]:
    """The faults, the thirds of the run, the memory of its quarters, and the verdict on both.

    `times` are the ends of purchases, and `took` their milliseconds. Purchases near a fault are
    left out.
    """
    begin, end = watch.samples[0]["time"], watch.samples[-1]["time"]
    disturbed = {
        second
        for one in happened
        for second in range(int(one.began), int(one.healed + RECOVERY) + 2)
    }
    quiet: list[list[float]] = [[], [], []]
    for at, milliseconds in zip(times, took, strict=True):
        if int(at) not in disturbed:
            quiet[min(2, int(3 * (at - begin) / (end - begin)))].append(milliseconds)
    thirds = [
        {
            "p50": round(statistics.median(one or [0.0]), 1),
            "p99": round(statistics.quantiles(one, n=100)[98] if len(one) > 1 else 0.0, 1),
            "processor ms per purchase": round(_processor(part), 3),
        }
        for one, part in zip(quiet, _parts(watch, 3), strict=True)
    ]
    flat = {name: _flat(thirds[2][name], thirds[0][name], limit) for name, limit in FLAT.items()}
    memory = {kind: _medians(watch, kind) for kind in watch.samples[-1]["memory"]}
    for kind in KINDS_JUDGED:
        if memory.get(kind, [0.0] * 4)[1]:
            flat[f"memory of {kind}"] = _flat(memory[kind][3], memory[kind][1], FLAT_MEMORY)
    return {
        "seconds": round(end - begin),
        "purchases_per_second": round(watch.samples[-1]["bought"] / (end - begin), 1),
        "faults": dict(Counter(fault.kind for fault in happened)),
        "flat": flat,
        "memory_mb": memory,
        "thirds": thirds,
    }


def _flat(last: float, first: float, limit: float) -> dict[str, Any]:
    ratio = last / (first or 1)
    return {"ratio": round(ratio, 2), "limit": limit, "flat": ratio <= limit}


def _parts(watch: Watch, number: int) -> list[list[dict[str, Any]]]:
    """The samples of each third or quarter."""
    begin, end = watch.samples[0]["time"], watch.samples[-1]["time"]
    parts: list[list[dict[str, Any]]] = [[] for _ in range(number)]
    for sample in watch.samples:
        parts[min(number - 1, int(number * (sample["time"] - begin) / (end - begin)))].append(
            sample
        )
    return parts


def _medians(watch: Watch, kind: str) -> list[float]:
    """The median memory of the kind in each quarter."""
    sizes = [[one["memory"].get(kind, 0.0) for one in part] for part in _parts(watch, 4)]
    return [round(statistics.median(one or [0.0]), 1) for one in sizes]


def _processor(part: Sequence[Mapping[str, Any]]) -> float:
    """Milliseconds of processor time that web processes and PostgreSQL spent for one purchase."""
    if len(part) < 2:
        return 0.0
    first, last = part[0], part[-1]
    seconds = sum(last["spent"].get(kind, 0) - first["spent"].get(kind, 0) for kind in SERVICE)
    return 1000.0 * float(seconds) / max(1, int(last["bought"] - first["bought"]))


def private_mb(pid: int) -> float:
    """Resident memory that no other process shares; 0 for a process that has ended."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return 0.0
    return (int(resident) - int(shared)) * PAGE / MB


def processor_seconds(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    words = status.rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / TICK
