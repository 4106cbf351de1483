"""The counts and times of this process (docs/operate/monitor.md lists it all).

Counting costs about a microsecond: it only adds in memory. A thread of each web process and worker
writes the sums every two seconds to files of METRICS_DIR, in prometheus-client's format, and the
exporter of this host adds up all files (operators/upkeep/monitoring/exporter.py).
prometheus-client's own counters cost several times as much (docs/decisions/0039-metrics.md). A
process that is killed loses what it counted since it last wrote. Without a call of `keep_in_files`,
the numbers of a process are never written.

No label may hold a secret, the name of a person, or a text that a caller chose: each combination of
labels is kept for ever.
"""

import fcntl
import itertools
import os
import sys
import threading
from bisect import bisect_left
from pathlib import Path
from typing import Any

import structlog
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.utils import floatToGoString
from prometheus_client.values import MultiProcessValue

from core.background import repeat

logger = structlog.get_logger(__name__)

WRITTEN_EVERY_SECONDS = 2.0
# In seconds. Most requests take milliseconds; a statement may take 20 seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, float("inf"))
# As Prometheus writes them.
BOUNDS = [floatToGoString(bound) for bound in BUCKETS]  # type: ignore[no-untyped-call]
Labels = tuple[Any, ...]


class Metric:
    """Numbers that only grow, for each combination of label values.

    `samples` names the samples that Prometheus sees, each with the labels that it has besides
    those of the metric. Each row of numbers has one number for each sample.
    """

    kind: str

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = labels
        self.rows: dict[Labels, list[float]] = {}
        self.lock = threading.Lock()
        METRICS.append(self)

    @property
    def samples(self) -> list[tuple[str, dict[str, str]]]:
        raise NotImplementedError

    def copy(self) -> dict[Labels, list[float]]:
        """The rows as they are now."""
        with self.lock:
            return {labels: list(row) for labels, row in self.rows.items()}


METRICS: list[Metric] = []


class Count(Metric):
    """A number of events."""

    kind = "counter"

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        super().__init__(name, meaning, *labels)
        if not labels:  # Prometheus sees no growth in a number that begins with the first event
            self.rows[()] = [0.0]

    @property
    def samples(self) -> list[tuple[str, dict[str, str]]]:
        return [(f"{self.name}_total", {})]

    def add(self, *labels: Any) -> None:
        """Counts one event. The labels are in the order of the declaration."""
        with self.lock:
            row = self.rows.get(labels)
            if row is None:
                row = self.rows[labels] = [0.0]
            row[0] += 1


class Times(Metric):
    """Durations in seconds, as a histogram."""

    kind = "histogram"

    @property
    def samples(self) -> list[tuple[str, dict[str, str]]]:
        buckets = [(f"{self.name}_bucket", {"le": bound}) for bound in BOUNDS]
        return [*buckets, (f"{self.name}_sum", {})]

    def add(self, seconds: float, *labels: Any) -> None:
        """Adds one duration. The labels are in the order of the declaration."""
        with self.lock:
            row = self.rows.get(labels)
            if row is None:
                row = self.rows[labels] = [0.0] * (len(BUCKETS) + 1)
            row[bisect_left(BUCKETS, seconds)] += 1
            row[-1] += seconds


REQUESTS = Count(
    "voucher_requests",
    "HTTP requests by route (the pattern of the URL), method and status.",
    *("route", "method", "status"),
)
REQUEST_SECONDS = Times(
    "voucher_request_seconds",
    "Time from the first middleware to the response, by route and method.",
    *("route", "method"),
)
DATABASE_SECONDS = Times(
    "voucher_database_seconds",
    "Time of statements, by SQL function; `orm` for all other statements.",
    "function",
)
CACHE_SECONDS = Times(
    "voucher_cache_seconds", "Time of commands to the cache, by outcome: `ok` or `lost`.", "outcome"
)
TASK_SECONDS = Times(
    "voucher_task_seconds", "Time of tasks in workers, by task and final state.", "task", "state"
)


def keep_in_files(folder: Path) -> None:
    """From now on, a thread writes the numbers of this process to its files in `folder`.

    If the folder cannot be written, that is logged: a missing metric must stop no sale.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = _Files(folder)
    except OSError as error:
        logger.warning("metrics_not_kept", folder=str(folder), cause=type(error).__name__)
        return

    def write() -> None:
        try:
            files.write()
        except Exception as error:  # of any kind: it would end the thread
            logger.error("metrics_not_written", cause=type(error).__name__)

    repeat(write, seconds=WRITTEN_EVERY_SECONDS, name="metrics")


class _Files:
    """The files of this process in a folder that many processes share.

    A process takes the lowest number that no living process has, and holds it by a file lock, which
    the kernel releases when the process ends. The next process takes the number over and goes on
    counting in the same files. So counters never fall when a process is replaced, and there are
    never more files than there were processes at once.
    """

    # Allocated in full: a write to a file that the disk has no room for would end the process with
    # SIGBUS. This is room for about 5,000 numbers.
    BYTES = 1024 * 1024

    def __init__(self, folder: Path) -> None:
        number, self._lock = _take_number(folder)
        for kind in ("counter", "histogram"):
            _allocate(folder / f"{kind}_{number}.db", self.BYTES)
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)  # where prometheus-client looks
        self._value = MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]
        self._written: dict[tuple[Metric, Labels], tuple[list[Any], list[float]]] = {}

    def write(self) -> None:
        """Adds what was counted since the last call."""
        for metric in METRICS:
            for labels, row in metric.copy().items():
                last = self._written.get((metric, labels))
                values, before = last or (self._values(metric, labels), [0.0] * len(row))
                for value, was, now in zip(values, before, row, strict=True):
                    if now != was:
                        value.inc(now - was)
                self._written[metric, labels] = (values, row)

    def _values(self, metric: Metric, labels: Labels) -> list[Any]:
        texts = [str(label) for label in labels]
        return [
            self._value(
                metric.kind,
                metric.name,
                sample,
                (*metric.labels, *more),
                (*texts, *more.values()),
                metric.meaning,
            )
            for sample, more in metric.samples
        ]


def _take_number(folder: Path) -> tuple[int, int]:
    """A number that no living process has, and the open file whose lock holds it."""
    for number in itertools.count(1):
        lock = os.open(folder / f"{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        except OSError:
            os.close(lock)
            raise
        return number, lock
    raise AssertionError("itertools.count ends")


def _allocate(path: Path, size: int) -> None:
    """Makes an empty file of prometheus-client, unless there is one that can be read.

    The exporter never sees a file without a header. Raises OSError.
    """
    if _can_be_read(path, size):
        return
    new = path.with_suffix(".new")
    file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        if sys.platform == "linux":
            os.posix_fallocate(file, 0, size)
        else:
            os.ftruncate(file, size)
    finally:
        os.close(file)
    new.replace(path)


def _can_be_read(path: Path, size: int) -> bool:
    try:
        used = int.from_bytes(path.read_bytes()[:4], sys.byteorder, signed=True)
        if not 0 <= used <= size <= path.stat().st_size:
            return False
        for _ in MmapedDict.read_all_values_from_file(str(path)):  # type: ignore[no-untyped-call]
            pass
    except Exception:  # whatever a missing or torn file makes the library raise
        return False
    return True
