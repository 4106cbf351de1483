"""The purchase log: one line per purchase. With it, a restore that loses purchases sells nothing
twice (docs/operate/backup.md).

The line is written right after the commit, before the response is stored and sent, and again before
a retry receives the reference of an abandoned order. So there is a line for every order whose
reference a merchant may have. The line names each code by half of its digest, which is keyed and so
gives nothing away. The request, by which a retry is recognised, is sealed: the merchant chose the
idempotency key, and the log shows nothing that merchants sent. `mac` shows that the line is ours
(core/files/log_files.py).

Each process numbers its purchases from 1, under a name that it chooses at random. Every minute, and
when it stops, a web process also writes a line with the number of its purchases. So a reader sees
which lines are missing, also after the last one.

It goes to stderr, and to a file a day in PURCHASE_LOG_DIR if that is set: what reads stderr may be
deleted with its container, or keep only the newest lines. The line of the largest order has less
than 4,096 bytes, so that processes that share a pipe or a file never mix their lines.
"""

import base64
import errno
import os
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import orjson
from django.conf import settings

from accounts.models import ApiClient
from core.database import sealing
from core.database.sealing import Context
from core.files.log_files import is_authentic, line_mac, read_events
from core.inputs import raise_problems
from core.telemetry.logs import DirectLogger, stderr_writer
from core.telemetry.metrics import Count
from orders.selectors import orders_of

PURCHASE = "order_created"
LIFE = "orders_logged"
LIFE_SECONDS = 60.0
CODE_BYTES = 16  # of a digest
SIGNED = (
    *("reference", "client_id", "request", "price", "currency", "sold_at", "codes"),
    *("process", "number"),
)
SIGNED_LIFE = ("process", "number", "at", "stops")

LINES_LOST = Count(
    "voucher_purchase_lines_lost",
    "Lines of the purchase log that a process could not write, for example to a full disk.",
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


def log_purchase(
    *,
    client_id: int,
    key: str,
    fingerprint: bytes,
    reference: str,
    price: Decimal,
    currency: str,
    sold_at: datetime,
    digests: Sequence[bytes] = (),
) -> None:
    """Writes the line of a committed purchase, whatever LOG_LEVEL is. A log that cannot be written
    does not fail the purchase."""
    request = orjson.dumps([key, fingerprint.hex()])
    sealed = sealing.seal(request, Context.LOGGED_REQUEST, reference.encode())
    process = _this_process(os.getpid())
    values = {
        "reference": reference,
        "client_id": client_id,
        "request": _text(sealed),
        "price": str(price),
        "currency": currency,
        "sold_at": sold_at.isoformat(),
        "codes": [_text(digest[:CODE_BYTES]) for digest in digests],
        "process": process.name,
        "number": process.count_purchase(),
    }
    if not _write(PURCHASE, values):
        LINES_LOST.add()


def log_abandoned(*, client: ApiClient, key: str, fingerprint: bytes, reference: str) -> bool:
    """Writes the line of the client's order with this reference, before the client receives it.
    Returns whether the order exists: a restore of the database may have lost it.

    The process that bought wrote none if it was killed, or if it lost its connection while the
    database committed.
    """
    orders = list(orders_of(client, reference=reference))
    for order in orders:
        log_purchase(
            client_id=client.pk,
            key=key,
            fingerprint=fingerprint,
            reference=reference,
            price=order["total_price"],
            currency=order["currency"],
            sold_at=order["created_at"],
            digests=order["digests"] or (),
        )
    return bool(orders)


def log_life(*, stops: bool = False) -> None:
    """Writes how many purchases this process has logged. With `stops`, it will log no more."""
    process = _this_process(os.getpid())
    _write(
        LIFE,
        {
            "process": process.name,
            "number": process.purchases,
            "at": datetime.now(UTC).isoformat(),
            "stops": stops,
        },
    )


def _write(event: str, values: dict[str, Any]) -> bool:
    """Writes a line; returns whether it could be written. A full disk is one reason why not."""
    try:
        _log().info(event, **values, mac=line_mac(event, values))
    except (OSError, ValueError):
        return False
    return True


class _ThisProcess:
    """The name of this process in the log, and the number of its purchases."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(4)
        self.purchases = 0
        self.lock = Lock()

    def count_purchase(self) -> int:
        """The number of the next purchase, which no other thread gets."""
        with self.lock:
            self.purchases += 1
            return self.purchases


@cache
def _this_process(_pid: int) -> _ThisProcess:
    """A fork has its own name and numbers."""
    return _ThisProcess()


@cache
def _log() -> DirectLogger:
    folder = settings.PURCHASE_LOG_DIR
    writers: list[Callable[[bytes], None]] = [stderr_writer()]
    if folder:
        with suppress(OSError):  # then no line can be written, which is counted
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        writers.append(_FileOfTheDay(folder))
    return DirectLogger(
        "orders.purchases", level="INFO", secrets=settings.LOG_SECRETS, write=_AllOf(writers)
    )


class _FileOfTheDay:
    """Appends each line with one call of the system, so processes can share the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, line: bytes) -> None:
        path = self.folder / f"purchases-{datetime.now(UTC):%Y-%m-%d}.log"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.write(file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(file)


LOST_FOR_GOOD = (
    "Lines are missing. If they cannot be found, go on with --skip-missing, and then hold all"
    " codes in stock with hold_codes --all"
)


class _AllOf:
    """Calls each writer, whether or not another one can write, then raises the error."""

    def __init__(self, writers: Sequence[Callable[[bytes], None]]) -> None:
        self.writers = writers

    def __call__(self, line: bytes) -> None:
        failed = None
        for write in self.writers:
            try:
                write(line)
            except (OSError, ValueError) as error:
                failed = error
        if failed:
            raise failed


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


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
