"""Reads the gauges that the apps declare (`Gauges` in config/backoffice.py)."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import DatabaseError, connection

from config.backoffice import Gauges
from config.database.functions import StatementTimeout, statement_timeout
from operators.declarations import BACK_OFFICES

logger = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 2  # of each statement
GAUGES = [gauges for app in BACK_OFFICES for gauges in app.gauges]


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
        self._kept: dict[int, tuple[float, list[Reading] | None]] = {}

    def read(self) -> tuple[list[Reading], int]:
        """The readings, and how many declarations could not be read.

        A declaration that fails is left out until its time is over. Nothing old is shown instead.
        """
        with self._lock:
            found = [self._read(place, gauges) for place, gauges in enumerate(GAUGES)]
        readings = [reading for group in found if group is not None for reading in group]
        return readings, found.count(None)

    def _read(self, place: int, gauges: Gauges) -> list[Reading] | None:
        until, kept = self._kept.get(place, (0.0, None))
        if time.monotonic() >= until:
            kept = _try(gauges)
            self._kept[place] = (time.monotonic() + gauges.seconds, kept)
        return kept


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
    first, kept = len(gauges.labels), [*rows]
    return [
        Reading(
            name,
            meaning,
            gauges.labels,
            [
                ([str(label) for label in row[:first]], float(row[first + place]))
                for row in kept
                if row[first + place] is not None
            ],
        )
        for place, (name, meaning) in enumerate(gauges.meanings.items())
    ]
