"""The purchase log: one line per purchase. With it, a restore that loses purchases sells nothing
twice (docs/operate/backup.md).

The line is written right after the commit, before the response is stored and sent, and again before
a retry receives the reference of an abandoned order. So there is a line for every order whose
reference a merchant may have. The line names each code by half of its digest, which is keyed and so
gives nothing away. The request, by which a retry is recognised, is sealed: the merchant chose the
idempotency key, and the log shows nothing that merchants sent. `mac` shows that the line is ours
(core/log_files.py).

Each process numbers its lines from 1, under a name that it chooses at random. So a reader sees
which lines are missing between two, and before the first.

It goes to stderr, and to a file a day in PURCHASE_LOG_DIR if that is set: what reads stderr may be
deleted with its container, or keep only the newest lines. The line of the largest order has less
than 4,096 bytes, so that processes that share a pipe or a file never mix their lines.
"""

import base64
import errno
import itertools
import os
import secrets
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings

from accounts.models import ApiClient
from core.database import sealing
from core.database.sealing import Context
from core.inputs import raise_problems
from core.log_files import is_authentic, line_mac, read_events
from core.telemetry.logs import DirectLogger
from orders.metrics import LINES_LOST
from orders.selectors import orders_of

EVENT = "order_created"
CODE_BYTES = 16  # of a digest
SIGNED = (
    *("reference", "client_id", "request", "price", "currency", "sold_at", "codes"),
    *("process", "number"),
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

    def request(self) -> tuple[str, bytes]:
        """The idempotency key and the fingerprint. Raises CannotOpen if this process lacks the
        encryption key of that time."""
        request = sealing.open_sealed(
            self.sealed_request, Context.LOGGED_REQUEST, self.reference.encode()
        )
        key, fingerprint = orjson.loads(request)
        return key, bytes.fromhex(fingerprint)


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
    process, numbers = _numbering(os.getpid())
    values = {
        "reference": reference,
        "client_id": client_id,
        "request": _text(sealed),
        "price": str(price),
        "currency": currency,
        "sold_at": sold_at.isoformat(),
        "codes": [_text(digest[:CODE_BYTES]) for digest in digests],
        "process": process,
        "number": next(numbers),
    }
    try:
        _log().info(EVENT, **values, mac=line_mac(EVENT, values))
    except (OSError, ValueError):  # such as a full disk
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


@cache
def _numbering(_pid: int) -> tuple[str, Iterator[int]]:
    """The name of this process in the log, and the numbers of its lines. A fork has its own."""
    return secrets.token_hex(4), itertools.count(1)


@cache
def _log() -> DirectLogger:
    folder = settings.PURCHASE_LOG_DIR
    if folder:
        with suppress(OSError):  # then no line can be written, which is counted
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    streams = [sys.stderr, *([_FileOfTheDay(folder)] if folder else [])]
    return DirectLogger(
        "orders.purchases", level="INFO", secrets=settings.LOG_SECRETS, stream=_AllOf(streams)
    )


class _FileOfTheDay:
    """Appends each text with one call of the system, so processes can share the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, text: str) -> None:
        path = self.folder / f"purchases-{datetime.now(UTC):%Y-%m-%d}.log"
        data = text.encode()
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.write(file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(file)

    def flush(self) -> None:
        """Nothing is kept back."""


class _AllOf:
    """Writes to each stream, whether or not another one can be written, then raises the error."""

    def __init__(self, streams: Sequence[Any]) -> None:
        self.streams = streams

    def write(self, text: str) -> None:
        failed = None
        for stream in self.streams:
            try:
                stream.write(text)
                stream.flush()
            except (OSError, ValueError) as error:
                failed = error
        if failed:
            raise failed

    def flush(self) -> None:
        """Done by `write`."""


def read_purchases(
    files: Sequence[Path],
    *,
    since: datetime,
    skip_damaged: bool = False,
    skip_missing: bool = False,
) -> Iterator[LoggedPurchase]:
    """The purchases of log files since a time, in the order of the lines.

    `-` is stdin, and a file may be compressed (`.gz`). Skips other lines, and what a log collector
    puts around a line: text in front, or a JSON object with the line in one of its strings.

    Raises InputProblem for lines that are damaged, missing, or of another service, unless they are
    skipped; for a file without a purchase, which may be the wrong one; and for a file that cannot
    be read.
    """
    damaged, has_purchase = [], dict.fromkeys(map(str, files), False)
    series: dict[str, _Lines] = defaultdict(_Lines)
    for line in read_events(files, EVENT):
        try:
            purchase = _read(line.values)
        except ValueError:
            damaged.append(f"{line.place}: this line is damaged, or not ours")
            continue
        has_purchase[line.file] = True
        series[purchase.process].add(purchase, line.file, is_needed=purchase.sold_at >= since)
        if purchase.sold_at >= since:
            yield purchase
    if not skip_damaged:
        raise_problems(damaged)
    if not skip_missing:
        raise_problems(gap for process, each in series.items() for gap in each.gaps(process))
    raise_problems(
        f"{name} has no line of a purchase. Is it the log of a web process? If so, leave it out."
        for name, is_one in has_purchase.items()
        if not is_one
    )


class _Lines:
    """The numbers that were read of one process, and the first that may be of a lost purchase."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.first: int | None = None
        self.file = ""

    def add(self, purchase: LoggedPurchase, file: str, *, is_needed: bool) -> None:
        self.numbers.add(purchase.number)
        self.file = file
        if is_needed:
            self.first = min(purchase.number, self.first or purchase.number)

    def gaps(self, process: str) -> Iterator[str]:
        """Names the missing lines. The line before the first needed one shows that none is missing
        between them; number 1 has none before it."""
        if self.first is None:
            return
        last = self.first - 1 if self.first - 1 in self.numbers else 0
        for number in sorted(each for each in self.numbers if each >= self.first):
            if number > last + 1:
                yield (
                    f"{self.file}: lines {last + 1} to {number - 1} of process {process} are"
                    " missing. Give the file that has them, such as the one before a rotation."
                )
            last = number


def _read(values: dict[str, Any] | None) -> LoggedPurchase:
    """The purchase of a line. Raises ValueError for a line that is damaged or not ours."""
    if values is None:
        raise ValueError
    try:
        if not is_authentic(values, SIGNED):
            raise ValueError
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
