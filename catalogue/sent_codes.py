"""The purchase log about codes that left for another cell (catalogue/transfers.py).

A restore to a moment before a transfer would put its codes back into stock, although another cell
sells them. `hold_codes` reads these lines and makes the codes void again (docs/operate/backup.md).

A code is named by half of its digest, as in the lines of purchases (orders/purchase_log.py).
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from django.conf import settings

from catalogue.codes import logged_code
from config.inputs import InputProblem
from config.log_files import line_mac
from config.logs import DirectLogger

EVENT = "codes_sent"
SIGNED = ("reference", "cell", "sent_at", "codes")
CODES_PER_LINE = 100  # the line has less than 4,096 bytes


def log_sent_codes(
    *, reference: str, cell: str, sent_at: datetime, digests: Iterable[bytes | memoryview]
) -> None:
    """Writes the lines of a committed transfer to `cell`, whatever LOG_LEVEL is.

    Raises InputProblem if the log cannot be written: its file must not leave then.
    """
    log = DirectLogger("catalogue.transfers", level="INFO", secrets=settings.LOG_SECRETS)
    remaining = iter(digests)
    try:
        while batch := list(islice(remaining, CODES_PER_LINE)):
            values = {
                "reference": reference,
                "cell": cell,
                "sent_at": sent_at.isoformat(),
                "codes": [logged_code(digest) for digest in batch],
            }
            log.info(EVENT, **values, mac=line_mac(EVENT, values))
    except (OSError, ValueError):
        raise InputProblem(
            "The lines of the sent codes cannot be written to stderr, so no file was written."
            " Correct that, and run the same command again."
        ) from None
