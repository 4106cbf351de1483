"""Ends attempts that lost the database, as soon as it responds again.

Nobody knows whether such an attempt has bought. idempotency/sql/end_attempt.sql ends it if it has
not, and makes sure that it never will: a retry then buys at once. If it has bought, the record
stays as it is (docs/decisions/0003-attempt-numbers.md).

Each process remembers its own attempts in memory. A process that ends forgets them, and a retry
waits for five minutes, as after every crash.
"""

import time
from collections import deque

import structlog
from django.conf import settings
from django.db import Error, connection

from idempotency.services import Claim, end_attempt

logger = structlog.get_logger(__name__)

TRIED_EVERY_SECONDS = 1.0
MOST = 10_000  # attempts of one process

_lost: deque[tuple[float, Claim]] = deque()  # with the time at which a retry may take over anyway


def end_later(claim: Claim) -> None:
    """Lets `end_lost_attempts` end the attempt. Beyond MOST, nothing ends it early."""
    if len(_lost) < MOST:
        _lost.append((time.monotonic() + settings.IDEMPOTENCY_IN_PROGRESS_SECONDS, claim))


def end_lost_attempts() -> None:
    """Ends what `end_later` was told, in one thread. After an error, the next call continues."""
    if not _lost:
        return
    try:
        while _lost:
            taken_over_from, claim = _lost[0]
            if time.monotonic() < taken_over_from and end_attempt(claim):
                logger.info("attempt_ended", record=claim.record_id)
            _lost.popleft()
    except Error:
        pass  # the database is still away
    finally:
        connection.close()
