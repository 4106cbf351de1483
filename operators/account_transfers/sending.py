"""An account leaves this cell. Each step may be run again.

    1 close   the wallet, in one transaction: from now on nothing is sold to the account here, and
              its keys, clients and references do not change (accounts/moving.py)
    2 wait    until the responses of its last purchases are stored
    3 write   everything that its programs can ask for into a file, from one snapshot

Reads and replays go on here until staff switch the account off, just before the proxy sends its
keys to the other cell.
"""

import time
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from accounts.models import Account, ApiClient
from accounts.moving import mark_left
from audit.models import AuditAction
from audit.services import record_action
from catalogue.models import ReferenceLink, Shelf, StockTransfer, VoucherCode
from config.database.functions import commit_durably, remove_statement_timeout, snapshot
from config.database.key_ring import key_ring
from config.inputs import InputProblem, find_row
from config.transfer_file import FileKind, Header, new_header, write_file
from idempotency.models import IdempotencyRecord
from idempotency.services import open_response, response_row
from operators.account_transfers.models import AccountTransfer
from operators.account_transfers.rows import ROWS_AT_ONCE, Row, as_row, batches
from orders.codes import open_codes
from orders.models import LostPurchase, Order
from topups.models import Fulfilment, FulfilmentStatus
from wallets.models import LedgerEntry, Wallet
from wallets.services import close_wallet

# An attempt ends sooner, because its statements have timeouts. A web process that hangs for longer
# loses the replay (docs/operate/cells.md).
WAIT = timedelta(seconds=30)
SHOWN = 10


def send_account(*, account_id: int, to: str, reference: str, path: Path, trial: bool) -> Wallet:
    """Closes the account's wallet and writes the account to a file for the cell `to`.

    Run it again to write the file again. A `trial` closes nothing, and its file is only checked.
    Returns the wallet. Raises InputProblem, or sealing.CannotOpen.
    """
    header = new_header(FileKind.ACCOUNT, reference=reference, to=to, trial=trial)
    account = find_row(Account.objects.all(), account_id)
    if not Wallet.objects.filter(account=account).exists():
        raise InputProblem("The account has no wallet. Create it in the other cell instead.")
    key_ring()  # may register a key, which the snapshot could not
    if trial:
        _refuse_what_cannot_move(account, to)
    else:
        _close(account, header)
        _wait_for_responses(account)
    with snapshot():
        wallet = Wallet.objects.get(account=account)
        write_file(path, header, _rows_of(account, wallet))
    return wallet


@transaction.atomic
def _close(account: Account, header: Header) -> None:
    """Closes the wallet, unless an earlier run of the same transfer did it."""
    remove_statement_timeout()
    commit_durably()  # a crash must not open the wallet again: the file leaves after this
    used = AccountTransfer.objects.filter(reference=header.reference, sent=True).first()
    if used is not None and used.account_id != account.pk:
        raise InputProblem(f"The reference {used.reference} was used for another transfer.")
    mark_left(account)
    if close_wallet(account=account):
        _refuse_what_cannot_move(account, header.destination)
        account.refresh_from_db()  # locked now
        AccountTransfer.objects.create(
            reference=header.reference,
            account=account,
            sent=True,
            cell=header.destination,
            was_enabled=account.enabled,
        )
        record_action(
            actor=None,
            action=AuditAction.ACCOUNT_CHANGED,
            on=account,
            reference=account.name,
            note=f"Left for cell {header.destination}: {header.reference}",
        )
        return
    transfer = AccountTransfer.objects.get(account=account, sent=True)
    if (transfer.reference, transfer.cell) != (header.reference, header.destination):
        raise InputProblem(
            f"The account left for cell {transfer.cell} before: {transfer.reference}."
        )


def _refuse_what_cannot_move(account: Account, to: str) -> None:
    _refuse_open_topups(account)
    _refuse_return(account, to)


def _refuse_return(account: Account, to: str) -> None:
    """Cell `to` refuses for ever what it has had: the account's keys, and codes that it sent."""
    if AccountTransfer.objects.filter(account=account, sent=False, cell=to).exists():
        raise InputProblem(f"The account came from cell {to} and cannot return to it.")
    received = StockTransfer.objects.filter(
        hold=None, cell=to, shelf=OuterRef("shelf"), at__lte=OuterRef("created_at")
    )
    order = Order.objects.filter(Exists(received), client__account=account).first()
    if order is not None:
        raise InputProblem(
            f"Order {order.reference} may have codes that came from cell {to}, and codes cannot"
            " return to a cell. Nothing was changed: the account stays in this cell, or goes to"
            " another one."
        )


