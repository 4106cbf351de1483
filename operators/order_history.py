"""Everything that happened to one order, as one list: the oldest first.

Each table is read by an index, and an order has few rows in each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from accounts.models import RequestRecord
from accounts.request_records import find_records
from audit.trail import TRAIL as ACTIONS
from catalogue.models import VoucherCode
from core.trails import Line
from idempotency.models import IdempotencyRecord
from operators.telegram.models import Announcement
from operators.trails import Sees, Wanted, hidden_kinds, is_seen, read_trail
from orders.models import Order
from topups.models import FulfilmentEvent
from topups.trail import event_line
from wallets.models import EntryKind, LedgerEntry
from wallets.trail import entry_line

MOST_ENTRIES = 200
MOST_REQUESTS = 20
SHOWN = "••••••••"
# A record is made just before its purchase, unless a retry took the key over.
BEFORE_PURCHASE = timedelta(minutes=1)


def order_lines(order: Order, *, sees: Sees) -> list[Line]:
    """The lines of the order's timeline that the reader may see. `order` is read with its client
    and what was sold."""
    money = list(_money(order)) if sees(LedgerEntry) else []
    later = [
        *money[1:],
        *_moves(order),
        *_announcements(order),
        *_entries(order, sees),
        *(_requests(order) if sees(RequestRecord) else ()),
    ]
    # The first entry is the debit. It has nearly the same time as the order and its codes.
    return [_bought(order), *money[:1], *_codes(order), *sorted(later, key=lambda line: line.at)]


def find_idempotency_record(order: Order) -> IdempotencyRecord | None:
    """The record whose key bought the order; None if it is gone, as it is after seven days."""
    records = IdempotencyRecord.objects.defer("response", "fingerprint")
    mine = records.filter(client=order.client_id, order_reference=order.reference)
    usual = mine.filter(
        created_at__gt=order.created_at - BEFORE_PURCHASE, created_at__lte=order.created_at
    )
    if found := usual.first():
        return found
    keys = [
        request.idempotency_key
        for request in find_records(RequestRecord.objects.all(), order.reference)[:MOST_REQUESTS]
        if request.client_id == order.client_id
    ]
    return mine.filter(key__in=keys).first() if keys else None


def _bought(order: Order) -> Line:
    number = f"{order.quantity} codes of " if order.quantity > 1 else ""
    sold = order.shelf if order.fulfilment is None else order.fulfilment.product
    return Line(
        at=order.created_at,
        what="Order placed",
        on=("orders.order", str(order.pk)),
        who=f"client {order.client}",
        where="API",
        note=f"{number}{sold}, {order.total_price:,.2f} {order.currency}",
        colour="success",
    )


def _codes(order: Order) -> Iterator[Line]:
    if order.shelf_id is None:
        return
    codes = VoucherCode.objects.filter(order_id=order.pk).order_by("position")
    ids = list(codes.values_list("pk", flat=True))
    yield Line(
        at=order.created_at,
        what="Codes handed out",
        on=("orders.order", str(order.pk)),
        who=f"client {order.client}",
        where="API",
        note=", ".join(f"{SHOWN} (code {pk})" for pk in ids),
    )


def _moves(order: Order) -> Iterator[Line]:
    if order.fulfilment_id is not None:
        events = FulfilmentEvent.objects.filter(fulfilment=order.fulfilment_id).order_by("pk")
        # The first event is the purchase.
        yield from map(event_line, events.exclude(move="open").select_related("fulfilment"))


def _announcements(order: Order) -> Iterator[Line]:
    row = Announcement.objects.filter(fulfilment=order.fulfilment_id).first()
    if row is None or order.fulfilment_id is None:
        return
    times = [("Announced in Telegram", row.announced_at), ("Announced again", row.repeated_at)]
    for what, at in times:
        if at is not None:
            yield Line(
                at=at,
                what=what,
                on=("operators.announcement", str(row.pk)),
                where="Telegram",
                note=f"Chat {row.chat_id}, message {row.message_id}",
            )


def _entries(order: Order, sees: Sees) -> Iterator[Line]:
    """Notes of staff, revealed codes, refusals in Telegram: what the audit trail says about it,
    and about what belongs to it, as far as the reader may view these."""
    objects: dict[str, list[str]] = {"orders.order": [str(order.pk)]}
    if order.fulfilment_id is not None:
        objects["topups.fulfilment"] = [str(order.fulfilment_id)]
        rows = Announcement.objects.filter(fulfilment=order.fulfilment_id)
        objects["operators.announcement"] = [str(row) for row in rows.values_list("pk", flat=True)]
    hidden = hidden_kinds(sees)
    found = {
        one.place: one.line
        for wanted in (
            Wanted(objects=objects, without=hidden),
            Wanted(called=order.reference, without=hidden),
        )
        for one in read_trail(wanted, trails=[ACTIONS], limit=MOST_ENTRIES)
        if is_seen(one.line.on[0], sees)
    }
    yield from (found[place] for place in sorted(found))


def _money(order: Order) -> Iterator[Line]:
    entries = LedgerEntry.objects.filter(order_reference=order.reference).order_by("pk")
    for entry in entries.select_related("wallet__account"):
        line = replace(entry_line(entry), name="")  # the order's own reference
        is_debit = entry.kind == EntryKind.PURCHASE
        yield replace(line, who=f"client {order.client}") if is_debit else line


def _requests(order: Order) -> Iterator[Line]:
    """The requests that named the order, and earlier attempts with its key, which were refused."""
    records = RequestRecord.objects.select_related("client")
    found = {one.pk: one for one in find_records(records, order.reference)[:MOST_REQUESTS]}
    of_client = records.filter(client=order.client_id)
    keys = {one.idempotency_key for one in found.values() if one.client_id == order.client_id}
    for key in filter(None, keys):
        found |= {one.pk: one for one in find_records(of_client, key)[:MOST_REQUESTS]}
    for record in sorted(found.values(), key=lambda record: record.at):
        answer = " ".join(str(part) for part in (record.status, record.code, record.reason) if part)
        key = f", idempotency key {record.idempotency_key}" if record.idempotency_key else ""
        what, colour = _outcome(record)
        yield Line(
            at=record.at,
            what=what,
            colour=colour,
            on=("accounts.requestrecord", str(record.pk)),
            who=f"client {record.client}",
            where="API",
            note=f"{record.method} {record.path}: {answer}{key}",
            request_id=str(record.request_id),
        )


def _outcome(record: RequestRecord) -> tuple[str, str]:
    """What happened to a request, and the colour of its line."""
    if record.status >= 500:  # the purchase may have been made
        return "Request failed", "danger"
    return ("Request refused", "warning") if record.code else ("Request answered", "")
