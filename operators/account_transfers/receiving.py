"""An account arrives from another cell: everything in its file is added, in one transaction.

Ids of this cell are new, except for those of the catalogue. The ids of clients follow from the
file: the purchase log names the same client after a restored cell received the file again. Codes
and stored responses are sealed with the keys of this cell, for their new rows. The ledger's trigger
posts each entry again, so the balance follows from the entries here, too.
"""

import hashlib
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from django.db import IntegrityError, connection, transaction

from accounts.models import Account, ApiClient, ApiKey
from audit.models import AuditAction
from audit.services import record_action
from catalogue.code_import import wait_for_import
from catalogue.codes import Code, code_digester, seal_code
from catalogue.models import ReferenceLink, Shelf
from config.database.columns import BOOKING_REFERENCE_LENGTH
from config.database.functions import remove_statement_timeout
from config.database.key_ring import check_keys
from config.database.sealing import Context, seal
from config.inputs import InputProblem
from config.transfer_file import FileKind, Header, Received, read_file
from idempotency.models import IdempotencyRecord
from idempotency.services import response_row
from operators.account_transfers.models import AccountTransfer
from operators.account_transfers.rows import Row, batches, from_row
from orders.codes import codes_mac
from orders.models import ClientCounter, LostPurchase, Order
from topups.models import Fulfilment, FulfilmentEvent, TopUpProduct
from wallets.models import LedgerEntry, Wallet
from wallets.services import open_wallet

# Codes get their positions, by which an order shows them, in the order of the arrays.
ADD_SOLD_CODES = """
    INSERT INTO catalogue_vouchercode (shelf_id, sealed, digest, order_id)
    SELECT * FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[], %s::bigint[])
"""


def receive_account(*, path: Path) -> Received[AccountTransfer]:
    """Adds the account of a file. A file that was received before is compared with what is here,
    and changes nothing.

    Raises InputProblem, or sealing.CannotOpen.
    """
    code_digester()  # may register an encryption key, which a rollback would undo
    with read_file(path, FileKind.ACCOUNT) as (header, rows), transaction.atomic():
        remove_statement_timeout()
        received = AccountTransfer.objects.filter(sent=False, cell=header.origin)
        earlier = received.filter(reference=header.reference).first()
        if earlier is not None:
            _refuse_another_file(earlier, rows)
            return Received(earlier, before=True)
        wait_for_import()  # a key that seals is not retired until the commit
        check_keys()  # under that lock: it may have been retired since the process started
        try:
            transfer = _Arrival(header).add(rows)
        except IntegrityError as error:
            raise InputProblem(
                f"The account does not fit into this cell ({_constraint(error)}). Nothing was"
                " changed."
            ) from None
        transaction.set_rollback(header.trial)
    return Received(transfer, trial=header.trial)


def moved_keys(account: Account, cell: str) -> list[str]:
    """The lines of HAProxy's moved.map for the account's live keys."""
    keys = ApiKey.objects.live().filter(client__account=account).order_by("pk")
    return [f"{prefix} {cell}" for prefix in keys.values_list("prefix", flat=True)]


def _client_id(origin: str, there: int) -> int:
    """The id of a client that has the id `there` in the cell `origin`: always the same, below 2^49
    and above every id of this cell's own clients."""
    digest = hashlib.sha256(f"{origin}:{there}".encode()).digest()
    return 2**48 + int.from_bytes(digest[:6])


def _refuse_another_file(transfer: AccountTransfer, rows: Iterator[Row]) -> None:
    """Raises InputProblem unless the arrived account has the clients and purchases of the file.

    After a restore, the other cell can write another file under the same reference.
    """
    clients = set(ApiClient.objects.filter(account=transfer.account).values_list("pk", flat=True))
    for batch in batches(rows):
        named = {_client_id(transfer.cell, row["id"]) for row in batch if "client" in row}
        bought = {
            (_client_id(transfer.cell, row["of"]), row[kind]["reference"])
            for row in batch
            for kind in ("order", "lost")
            if kind in row
        }
        references = [reference for _, reference in bought]
        for model in (Order, LostPurchase):
            found = model.objects.filter(reference__in=references)
            bought -= set(found.values_list("client_id", "reference"))
        if bought or not named <= clients:
            raise InputProblem(
                f"Another file with the reference {transfer.reference} was received: this one has"
                " clients or purchases that are not here. Nothing was changed. See “After a"
                " restore” in docs/operate/cells.md."
            )


