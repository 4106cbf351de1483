"""The timeline of an order, for its own page and for its page at the desk."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse

from accounts.models import RequestRecord
from operators.admin.base import url_of
from operators.admin.timeline import NoteForm, Timeline, note_url
from operators.admin.trail_lines import may_view, rows
from operators.order_history import find_idempotency_record, order_lines
from orders.models import Order
from wallets.models import LedgerEntry

Link = tuple[str, str, str]


def order_timeline(request: HttpRequest, order: Order, *, on: Model) -> Timeline:
    """The timeline of an order on the page of `on`: the order itself, or its fulfilment."""
    lines = order_lines(order, sees=lambda model: may_view(request, model))
    own = [(row._meta.label_lower, str(row.pk)) for row in (order, order.fulfilment) if row]
    return Timeline(
        rows=rows(request, lines, own=own),
        order="Oldest first.",
        note_form=NoteForm(),
        note_url=note_url(on),
        links=list(_links(request, order, on)),
    )


def _links(request: HttpRequest, order: Order, on: Model) -> Iterator[Link]:
    """What the order belongs to, as far as the reader may see it."""
    sold = order.shelf.product if order.shelf else order.fulfilment and order.fulfilment.product
    related: list[tuple[str, Model | None]] = [
        ("Order", order),
        ("At the desk", order.fulfilment),
        ("Account", order.client.account),
        ("Client", order.client),
        ("Product", sold),
    ]
    for kind, found in related:
        if found is not None and found != on and may_view(request, type(found)):
            yield kind, str(found), url_of(found)
    record = find_idempotency_record(order)
    if record is not None and may_view(request, type(record)):
        yield "Idempotency key", record.key, url_of(record)
    for model, name in ((RequestRecord, "Requests"), (LedgerEntry, "Ledger entries")):
        if may_view(request, model):
            meta = model._meta
            address = f"admin:{meta.app_label}_{meta.model_name}_changelist"
            yield name, f"{name} of this order", reverse(address, query={"q": order.reference})