def _refuse_open_topups(account: Account) -> None:
    """Operators of this cell work on them, and their refunds go to this wallet."""
    unfinished = Fulfilment.objects.filter(account=account).filter(
        ~Q(status__in=[FulfilmentStatus.COMPLETED, FulfilmentStatus.FAILED])
        | Q(refund_due_at__isnull=False, refunded_at=None)
    )
    orders = list(unfinished.order_by("pk").values_list("order_reference", flat=True)[: SHOWN + 1])
    if orders:
        more = " and more" if len(orders) > SHOWN else ""
        raise InputProblem(
            f"Top-ups of the account are open: {', '.join(orders[:SHOWN])}{more}. Nothing was"
            " changed. Finish them first."
        )


def _wait_for_responses(account: Account) -> None:
    """A purchase stores its response just after its commit; replays must have it there, too."""
    now = timezone.now()
    just_bought = IdempotencyRecord.objects.filter(
        client__account=account, bought_at__gt=now - WAIT, response=None
    )
    while timezone.now() < now + WAIT and just_bought.exists():
        time.sleep(0.1)


def _rows_of(account: Account, wallet: Wallet) -> Iterator[Row]:
    """The rows of the file, in the order in which `receive_account` adds them."""
    left = AccountTransfer.objects.filter(account=account, sent=True).first()
    if left is not None:
        account.enabled = left.was_enabled  # it may have been switched off here since then
    yield {"account": as_row(account, "left_at"), "balance": str(wallet.balance)}
    clients = list(account.clients.order_by("pk").prefetch_related("keys"))
    for client in clients:
        keys = [as_row(key, "client_id", "form") for key in client.keys.all()]
        yield {"client": as_row(client, "account_id"), "id": client.pk, "keys": keys}
    for link in ReferenceLink.objects.filter(account=account).select_related("shelf"):
        place = [link.shelf.product_id, link.shelf.variation_id]
        yield {"link": link.reference, "shelf": place}
    for entry in LedgerEntry.objects.filter(wallet=wallet).order_by("pk").iterator():
        yield {"entry": as_row(entry, "wallet_id", "balance_after", "chain", "salt")}
    for client in clients:
        yield from _orders_of(client)
    for lost in LostPurchase.objects.filter(client__in=clients):
        yield {"lost": as_row(lost, "client_id", "hold_id"), "of": lost.client_id}
    for client in clients:
        yield from _records_of(client)


def _orders_of(client: ApiClient) -> Iterator[Row]:
    orders = Order.objects.filter(client=client).select_related("shelf", "fulfilment")
    with_history = orders.prefetch_related("fulfilment__events").order_by("number")
    for batch in batches(with_history.iterator(chunk_size=ROWS_AT_ONCE)):
        sold: dict[int | None, list[VoucherCode]] = defaultdict(list)
        codes = VoucherCode.objects.filter(order_id__in=[order.pk for order in batch])
        for code in codes.order_by("position"):
            sold[code.order_id].append(code)
        for order in batch:
            delivered = _codes(order, order.shelf, sold[order.pk]) if order.shelf else {}
            fulfilled = _history(order.fulfilment) if order.fulfilment else {}
            left_out = ("client_id", "shelf_id", "fulfilment_id", "codes_mac", "arrived_at")
            yield {"order": as_row(order, *left_out), "of": client.pk, **delivered, **fulfilled}


def _codes(order: Order, shelf: Shelf, stored: list[VoucherCode]) -> Row:
    codes = open_codes(
        client_id=order.client_id,
        reference=order.reference,
        stored_mac=bytes(order.codes_mac or b""),
        sealed_codes=[bytes(code.sealed) for code in stored],
        digests=[bytes(code.digest) for code in stored],
    )
    return {
        "shelf": [shelf.product_id, shelf.variation_id],
        "codes": [[code.code, code.serial_number, code.pin_code] for code in codes],
    }


def _history(fulfilment: Fulfilment) -> Row:
    return {
        "fulfilment": as_row(fulfilment, "account_id", "claimed_by_id"),
        "events": [as_row(event, "fulfilment_id") for event in fulfilment.events.all()],
    }


def _records_of(client: ApiClient) -> Iterator[Row]:
    """Keys that bought. A key in progress without an order never buys here; there it is new."""
    bought = IdempotencyRecord.objects.filter(client=client, order_reference__isnull=False)
    for record in bought.order_by("pk").iterator():
        stored = record.response
        response = stored and open_response(stored, response_row(client.pk, record.key))
        yield {
            "record": as_row(record, "client_id", "response"),
            "of": client.pk,
            "response": b64encode(response).decode() if response else None,
        }
