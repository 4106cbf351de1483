"""Reads the purchase log back (purchase_log.py), and refuses a log with lines that are missing."""

import base64
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import orjson

from core.database import sealing
from core.database.sealing import Context
from core.files.log_files import is_authentic, read_events
from core.inputs import raise_problems
from orders.recovery.purchase_log import LIFE, LIFE_SECONDS, PURCHASE, SIGNED, SIGNED_LIFE

LOST_FOR_GOOD = (
    "Lines are missing. If they cannot be found, go on with --skip-missing. Then hold all codes in"
    " stock with hold_codes --all, or those that may be sold already with hold_codes --next"
)


@dataclass(frozen=True)
class LoggedPurchase:
    """One line of the log. `price` is the total in units of `currency`; `codes` are the first
    CODE_BYTES of each code's digest; `number` counts the lines of `process` from 1."""

    reference: str
    client_id: int
    price: Decimal
    currency: str
    sold_at: datetime
    codes: tuple[bytes, ...]
    process: str
    number: int
    sealed_request: bytes = field(repr=False)

    @property
    def at(self) -> datetime:
        return self.sold_at

    def request(self) -> tuple[str, bytes]:
        """The idempotency key and the fingerprint. Raises CannotOpen if this process lacks the
        encryption key of that time."""
        request = sealing.open_sealed(
            self.sealed_request, Context.LOGGED_REQUEST, self.reference.encode()
        )
        key, fingerprint = orjson.loads(request)
        return key, bytes.fromhex(fingerprint)


@dataclass(frozen=True)
class _Life:
    """A line with the `number` of purchases that a process had logged. `stops`: it logs no more."""

    process: str
    number: int
    at: datetime
    stops: bool


def read_purchases(
    files: Sequence[Path],
    *,
    since: datetime,
    skip_damaged: bool = False,
    skip_missing: bool = False,
    killed: Collection[str] = (),
) -> Iterator[LoggedPurchase]:
    """The purchases of log files since a time, in the order of the lines. `killed` names processes
    that were killed: their logs need no line that says that they stop.

    `-` is stdin, and a file may be compressed (`.gz`). Skips other lines, and what a log collector
    puts around a line: text in front, or a JSON object with the line in one of its strings.

    Raises InputProblem for lines that are damaged, missing, or of another service, unless they are
    skipped; for a file that is no log of a web process; and for a file that cannot be read.
    """
    damaged = []
    processes: dict[str, _Process] = defaultdict(_Process)
    ends: dict[str, datetime] = {}
    for line in read_events(files, PURCHASE, LIFE):
        try:
            read = _read(line.values)
        except ValueError:
            damaged.append(f"{line.place}: this line is damaged, or not ours")
            continue
        processes[read.process].add(read, line.file, since=since)
        ends[line.file] = max(read.at, ends.get(line.file, read.at))
        if isinstance(read, LoggedPurchase) and read.sold_at >= since:
            yield read
    if not skip_damaged:
        raise_problems(damaged)
    if not skip_missing:
        missing = [
            f"{each.file}: {problem}"
            for name, each in processes.items()
            for problem in each.gaps(name)
        ]
        missing += [
            f"{each.file}: {problem}"
            for name, each in processes.items()
            if name not in killed
            for problem in each.end(name, known=min(since, ends[each.file]))
        ]
        raise_problems([LOST_FOR_GOOD, *missing] if missing else [])
    raise_problems(
        f"--killed: no line is of process {name}." for name in killed if name not in processes
    )
    raise_problems(
        f"{name} has no line of a web process. Is it the log of one? If not, leave it out."
        for name in dict.fromkeys(map(str, files))
        if name not in ends
    )


class _Process:
    """The lines read of one process."""

    def __init__(self) -> None:
        self.needed: set[int] = set()  # numbers of purchases since the time
        self.before = 0  # the last number before it
        self.last = 0
        self.at = datetime.min.replace(tzinfo=UTC)
        self.stopped = False
        self.file = ""  # the one with the last line

    def add(self, line: LoggedPurchase | _Life, file: str, *, since: datetime) -> None:
        self.last = max(self.last, line.number)
        if line.at >= self.at:
            self.at, self.file = line.at, file
        if line.at < since:
            self.before = max(self.before, line.number)
        elif isinstance(line, LoggedPurchase):
            self.needed.add(line.number)
        self.stopped |= isinstance(line, _Life) and line.stops

    def gaps(self, name: str) -> Iterator[str]:
        """Names the missing lines."""
        last = self.before
        for number in [*sorted(each for each in self.needed if each > last), self.last + 1]:
            if number > last + 1:
                yield (
                    f"lines {last + 1} to {number - 1} of process {name} are missing. Give the file"
                    " that has them, such as the one before a rotation."
                )
            last = number

    def end(self, name: str, *, known: datetime) -> Iterator[str]:
        """Says that the log may lack its end: the process lived at the time `known`, and did not
        say that it stopped."""
        if not self.stopped and self.at >= known - 2 * timedelta(seconds=LIFE_SECONDS):
            yield (
                f"the lines of process {name} end at {self.at:%Y-%m-%d %H:%M:%S} UTC, and it did"
                f" not stop then. If it was killed then and its host went on, add --killed {name}."
                " Otherwise, give the file that has the rest."
            )


def _read(values: dict[str, Any] | None) -> LoggedPurchase | _Life:
    """Parses a line. Raises ValueError for a line that is damaged or not ours."""
    if values is None:
        raise ValueError
    is_life = values["event"] == LIFE
    try:
        if not is_authentic(values, SIGNED_LIFE if is_life else SIGNED):
            raise ValueError
        if is_life:
            return _Life(
                process=values["process"],
                number=int(values["number"]),
                at=datetime.fromisoformat(values["at"]),
                stops=values["stops"],
            )
        return LoggedPurchase(
            reference=values["reference"],
            client_id=int(values["client_id"]),
            price=Decimal(values["price"]),
            currency=values["currency"],
            sold_at=datetime.fromisoformat(values["sold_at"]),
            process=values["process"],
            number=int(values["number"]),
            codes=tuple(base64.b64decode(code, validate=True) for code in values["codes"]),
            sealed_request=base64.b64decode(values["request"], validate=True),
        )
    except (KeyError, TypeError, AttributeError, InvalidOperation) as error:
        raise ValueError from error
