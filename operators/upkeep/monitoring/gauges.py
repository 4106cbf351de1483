"""Reads the gauges that the apps declare (`Gauges` in core/backoffice/declarations.py)."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import DatabaseError, connection

from core.backoffice.declarations import Gauges
from core.backoffice.registry import back_offices
from core.database.functions import StatementTimeout, statement_timeout

logger = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 2  # of each statement
BUDGET_SECONDS = 5  # of one reading; no other declaration is begun after it
LATE_SECONDS = 60  # a reading that was not renewed in time is shown for so much longer
GAUGES = [gauges for app in back_offices() for gauges in app.gauges]


@dataclass(frozen=True)
class Reading:
    """One gauge: its samples, each with its label values in the order of `labels`."""

    name: str
    meaning: str
    labels: Sequence[str]
    samples: list[tuple[list[str], float]]


class Reader:
    """Reads each declaration at most once in its time, for all threads of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: dict[int, tuple[float, list[Reading] | None]] = {}

    def read(self) -> tuple[list[Reading], int]:
        """The readings, and how many declarations could not be read.

        Takes at most about BUDGET_SECONDS. While another thread reads, this one waits for nothing
        and takes what the last reading found. A declaration that fails is left out until its time
        is over, and so is a reading that is too late to show.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._renew(time.monotonic() + BUDGET_SECONDS)
            finally:
                self._lock.release()
        oldest = time.monotonic() - LATE_SECONDS
        groups = [
            group if until > oldest else None
            for until, group in map(self._last_reading, range(len(GAUGES)))
        ]
        readings = [reading for group in groups if group is not None for reading in group]
        return readings, groups.count(None)

    def _renew(self, end: float) -> None:
        """Reads the declarations whose time is over, the oldest first, until `end`."""
        for place in sorted(range(len(GAUGES)), key=lambda place: self._last_reading(place)[0]):
            now = time.monotonic()
            if now >= end or now < self._last_reading(place)[0]:
                return
            group = _try(GAUGES[place])
            self._readings[place] = (time.monotonic() + GAUGES[place].seconds, group)

    def _last_reading(self, place: int) -> tuple[float, list[Reading] | None]:
        """When the last reading of a declaration expires, and the reading."""
        return self._readings.get(place, (0.0, None))


reader = Reader()


def database_answers() -> bool:
    """Whether the database answers a query."""
    try:
        with statement_timeout(TIMEOUT_SECONDS), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, StatementTimeout):
        return False
    return True


def _try(gauges: Gauges) -> list[Reading] | None:
    try:
        with statement_timeout(TIMEOUT_SECONDS), connection.cursor() as cursor:
            # A young table has no statistics yet, and must not be read in full when it has grown.
            cursor.execute("SET LOCAL enable_seqscan = off")
            if not isinstance(gauges.read, str):
                return _sort(gauges, gauges.read())
            cursor.execute(gauges.read, gauges.parameters() if gauges.parameters else None)
            return _sort(gauges, cursor.fetchall())
    except (DatabaseError, StatementTimeout) as error:
        logger.warning("gauges_not_read", gauges=[*gauges.meanings], cause=type(error).__name__)
        return None


def _sort(gauges: Gauges, rows: Iterable[Sequence[Any]]) -> list[Reading]:
    """The rows as one reading for each gauge."""
    first, all_rows = len(gauges.labels), [*rows]
    return [
        Reading(
            name,
            meaning,
            gauges.labels,
            [
                ([str(label) for label in row[:first]], float(row[first + place]))
                for row in all_rows
                if row[first + place] is not None
            ],
        )
        for place, (name, meaning) in enumerate(gauges.meanings.items())
    ]
