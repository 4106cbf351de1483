"""Stock that goes from one cell to another, each code once (docs/operate/cells.md).

The sender takes codes out of stock and writes them to a file; the receiver puts them into stock.
The sender chooses a reference once, so a transfer is known by the sender and the reference.
Sending again writes the same file, and receiving again changes nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from audit.models import AuditAction
from audit.services import record_action
from catalogue.code_import import ROWS_AT_ONCE, Row, add_codes, wait_for_import
from catalogue.codes import Code, code_digester, open_code
from catalogue.holds import hold_codes, void_hold
from catalogue.models import CodeHold, Shelf, StockTransfer, VoucherCode
from catalogue.selectors import find_shelf
from catalogue.sent_codes import log_sent_codes
from config.database.functions import commit_durably, remove_statement_timeout
from config.inputs import InputProblem
from config.transfer_file import FileKind, Header, Received, new_header, read_file, write_file


def send_stock(
    *,
    product_id: int,
    variation_id: int | None,
    quantity: int,
    to: str,
    reference: str,
    path: Path,
    actor: str,
) -> StockTransfer:
    """Takes codes out of stock for ever and writes them to a file for the cell `to`.

    The codes that would be sold last are taken. With the reference of an earlier transfer, takes
    nothing and writes its file again. The purchase log names the codes before the file exists.
    Raises InputProblem, or sealing.CannotOpen.
    """
    if quantity < 1:
        raise InputProblem("Send at least one code.")
    header = new_header(FileKind.STOCK, reference=reference, to=to)
    shelf = find_shelf(product_id=product_id, variation_id=variation_id)
    with transaction.atomic():
        remove_statement_timeout()
        commit_durably()  # a crash must not return the codes to stock: the file leaves after this
        Shelf.objects.select_for_update(no_key=True).get(pk=shelf.pk)
        transfer = _sent().filter(reference=header.reference).first()
        if transfer is None:
            transfer = _take(shelf, quantity, header, actor)
        elif (transfer.shelf_id, transfer.codes, transfer.cell) != (shelf.pk, quantity, to):
            raise _used_before(transfer)
    with transaction.atomic():  # the cursor of many rows lives in it
        remove_statement_timeout()
        codes = VoucherCode.objects.filter(hold=transfer.hold_id).order_by("position")
        log_sent_codes(
            reference=transfer.reference,
            cell=transfer.cell,
            sent_at=transfer.at,
            digests=codes.values_list("digest", flat=True).iterator(),
        )
        write_file(path, header, _rows_of(shelf, codes))
    return transfer


@dataclass(frozen=True)
class ReceivedStock(Received[StockTransfer]):
    """What became of a file of codes.

    already_here: how many of its codes this cell had before. They are void in the other cell, so
        no code is for sale twice.
    void_here: how many of its codes are void in this cell now, such as those it sent away.
    """

    already_here: int = 0
    void_here: int = 0


def receive_stock(*, path: Path) -> ReceivedStock:
    """Puts the codes of a file into stock, except for those that this cell has. A file that was
    received before is compared with what is here, and changes nothing.

    Reads the file twice. Raises InputProblem, or sealing.CannotOpen.
    """
    code_digester()  # may register an encryption key, which a rollback would undo
    with transaction.atomic():
        remove_statement_timeout()
        wait_for_import()  # nobody else adds codes until the commit
        with read_file(path, FileKind.STOCK) as (header, rows):
            shelf = _read_shelf(rows)
            codes = _compare(rows)
        received = StockTransfer.objects.filter(hold=None, cell=header.origin)
        transfer = received.filter(reference=header.reference).first()
        before = transfer is not None
        if transfer is None:
            with read_file(path, FileKind.STOCK) as (header, rows):
                next(rows)
                transfer = _put_into_stock(header, shelf, rows, codes)
        elif len(codes.here) < codes.number:
            raise InputProblem(
                f"Another file with the reference {transfer.reference} was received:"
                f" {codes.number - len(codes.here)} codes of this one are not here. Nothing was"
                " changed. See “After a restore” in docs/operate/cells.md."
            )
    return ReceivedStock(
        transfer,
        before=before,
        already_here=codes.number - transfer.codes,
        void_here=codes.void,
    )


@transaction.atomic
def void_sent_codes(*, reference: str, cell: str, digests: Sequence[bytes], held_by: str) -> int:
    """Voids again the codes that a restore to a moment before their transfer put back into stock.

    Records the transfer, so `send_stock` can write its file again. Returns how many codes.
    """
    reason = _reason(reference, cell)
    hold, number = hold_codes(digests=digests, reason=reason, held_by=held_by)
    if hold is not None:
        void_hold(hold.pk)
        if not _sent().filter(reference=reference).exists():
            shelf = hold.codes.values_list("shelf", flat=True)[:1].get()
            StockTransfer.objects.create(
                reference=reference, cell=cell, shelf_id=shelf, codes=number, hold=hold
            )
    return number


def _sent() -> QuerySet[StockTransfer]:
    return StockTransfer.objects.filter(hold__isnull=False)


def _reason(reference: str, cell: str) -> str:
    return f"Sent to cell {cell}: {reference}"


def _take(shelf: Shelf, quantity: int, header: Header, actor: str) -> StockTransfer:
    """Voids the last codes of the shelf, whose row is locked."""
    hold = CodeHold.objects.create(
        reason=_reason(header.reference, header.destination),
        held_by=actor,
        voided_at=Now(),
    )
    in_stock = VoucherCode.objects.filter(shelf=shelf, order_id=None, hold=None)
    last = in_stock.order_by("-position").values("pk")[:quantity]
    taken = VoucherCode.objects.filter(pk__in=last).update(hold=hold)
    if taken != quantity:
        raise InputProblem(f"The shelf has {taken} codes in stock. Nothing was sent.")
    Shelf.objects.filter(pk=shelf.pk).update(available_stock=F("available_stock") - quantity)
    record_action(
        actor=None,
        action=AuditAction.CODES_VOIDED,
        on=hold,
        note=f"Codes: {quantity}. {hold.reason}",
    )
    return StockTransfer.objects.create(
        reference=header.reference,
        cell=header.destination,
        shelf=shelf,
        codes=quantity,
        hold=hold,
    )


@dataclass
class _Codes:
    """The codes of a file: their number, the digests of those that this cell has, and how many of
    these are void."""

    number: int = 0
    here: set[bytes] = field(default_factory=set)
    void: int = 0


def _read_shelf(rows: Iterator[Any]) -> Shelf:
    place = next(rows)
    return find_shelf(product_id=place["product"], variation_id=place["variation"])


def _compare(rows: Iterator[Any]) -> _Codes:
    digest, codes = code_digester(), _Codes()
    while batch := [digest(code) for code, *_ in islice(rows, ROWS_AT_ONCE)]:
        stored = VoucherCode.objects.filter(digest__in=batch)
        found = {
            bytes(one): voided for one, voided in stored.values_list("digest", "hold__voided_at")
        }
        codes.number += len(batch)
        codes.here.update(found)
        codes.void += sum(voided is not None for voided in found.values())
    return codes


def _put_into_stock(
    header: Header, shelf: Shelf, rows: Iterator[Any], codes: _Codes
) -> StockTransfer:
    """Adds the codes that are not here. COPY is under way then, so it cannot ask which."""
    number = codes.number - len(codes.here)
    if number:
        add_codes(shelf=shelf, rows=_read_codes(rows, codes.here))
    record_action(
        actor=None,
        action=AuditAction.CODES_IMPORTED,
        on=shelf,
        note=f"Codes: {number}. From cell {header.origin}: {header.reference}."
        f" Already here: {len(codes.here)}, void here: {codes.void}",
    )
    return StockTransfer.objects.create(
        reference=header.reference, cell=header.origin, shelf=shelf, codes=number
    )


def _rows_of(shelf: Shelf, codes: QuerySet[VoucherCode]) -> Iterator[object]:
    yield {"product": shelf.product_id, "variation": shelf.variation_id}
    for sealed, digest in codes.values_list("sealed", "digest").iterator():
        code = open_code(sealed, digest)
        yield [code.code, code.serial_number, code.pin_code]


def _read_codes(rows: Iterator[list[str]], here: set[bytes]) -> Iterator[Row]:
    """The codes that are not `here`, with the numbers of their lines."""
    digest = code_digester()
    for line, parts in enumerate(rows, start=3):
        if digest(parts[0]) not in here:
            yield line, Code(*parts)


def _used_before(transfer: StockTransfer) -> InputProblem:
    return InputProblem(
        f"The reference {transfer.reference} was used before: {transfer.codes} codes of shelf"
        f" {transfer.shelf_id} to cell {transfer.cell}. Nothing was changed. Choose another one."
    )
