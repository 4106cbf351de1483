"""Codes that were imported twice, because quotation marks or marks of a spreadsheet were around one
of them.

The digest of a code does not depend on such marks (`normal_form`). Codes that were stored before it
was so have another digest. A task looks through all codes once, and holds those that repeat
another.
"""

from collections.abc import Iterator

from django.db import transaction
from django.db.models import Q

from catalogue.models import CodeDigest, CodeTrace, TraceProgress, VoucherCode
from catalogue.stock.codes import code_digester, half_digest, normal_form, open_code
from catalogue.stock.holds import hold_codes
from catalogue.stock.traces import trace_digester
from core.database.sealing import CannotOpen

HELD_BY = "repeats"  # reconcile reports these holds (catalogue/backoffice.py)
REASON = "Repeats another code, but for quotation marks or marks of a spreadsheet."
PROGRESS = 2  # the row of TraceProgress; that of the traces is 1
BATCH = 2000
AT_ONCE = 40_000  # codes in one run of the task


def hold_repeats(*, at_most: int = AT_ONCE) -> int:
    """Looks through codes that it has not seen yet, in the order of their ids; returns how many
    codes it holds. Each batch is a transaction with its progress."""
    done = held = 0
    while done < at_most:
        number, holds = _look_through_batch()
        done, held = done + number, held + holds
        if number < BATCH:
            break
    return held


@transaction.atomic
def _look_through_batch() -> tuple[int, int]:
    TraceProgress.objects.get_or_create(pk=PROGRESS)
    progress = TraceProgress.objects.select_for_update().get(pk=PROGRESS)
    codes = VoucherCode.objects.filter(pk__gt=progress.last_code).order_by("pk")
    rows = list(codes.values_list("pk", "sealed", "digest")[:BATCH])
    if not rows:
        return 0, 0
    repeats = set(_find_repeats([(pk, bytes(sealed), bytes(own)) for pk, sealed, own in rows]))
    held = 0
    if repeats:
        _hold, held = hold_codes(codes=Q(pk__in=repeats), reason=REASON, held_by=HELD_BY)
    TraceProgress.objects.filter(pk=PROGRESS).update(last_code=rows[-1][0])
    return len(rows), held


def _find_repeats(rows: list[tuple[int, bytes, bytes]]) -> Iterator[int]:
    """The codes of these rows that repeat another one, and those others.

    A code whose digest depends on its marks gets a trace of its text, by which later rows, and
    staff, find it.
    """
    digest, trace = code_digester(), trace_digester()
    texts = {pk: text for pk, sealed, own in rows if (text := _text(sealed, own))}
    marked = {
        pk: digest(texts[pk])
        for pk, _sealed, own in rows
        if pk in texts and digest(texts[pk]) != own
    }
    CodeTrace.objects.bulk_create(
        [CodeTrace(code_id=pk, digest=trace(texts[pk])) for pk in marked], ignore_conflicts=True
    )
    plain = {pk: half_digest(one) for pk, one in marked.items()}
    twins = CodeDigest.objects.in_bulk(plain.values())
    for pk, one in plain.items():
        if one in twins:
            yield from (pk, twins[one].code_id)
    by_trace: dict[int, list[int]] = {}
    for pk, text in texts.items():
        by_trace.setdefault(trace(text), []).append(pk)
    for other, found in CodeTrace.objects.filter(digest__in=by_trace).values_list("code", "digest"):
        for pk in by_trace[found]:
            if pk != other and _repeats(other, texts[pk]):
                yield from (pk, other)


def _repeats(pk: int, text: str) -> bool:
    """Whether the code with this id has this text. A trace may be that of a serial number."""
    sealed, digest = VoucherCode.objects.values_list("sealed", "digest").get(pk=pk)
    return normal_form(_text(bytes(sealed), bytes(digest))) == normal_form(text)


def _text(sealed: bytes, digest: bytes) -> str:
    """The text of a stored code; empty if it does not open: `reconcile --decrypt` reports it."""
    try:
        return open_code(sealed, digest).code
    except CannotOpen:
        return ""
