"""The timeline of an object or an order on its page: its entries, and a form for notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.models import RequestRecord
from accounts.sign_in.second_factor import may_act
from audit.models import REQUESTS, AuditAction
from audit.services import record_action
from catalogue.models import Batch, PriceList, Product, Shelf
from core.database.columns import NOTE_LENGTH
from core.inputs import is_id
from core.texts import lazy
from idempotency.models import IdempotencyRecord
from operators.frame.base import list_url, staff_of, trail_url, url_of
from operators.frame.reader import may_view, registered_models
from operators.history.audit_trail import (
    EntryQuery,
    entry_of,
    hidden_actions,
    read_entries,
    sees_label,
    with_parts,
)
from operators.history.entries import Row, rows
from operators.history.order_timeline import Purchase, order_entries
from orders.codes import names_a_code
from orders.models import Order
from topups.models import TopUpProduct
from wallets.models import BookingApproval, LedgerEntry

PRICED = (PriceList, Product, Shelf, TopUpProduct)
SHOWN = 30  # the newest entries of an object that is no order


@dataclass(frozen=True)
class Timeline:
    """A timeline, for admin/timeline.html: the newest entries first.

    links: what the object belongs to, as far as the reader may see it: kind, name and address.
    empty: what the page says if there are no entries.
    more: the address of all entries in the audit trail; empty if there are none, or if the reader
        may not open it.
    note_form, note_url: the form for a note, None for readers who change nothing, and where it is
        sent.
    """

    rows: list[Row]
    note_form: forms.Form | None
    note_url: str
    more: str = ""
    empty: str = lazy("No changes yet.")
    links: Sequence[tuple[str, str, str]] = ()


class NoteForm(forms.Form):
    """A note of staff about an object. Merchants never see it."""

    note = forms.CharField(
        label=lazy("Note"),
        max_length=NOTE_LENGTH,
        required=False,  # shows no star: the page needs no note
        widget=UnfoldAdminTextInputWidget(attrs={"required": True}),
        help_text=lazy(
            "Only “Add note” saves it. Only staff read it, and it cannot be changed. Never"
            " write a code or a key here."
        ),
    )

    def clean_note(self) -> str:
        if not self.cleaned_data["note"]:
            raise forms.ValidationError(_("Write the note first."))
        return str(self.cleaned_data["note"])


class TimelinePage(ModelAdmin):
    """Shows the timeline below the page of an object."""

    change_form_outer_after_template = "admin/timeline.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        obj = self.get_object(request, unquote(object_id))
        context = dict(extra_context or {})
        if obj is not None and self.has_view_permission(request, obj):
            context["timeline"] = self.timeline(request, obj)
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def timeline(self, request: HttpRequest, obj: Any) -> Timeline:
        """The timeline of `obj`, for people who may see its page."""
        return timeline_of(request, obj)

    def refuse_note(self, request: HttpRequest, obj: Any, form: NoteForm) -> HttpResponse:
        """Says what is wrong with a note of one line. Browsers limit its length themselves."""
        messages.error(request, " ".join(map(str, form.errors["note"])))
        return HttpResponseRedirect(url_of(obj))


def timeline_of(request: HttpRequest, obj: Model) -> Timeline:
    """The newest audit entries about an object and its parts, for a reader who may see its page.

    It holds the entries about objects that the reader may view.
    """

    def sees(model: type[Model]) -> bool:
        return may_view(request, model)

    own = (obj._meta.label_lower, str(obj.pk))
    objects = {label: pks for label, pks in with_parts(*own).items() if sees_label(label, sees)}
    hidden = set(hidden_actions(sees))
    # A request may hold prices of lists, and costs.
    if isinstance(obj, PRICED) and sees(PriceList) and sees(Batch):
        hidden -= set(REQUESTS)
    query = EntryQuery(objects=objects, without=hidden)
    entries = read_entries(query, limit=SHOWN + 1) if objects else []
    about = f"{obj._meta.model_name}:{obj.pk}"
    return Timeline(
        rows=rows(request, map(entry_of, entries[:SHOWN]), own=[own]),
        note_form=NoteForm() if may_act(staff_of(request)) else None,
        note_url=note_url(obj),
        more=trail_url(request, about) if entries else "",
    )


def order_timeline(request: HttpRequest, order: Order, *, on: Model) -> Timeline:
    """The timeline of an order on the page of `on`: the order itself, or its fulfilment."""
    purchase = Purchase(order)
    entries = order_entries(purchase, sees=lambda model: may_view(request, model))
    own = [(row._meta.label_lower, str(row.pk)) for row in (order, order.fulfilment) if row]
    return Timeline(
        rows=rows(request, reversed(entries), own=own),
        note_form=NoteForm() if may_act(staff_of(request)) else None,
        note_url=note_url(on),
        links=list(_links(request, purchase, on)),
        more=trail_url(request, order.reference),
    )


def _links(request: HttpRequest, purchase: Purchase, on: Model) -> Iterator[tuple[str, str, str]]:
    """Links to the objects around the order that the reader may see."""
    order = purchase.order
    product = order.shelf.product if order.shelf else order.fulfilment and order.fulfilment.product
    related: list[tuple[str, Model | None]] = [
        (_("Order"), order),
        (_("At the desk"), order.fulfilment),
        (_("Account"), order.client.account),
        (_("Client"), order.client),
        (_("Product"), product),
    ]
    for kind, obj in related:
        if obj is not None and obj != on and may_view(request, type(obj)):
            yield kind, str(obj), url_of(obj)
    record = purchase.record if may_view(request, IdempotencyRecord) else None
    if record is not None:
        yield _("Idempotency key"), record.key, url_of(record)
    lists: list[tuple[type[Model], str, str]] = [
        (RequestRecord, _("Requests"), _("Requests of this order")),
        (LedgerEntry, _("Ledger entries"), _("Ledger entries of this order")),
    ]
    for model, kind, name in lists:
        if may_view(request, model) and (model is not RequestRecord or purchase.is_named):
            yield kind, name, list_url(model, q=order.reference)


def note_url(obj: Model) -> str:
    """The address that a note about the object is sent to."""
    return reverse("note", args=[obj._meta.label_lower, obj.pk])


@require_POST
def add_note(request: HttpRequest, label: str, pk: str) -> HttpResponse:
    """Adds a note to the timeline of an object that the reader may see, and returns to its page."""
    models = [model for model in registered_models() if model._meta.label_lower == label]
    page = admin.site.get_model_admin(models[0]) if models else None
    if not isinstance(page, TimelinePage) or not is_id(pk):
        raise Http404
    if not page.has_view_permission(request):
        raise PermissionDenied
    obj = page.get_object(request, pk)
    if obj is None:
        raise Http404
    if not may_act(staff_of(request)):
        raise PermissionDenied
    form = NoteForm(request.POST)
    order_id = obj.pk if isinstance(obj, Order) else getattr(obj, "order_id", None)
    if isinstance(obj, BookingApproval):
        order_id = (
            Order.objects.filter(reference=obj.order_reference).values_list("pk", flat=True).first()
        )
    if form.is_valid() and order_id and names_a_code(form.cleaned_data["note"], order_id=order_id):
        form.add_error("note", _("This note has a code of the order in it. Notes are kept."))
    if not form.is_valid():
        return page.refuse_note(request, obj, form)
    with transaction.atomic():
        record_action(
            actor=staff_of(request),
            action=AuditAction.NOTE_ADDED,
            on=obj,
            reference=str(obj),
            note=form.cleaned_data["note"],
        )
    messages.success(request, _("Note added."))
    return HttpResponseRedirect(url_of(obj))
