"""Memory and processor time of every process over time, and the progress of the run."""

import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labs.soak.purchases import milliseconds

PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")
MB = 1024 * 1024


@dataclass(frozen=True)
class Happened:
    """One fault, from its beginning until it was healed, by the true time."""

    kind: str
    began: float
    healed: float


@dataclass
class Watch:
    """Samples of processes, and reports of the load generator. Times are in seconds."""

    samples: list[dict[str, Any]] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)
    _spent: dict[int, float] = field(default_factory=dict)
    _total: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _shown: float = 0.0

    def sample(self, processes: Mapping[str, list[int]]) -> None:
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
        self.samples.append({"time": time.time(), "memory": memory, "spent": dict(self._total)})

    def report(self, report: dict[str, Any]) -> None:
        self.reports.append(report)

    def show(self, faults: int, *, every: float = 10.0) -> None:
        """One line of progress: rewritten in a terminal, otherwise one in `every` seconds."""
        if not self.reports or not self.samples:
            return
        live = sys.stderr.isatty()
        if not live and time.monotonic() < self._shown + every:
            return
        self._shown = time.monotonic()
        print(self._line(faults), end="\x1b[K\r" if live else "\n", file=sys.stderr, flush=True)  # noqa: T201

    def _line(self, faults: int) -> str:
        latest = self.reports[-1]
        recent = self.reports[-10:]
        times: Counter[int] = Counter()
        for report in recent:
            times.update({int(b): n for b, n in report["milliseconds"].items()})
        before = self.reports[-len(recent) - 1]["bought"] if len(self.reports) > 10 else {}
        bought = sum(latest["bought"].values())
        rate = (bought - sum(before.values())) / len(recent)
        memory = self.samples[-1]["memory"]
        return (
            f"{time.strftime('%H:%M:%S')} {latest['bought'].get('voucher', 0):,} vouchers"
            f" {latest['bought'].get('top_up', 0):,} top-ups {rate:.0f}/s"
            f" p50 {percentile(times, 50):.0f} p99 {percentile(times, 99):.0f} ms"
            f" {latest['unresolved']} unresolved {faults} faults | MB: "
            + " ".join(f"{kind} {memory[kind]:.0f}" for kind in sorted(memory))
        )


def percentile(times: Mapping[int, int], percent: float) -> float:
    """Milliseconds, from counts by bucket; 0 without any."""
    left = sum(times.values()) * percent / 100
    for number in sorted(times):
        left -= times[number]
        if left <= 0:
            return milliseconds(number)
    return 0.0


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
