"""The timeline of an order: everything that happened to it, the oldest first.

Each table is read by an index, and an order has few rows in each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.api_access.request_records import find_requests
from accounts.models import RequestRecord
from audit.actor import who_and_where
from audit.models import AuditAction, AuditEntry
from cases.models import CREDIT_OF, Case
from catalogue.models import VoucherCode
from core.formats import local_amount
from core.texts import inside_sentence, lazy
from idempotency.models import IdempotencyRecord
from operators.history.audit_trail import (
    Entry,
    EntryQuery,
    Sees,
    entry_of,
    hidden_actions,
    read_entries,
    sees_label,
)
from operators.telegram.models import Announcement
from orders.models import Order
from topups.fulfilment.fulfilments import RECORDED
from topups.fulfilment.transitions import Move
from topups.models import Channel, FulfilmentEvent, FulfilmentStatus, RejectReason
from wallets.models import BookingApproval, EntryKind, LedgerEntry

MOST_ENTRIES = 200
MOST_REQUESTS = 20
SHOWN = "••••••••"
# A record is made just before its purchase, unless a retry took the key over.
BEFORE_PURCHASE = timedelta(minutes=1)
CHANNELS = {
    Channel.API: "API",
    Channel.ADMIN: lazy("Back office"),
    Channel.COMMAND: lazy("Server"),
    Channel.TELEGRAM: "Telegram",
    Channel.SYSTEM: "",
}
# What happened, by the move of the event.
MOVES = {
    Move.CLAIM: lazy("Top-up claimed"),
    Move.RELEASE: lazy("Top-up released"),
    Move.COMPLETE: AuditAction.TOPUP_DELIVERED.label,
    Move.REVIEW: lazy("Top-up sent to review"),
    Move.REJECT: AuditAction.TOPUP_REJECTED.label,
    Move.REJECT_UNREFUNDED: AuditAction.TOPUP_UNREFUNDED.label,
    "refund": lazy("Top-up refunded"),
}
# The outcomes of the credit of a case.
CREDITS: dict[str, Any] = {
    AuditAction.BOOKING_APPROVED: lazy("Credit approved"),
    AuditAction.BOOKING_REJECTED: lazy("Credit rejected"),
    AuditAction.BOOKING_WITHDRAWN: lazy("Credit withdrawn"),
}
COLOURS = {FulfilmentStatus.COMPLETED: "success", FulfilmentStatus.FAILED: "danger"}


@dataclass
class Purchase:
    """An order, and what is known of the request that bought it, read once for a page."""

    order: Order

    @cached_property
    def naming(self) -> list[RequestRecord]:
        """The requests that named the order."""
        records = RequestRecord.objects.select_related("client")
        return list(find_requests(records, order_reference=self.order.reference)[:MOST_REQUESTS])

    @cached_property
    def requests(self) -> list[RequestRecord]:
        """The requests that named the order, and earlier attempts with its key, which were
        refused."""
        reference, client = self.order.reference, self.order.client_id
        records = RequestRecord.objects.select_related("client").filter(
            Q(order_reference=reference) | Q(client=client)
        )
        found = find_requests(records, order_reference=reference, idempotency_key=self.key)
        return list(found.order_by("at")[:MOST_REQUESTS])

    @property
    def is_named(self) -> bool:
        """Whether a request that named the order is stored."""
        return any(one.order_reference == self.order.reference for one in self.requests)

    @cached_property
    def record(self) -> IdempotencyRecord | None:
        """The record whose key bought the order; None if it is gone, as it is after seven days."""
        order = self.order
        records = IdempotencyRecord.objects.defer("response", "fingerprint")
        mine = records.filter(client=order.client_id, order_reference=order.reference)
        usual = mine.filter(
            created_at__gt=order.created_at - BEFORE_PURCHASE, created_at__lte=order.created_at
        )
        return usual.first() or mine.filter(key__in=self._named_keys()).first()

    @property
    def key(self) -> str | None:
        """The key that bought the order, as long as a record of it is kept."""
        return self.record.key if self.record else next(iter(self._named_keys()), None)

    def _named_keys(self) -> list[str]:
        requests = [one for one in self.naming if one.client_id == self.order.client_id]
        return [one.idempotency_key for one in requests if one.idempotency_key]


def order_entries(purchase: Purchase, *, sees: Sees) -> list[Entry]:
    """The order's timeline, the oldest entry first, as far as the reader may see it. The order is
    read with its client and what was sold."""
    order = purchase.order
    money = list(_money(order)) if sees(LedgerEntry) else []
    later = [
        *money[1:],
        *_moves(order),
        *_announcements(order),
        *_entries(order, sees),
        *(_requests(purchase) if sees(RequestRecord) else ()),
    ]
    # The first entry is the debit. It has nearly the same time as the order and its codes.
    return [_order(order), *money[:1], *_codes(order), *sorted(later, key=lambda entry: entry.at)]


def _order(order: Order) -> Entry:
    goods = str(order.shelf if order.fulfilment is None else order.fulfilment.product)
    if order.quantity > 1:
        goods = _("%(quantity)s codes of %(product)s") % {
            "quantity": order.quantity,
            "product": goods,
        }
    return Entry(
        at=order.created_at,
        what=_("Order placed"),
        on=("orders.order", str(order.pk)),
        who=_("client %(client)s") % {"client": order.client},
        where="API",
        note=f"{goods}, {local_amount(order.total_price, order.currency)}",
        colour="success",
    )


def _codes(order: Order) -> Iterator[Entry]:
    if order.shelf_id is None:
        return
    codes = VoucherCode.objects.filter(order_id=order.pk).order_by("position")
    names = [_("code %(id)s") % {"id": pk} for pk in codes.values_list("pk", flat=True)]
    yield Entry(
        at=order.created_at,
        what=_("Codes handed out"),
        on=("orders.order", str(order.pk)),
        who=_("client %(client)s") % {"client": order.client},
        where="API",
        note=", ".join(f"{SHOWN} ({name})" for name in names),
    )


def _moves(order: Order) -> Iterator[Entry]:
    if order.fulfilment_id is not None:
        events = FulfilmentEvent.objects.filter(fulfilment=order.fulfilment_id).order_by("pk")
        # The first event is the purchase.
        for event in events.exclude(move="open"):
            yield _move(event, order)


def _move(event: FulfilmentEvent, order: Order) -> Entry:
    who, where = who_and_where(event.actor)
    old, new = event.from_status, event.to_status
    # The service refunds; a person who pays back all of the price has credited it.
    is_credit = event.move == "refund" and event.channel != Channel.SYSTEM
    return Entry(
        at=event.created_at,
        what=_("Top-up credited in full") if is_credit else str(MOVES[event.move]),
        on=("topups.fulfilment", str(event.fulfilment_id)),
        who=who,
        where=CHANNELS[Channel(event.channel)] or where,
        note=_note(event, order),
        changes={_("state"): (_state(old), _state(new))} if old and old != new else {},
        colour="success" if event.move == "refund" else COLOURS.get(FulfilmentStatus(new), ""),
    )


def _note(event: FulfilmentEvent, order: Order) -> str:
    """The note. That of a rejection begins with its reason (topups/fulfilment/fulfilments.py), and
    that of a refund with the price, which is then paid back in full."""
    if event.move == "refund":
        price = local_amount(order.total_price, order.currency)
        return f"{price}. {event.note}" if event.note else price
    message = order.fulfilment.message if order.fulfilment else ""
    if event.move not in (Move.REJECT, Move.REJECT_UNREFUNDED):
        return event.note
    reason, colon, note = event.note.partition(": ")
    known = reason in RejectReason.values
    text = f"{RejectReason(reason).label}{colon}{note}" if known else event.note
    if not message:
        return text
    quoted = _("Message for the merchant: “%(message)s”") % {"message": message}
    return f"{text}. {quoted}" if text else quoted


def _state(status: str) -> str:
    return inside_sentence(FulfilmentStatus(status).label)


def _announcements(order: Order) -> Iterator[Entry]:
    row = Announcement.objects.filter(fulfilment=order.fulfilment_id).first()
    if row is None or order.fulfilment_id is None:
        return
    times = [
        (_("Announced in Telegram"), row.announced_at),
        (_("Announced again"), row.repeated_at),
    ]
    for what, at in times:
        if at is not None:
            yield Entry(
                at=at,
                what=what,
                on=("telegram.announcement", str(row.pk)),
                where="Telegram",
                note=_("Chat %(chat_id)s, message %(message_id)s")
                % {"chat_id": row.chat_id, "message_id": row.message_id},
            )


def _entries(order: Order, sees: Sees) -> Iterator[Entry]:
    """Notes of staff, revealed codes, refusals in Telegram: the audit entries about the order and
    what belongs to it, as far as the reader may view these. Credits are in the ledger, and moves in
    the history."""
    objects: dict[str, list[str]] = {"orders.order": [str(order.pk)]}
    if order.fulfilment_id is not None:
        objects["topups.fulfilment"] = [str(order.fulfilment_id)]
        rows = Announcement.objects.filter(fulfilment=order.fulfilment_id)
        objects["telegram.announcement"] = [str(row) for row in rows.values_list("pk", flat=True)]
    hidden = [
        *(*hidden_actions(sees), AuditAction.CREDIT_BOOKED, AuditAction.BOOKING_REVERSED),
        *RECORDED.values(),
    ]
    entries: dict[int, AuditEntry] = {
        entry.pk: entry
        for query in (
            EntryQuery(objects=objects, without=hidden),
            EntryQuery(reference=order.reference, without=hidden),
        )
        for entry in read_entries(query, limit=MOST_ENTRIES)
        if _is_visible(entry, sees)
    }
    yield from (outcome_of_credit(entries[pk]) or entry_of(entries[pk]) for pk in sorted(entries))


def _is_visible(entry: AuditEntry, sees: Sees) -> bool:
    """Whether the reader sees the entry. The entry of a case says already that its credit was asked
    for."""
    outcome = outcome_of_credit(entry)
    if outcome is None and _case_of_credit(entry):
        return False
    return sees_label(outcome.on[0] if outcome else entry.object_type, sees)


def outcome_of_credit(entry: AuditEntry) -> Entry | None:
    """The decision about a credit that waited, as an entry of its case; None for other entries."""
    case = _case_of_credit(entry)
    if entry.action not in CREDITS or not case:
        return None
    # The note of an approval is the one for the merchant.
    note = "" if entry.action == AuditAction.BOOKING_APPROVED else entry.note
    on = (Case._meta.label_lower, case)
    what = str(CREDITS[entry.action])
    return replace(entry_of(entry), what=what, on=on, note=note, changes={})


def _case_of_credit(entry: AuditEntry) -> str:
    """The id of the case whose credit an approval is; empty for other entries."""
    booking = str(entry.changes.get("booking_reference", ("", ""))[1])
    is_credit = entry.object_type == BookingApproval._meta.label_lower and booking.startswith(
        CREDIT_OF
    )
    return booking.removeprefix(CREDIT_OF) if is_credit else ""


def _money(order: Order) -> Iterator[Entry]:
    entries = LedgerEntry.objects.filter(order_reference=order.reference).order_by("pk")
    for entry in entries:
        who, where = who_and_where(entry.actor)
        is_debit = entry.kind == EntryKind.PURCHASE
        sign = "+" if entry.amount > 0 else ""
        money = sign + local_amount(entry.amount, order.currency)
        note = _("%(amount)s, balance %(balance)s") % {
            "amount": money,
            "balance": local_amount(entry.balance_after, order.currency),
        }
        yield Entry(
            at=entry.created_at,
            what=entry.get_kind_display(),
            on=("wallets.ledgerentry", str(entry.pk)),
            who=_("client %(client)s") % {"client": order.client} if is_debit else who,
            where=where,
            note=f"{note}. {entry.note}" if entry.note else note,
            colour="success" if entry.amount > 0 else "warning",
        )


def _requests(purchase: Purchase) -> Iterator[Entry]:
    for record in purchase.requests:
        answer = " ".join(str(part) for part in (record.status, record.code, record.reason) if part)
        note = f"{record.method} {record.path}: {answer}"
        if record.idempotency_key:
            note = _("%(request)s, idempotency key %(key)s") % {
                "request": note,
                "key": record.idempotency_key,
            }
        what, colour = _outcome(record)
        yield Entry(
            at=record.at,
            what=what,
            colour=colour,
            on=("accounts.requestrecord", str(record.pk)),
            who=_("client %(client)s") % {"client": record.client},
            where="API",
            note=note,
            request_id=str(record.request_id),
        )


def _outcome(record: RequestRecord) -> tuple[str, str]:
    """The outcome of a request in words, and its colour."""
    if record.status >= 500:  # the purchase may have been made
        return _("Request failed"), "danger"
    return (_("Request refused"), "warning") if record.code else (_("Request answered"), "")
