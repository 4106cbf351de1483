"""The purchase log: one line per purchase. With it, a restore that loses purchases sells nothing
twice (docs/operate/backup.md).

The line is written right after the commit, before the response is stored and sent: when somebody
has received the codes of an order, its line exists. It names each code by its digest, which is
keyed and so gives nothing away. The idempotency key and the fingerprint, by which a retry is
recognised, are sealed: the log shows nothing that merchants sent.
"""

import base64
import fileinput
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings

from config.database import sealing
from config.database.sealing import Context
from config.inputs import InputProblem
from config.logs import direct_logger
from idempotency.services import Claim

EVENT = "order_created"


@dataclass(frozen=True)
class LoggedPurchase:
    """One line of the log. `price` is the total in units of `currency`."""

    reference: str
    client_id: int
    key: str
    fingerprint: bytes
    price: Decimal
    currency: str
    sold_at: datetime
    digests: tuple[bytes, ...]


def log_purchase(
    *,
    claim: Claim,
    reference: str,
    price: Decimal,
    currency: str,
    sold_at: datetime,
    digests: Sequence[bytes] = (),
) -> None:
    """Writes the line of a committed purchase, whatever LOG_LEVEL is. A log that cannot be written
    does not fail the purchase."""
    with suppress(OSError, ValueError):  # such as a full disk
        _log().info(
            EVENT,
            reference=reference,
            client_id=claim.client_id,
            request=_seal_request(claim, reference),
            price=str(price),
            currency=currency,
            sold_at=sold_at.isoformat(),
            codes=[bytes(digest).hex() for digest in digests],
        )


@cache
def _log() -> Any:
    return direct_logger("orders.purchases", level="INFO", secrets=settings.LOG_SECRETS)


def _seal_request(claim: Claim, reference: str) -> str:
    values = [claim.key, claim.fingerprint.hex()]
    sealed = sealing.seal(orjson.dumps(values), Context.LOGGED_REQUEST, reference.encode())
    return base64.b64encode(sealed).decode()


def _open_request(sealed: str, reference: str) -> tuple[str, bytes]:
    """The idempotency key and the fingerprint. Raises CannotOpen."""
    stored = base64.b64decode(sealed, validate=True)
    opened = sealing.open_sealed(stored, Context.LOGGED_REQUEST, reference.encode())
    key, fingerprint = orjson.loads(opened)
    return key, bytes.fromhex(fingerprint)


def read_purchases(files: Sequence[Path], *, since: datetime) -> Iterator[LoggedPurchase]:
    """The purchases of log files since a time, in the order of the lines; `-` is stdin.

    Other lines are skipped, and so is what a log collector put in front of the JSON. Raises
    CannotOpen if this process lacks the encryption key of a line, and InputProblem for a damaged
    line of a purchase, or for a file that cannot be read.
    """
    with fileinput.input(files, encoding="utf-8", errors="replace") as lines:
        try:
            for line in lines:
                if f'"{EVENT}"' in line:
                    place = f"{lines.filename()}:{lines.filelineno()}"
                    purchase = _read(line, place)
                    if purchase and purchase.sold_at >= since:
                        yield purchase
        except OSError as error:
            raise InputProblem(f"Cannot read the log: {error.strerror}: {error.filename}") from None


def _read(line: str, place: str) -> LoggedPurchase | None:
    """The purchase of a line; None if the line only quotes the event's name."""
    try:
        values = json.loads(line[line.index("{") :])
        if values.get("event") != EVENT:
            return None
        key, fingerprint = _open_request(values["request"], values["reference"])
        return LoggedPurchase(
            reference=values["reference"],
            client_id=values["client_id"],
            key=key,
            fingerprint=fingerprint,
            price=Decimal(values["price"]),
            currency=values["currency"],
            sold_at=datetime.fromisoformat(values["sold_at"]),
            digests=tuple(bytes.fromhex(digest) for digest in values["codes"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation):
        raise InputProblem(f"{place}: this line is damaged; nothing was held.") from None
