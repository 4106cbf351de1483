"""The purchase log: one line per purchase. With it, a restore that loses purchases sells nothing
twice (docs/operate/backup.md).

The line is written right after the commit, before the response is stored and sent, and again before
a retry receives the reference of an abandoned order. So there is a line for every order whose
reference a merchant may have. The line names each code by half of its digest, which is keyed and so
gives nothing away. The request, by which a retry is recognised, is sealed: the merchant chose the
idempotency key, and the log shows nothing that merchants sent. `mac` shows that the line is ours
(core/files/log_files.py). logged_purchases.py reads the lines back.

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
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import orjson
from django.conf import settings

from accounts.models import ApiClient
from core.database import sealing
from core.database.sealing import Context
from core.files.log_files import line_mac
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


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
