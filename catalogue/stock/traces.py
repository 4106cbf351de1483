"""Traces: keyed digests of serial numbers and PINs, by which staff find a code.

They are in a table of their own: a sale changes the row of a code, and would have to add an entry
to each index of its table. A task writes them, for new codes and for those that were there before.
"""

import hmac
from collections.abc import Callable, Iterator

from django.db import transaction
from django.db.models import Q

from catalogue.models import CodeDigest, CodeTrace, TraceProgress, VoucherCode
from catalogue.stock.codes import Code, code_digester, half_digest, normal_form, open_code
from core.database.key_ring import key_ring
from core.database.sealing import CannotOpen

SHORTEST = 6  # too many codes share a shorter serial number or PIN
DIGEST_BYTES = 8  # of a keyed SHA-256: enough to tell all codes of a shop apart
BATCH = 2000
AT_ONCE = 40_000  # codes in one run of the task, which has 25 seconds
MAX_CODES = 5  # that a search returns


def find_codes(text: str) -> list[VoucherCode]:
    """The codes whose text, serial number or PIN this is, as it is written or in capital letters,
    the newest first.

    They are found by digests alone: the text itself is in no statement. Raises
    sealing.CannotOpen.
    """
    texts, digest, trace = {text, text.upper()}, code_digester(), trace_digester()
    digests = CodeDigest.objects.filter(digest__in=[half_digest(digest(one)) for one in texts])
    matches = Q(pk__in=list(digests.values_list("code_id", flat=True)))
    if len(normal_form(text)) >= SHORTEST:
        traces = CodeTrace.objects.filter(digest__in=[trace(one) for one in texts])
        newest = traces.order_by("-code").values_list("code", flat=True)
        matches |= Q(pk__in=list(newest[:MAX_CODES]))
    codes = VoucherCode.objects.filter(matches).defer("sealed", "digest").order_by("-pk")
    return list(codes.select_related("shelf__product", "shelf__variation__product", "hold"))


def trace_codes(*, at_most: int = AT_ONCE) -> int:
    """Writes the traces of codes that have none yet, in the order of their ids; returns of how many
    codes.

    Imports run one at a time, so the ids of an import that has not ended are larger than all that
    are visible: none is left out. Each batch of codes is a transaction with its progress, so it can
    be stopped at any time.
    """
    done = 0
    while done < at_most:
        number = _trace_batch()
        done += number
        if number < BATCH:
            break
    return done


def lock_tracing() -> None:
    """Keeps `trace_codes` out until the end of the transaction."""
    TraceProgress.objects.get_or_create(pk=1)
    TraceProgress.objects.select_for_update().get(pk=1)


@transaction.atomic
def _trace_batch() -> int:
    lock_tracing()
    progress = TraceProgress.objects.get(pk=1)
    codes = VoucherCode.objects.filter(pk__gt=progress.last_code).order_by("pk")
    rows = list(codes.values_list("pk", "sealed", "digest")[:BATCH])
    if rows:
        digest = trace_digester()
        traces = {
            (pk, digest(part)) for pk, *stored in rows for part in _parts(*map(bytes, stored))
        }
        CodeTrace.objects.bulk_create(
            [CodeTrace(code_id=pk, digest=one) for pk, one in sorted(traces)],
            ignore_conflicts=True,
        )
        TraceProgress.objects.filter(pk=1).update(last_code=rows[-1][0])
    return len(rows)


def _parts(sealed: bytes, digest: bytes) -> Iterator[str]:
    """The parts of a stored code that get a trace. A code that does not open has none:
    `reconcile --decrypt` reports it."""
    try:
        code: Code = open_code(sealed, digest)
    except CannotOpen:
        return
    for part in (code.serial_number, code.pin_code):
        if len(normal_form(part)) >= SHORTEST:
            yield part


def trace_digester() -> Callable[[str], int]:
    """The function that computes the digest of a trace from a serial number or PIN."""
    keyed = hmac.new(key_ring().derive(b"code-trace"), digestmod="sha256")

    def digest(part: str) -> int:
        this = keyed.copy()
        this.update(normal_form(part).encode())
        return int.from_bytes(this.digest()[:DIGEST_BYTES], signed=True)

    return digest