def _constraint(error: IntegrityError) -> str:
    return getattr(getattr(error.__cause__, "diag", None), "constraint_name", None) or "unknown"


class _Arrival:
    """Adds the rows of one file. `_clients` maps the ids of the other cell to those here."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._digest = code_digester()
        self._clients: dict[int, int] = {}
        self._actors: dict[str, str] = {}  # how the ledger and the histories name the clients
        self._orders: Counter[int] = Counter()
        self._balance = Decimal(0)

    def add(self, rows: Iterator[Row]) -> AccountTransfer:
        """Adds all rows. Raises InputProblem and IntegrityError."""
        add: dict[str, Callable[[list[Row]], object]] = {
            "account": self._add_account,
            "client": self._add_clients,
            "link": self._add_links,
            "entry": self._add_entries,
            "order": self._add_orders,
            "lost": self._add_lost_purchases,
            "record": self._add_records,
        }
        for kind, group in groupby(rows, key=lambda row: next(iter(row))):
            for batch in batches(group):
                add[kind](batch)
        ClientCounter.objects.bulk_create(
            ClientCounter(client_id=client, orders=number)
            for client, number in self._orders.items()
        )
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        if Wallet.objects.get(account=self._account).balance != self._balance:
            raise InputProblem("The balance is not the sum of the entries. Nothing was changed.")
        return self._transfer

    def _add_account(self, rows: list[Row]) -> None:
        (row,) = rows
        self._balance = Decimal(row["balance"])
        self._account = from_row(Account, row["account"])
        self._account.save()
        open_wallet(account=self._account)
        origin, reference = self._header.origin, self._header.reference
        self._transfer = AccountTransfer.objects.create(
            reference=reference,
            account=self._account,
            sent=False,
            cell=origin,
            was_enabled=self._account.enabled,
        )
        record_action(
            actor=None,
            action=AuditAction.ACCOUNT_CREATED,
            on=self._account,
            reference=self._account.name,
            note=f"Came from cell {origin}: {reference}",
        )

    def _add_clients(self, rows: list[Row]) -> None:
        for row in rows:
            ours = _client_id(self._header.origin, row["id"])
            client = from_row(ApiClient, row["client"], id=ours, account=self._account)
            client.save(force_insert=True)
            self._clients[row["id"]] = client.pk
            self._actors[f"client:{row['id']}"] = f"client:{client.pk}"
            keys = [from_row(ApiKey, key, client=client) for key in row["keys"]]
            ApiKey.objects.bulk_create(keys)

    def _add_links(self, rows: list[Row]) -> None:
        ReferenceLink.objects.bulk_create(
            ReferenceLink(
                account=self._account, reference=row["link"], shelf_id=self._shelf(row["shelf"])
            )
            for row in rows
        )

    def _add_entries(self, rows: list[Row]) -> None:
        entries = [
            from_row(LedgerEntry, row["entry"], wallet_id=self._account.pk, balance_after=0)
            for row in rows
        ]
        self._keep_references_apart([entry for entry in entries if entry.booking_reference])
        for entry in entries:
            entry.actor = self._actor(entry.actor)
        LedgerEntry.objects.bulk_create(entries)  # in this order: the trigger chains them

    def _keep_references_apart(self, bookings: list[LedgerEntry]) -> None:
        """Writes the origin in front of each booking reference that this cell has. This cell starts
        its own hash chain, which covers the references as they are stored here."""
        names = {str(entry.booking_reference) for entry in bookings}
        here = LedgerEntry.objects.filter(booking_reference__in=names)
        taken = set(here.values_list("booking_reference", flat=True))
        for entry in bookings:
            name = str(entry.booking_reference)
            if name not in taken:
                continue
            while name in names or LedgerEntry.objects.filter(booking_reference=name).exists():
                name = self._with_origin(name)
            names.add(name)
            entry.booking_reference = name

    def _with_origin(self, reference: str) -> str:
        name = f"{self._header.origin}:{reference}"
        if len(name) > BOOKING_REFERENCE_LENGTH:
            name = f"{self._header.origin}:{hashlib.sha256(name.encode()).hexdigest()}"
        return name

    def _add_orders(self, rows: list[Row]) -> None:
        topups = [row for row in rows if "fulfilment" in row]
        fulfilments = {
            made.order_reference: made.pk
            for made in Fulfilment.objects.bulk_create(self._fulfilment(row) for row in topups)
        }
        events = [
            from_row(FulfilmentEvent, event, fulfilment_id=fulfilments[row["order"]["reference"]])
            for row in topups
            for event in row["events"]
        ]
        for event in events:
            event.actor = self._actor(event.actor)
        FulfilmentEvent.objects.bulk_create(events)
        sealed = [self._sealed(row.get("codes", ())) for row in rows]
        orders = Order.objects.bulk_create(
            self._order(row, codes, fulfilments.get(row["order"]["reference"]))
            for row, codes in zip(rows, sealed, strict=True)
        )
        self._add_codes(orders, sealed)
        self._orders.update(order.client_id for order in orders)

    def _fulfilment(self, row: Row) -> Fulfilment:
        fulfilment = from_row(Fulfilment, row["fulfilment"], account=self._account)
        if fulfilment.product_id not in self._topup_products:
            raise _not_sold_here(f"top-up product {fulfilment.product_id}")
        return fulfilment

    def _order(
        self, row: Row, codes: Sequence[tuple[bytes, bytes]], fulfilment: int | None
    ) -> Order:
        client, shelf = self._clients[row["of"]], row.get("shelf")
        order = from_row(
            Order,
            row["order"],
            client_id=client,
            fulfilment_id=fulfilment,
            arrived_at=self._transfer.at,
        )
        if shelf is not None:
            order.shelf_id = self._shelf(shelf)
            digests = b"".join(digest for _, digest in codes)
            order.codes_mac = codes_mac(client, order.reference, digests)
        return order

    def _sealed(self, codes: Sequence[Sequence[str]]) -> list[tuple[bytes, bytes]]:
        """Each code sealed for this cell, with its digest."""
        opened = [Code(*parts) for parts in codes]
        digests = [self._digest(code.code) for code in opened]
        return [
            (seal_code(code, digest), digest) for code, digest in zip(opened, digests, strict=True)
        ]

    def _add_codes(
        self, orders: Sequence[Order], sealed: Sequence[Sequence[tuple[bytes, bytes]]]
    ) -> None:
        codes = [
            (order.shelf_id, code, digest, order.pk)
            for order, of_order in zip(orders, sealed, strict=True)
            for code, digest in of_order
        ]
        if codes:
            with connection.cursor() as cursor:
                cursor.execute(
                    ADD_SOLD_CODES, [list(column) for column in zip(*codes, strict=True)]
                )

    def _add_lost_purchases(self, rows: list[Row]) -> None:
        LostPurchase.objects.bulk_create(
            from_row(LostPurchase, row["lost"], client_id=self._clients[row["of"]]) for row in rows
        )

    def _add_records(self, rows: list[Row]) -> None:
        IdempotencyRecord.objects.bulk_create(self._record(row) for row in rows)

    def _record(self, row: Row) -> IdempotencyRecord:
        record = from_row(IdempotencyRecord, row["record"], client_id=self._clients[row["of"]])
        if row["response"] is not None:
            body, place = b64decode(row["response"]), response_row(record.client_id, record.key)
            record.response = seal(body, Context.REPLAY_BODY, place)
        return record

    def _actor(self, actor: str) -> str:
        """Clients have other ids here. People are named as they were there."""
        return self._actors.get(actor, actor)

    def _shelf(self, place: Sequence[Any]) -> int:
        product, variation = place
        try:
            return self._shelves[product, variation]
        except KeyError:
            of = f"variation {variation} of " if variation is not None else ""
            raise _not_sold_here(f"{of}product {product}") from None

    @cached_property
    def _shelves(self) -> dict[tuple[int, int | None], int]:
        places = Shelf.objects.values_list("product_id", "variation_id", "pk")
        return {(product, variation): pk for product, variation, pk in places}

    @cached_property
    def _topup_products(self) -> set[int]:
        return set(TopUpProduct.objects.values_list("pk", flat=True))


def _not_sold_here(what: str) -> InputProblem:
    return InputProblem(
        f"There is no {what} in this cell. Import the same catalogue; nothing was changed."
    )
