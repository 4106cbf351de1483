"""Actions of Ctrl K that need a row: a page asks for it, and leads to the form of the action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.form_fields import posted
from accounts.models import Account
from catalogue.models import Batch, ReferenceLink, Shelf
from core.formats import local_day
from core.texts import lazy
from operators.catalogue.batches import HOLD
from operators.catalogue.price_changes import MOST
from operators.frame.base import (
    CappedPaginator,
    SearchSelect,
    SearchSelectMany,
    site_page,
    staff_of,
)
from operators.frame.row_names import row_title
from operators.money.booking import MOVE_MONEY
from orders.models import Order

FOUND_AT_ONCE = 20  # batches; the field asks for more as its list is scrolled
SEARCHED = {"class": "unfold-admin-autocomplete"}


class ActionForm(NamedTuple):
    """An action, the field of its rows, the address of its form, and other words for it."""

    title: str
    right: str
    field: Callable[[], forms.Field]
    leads_to: Callable[[Any], str]
    words: str


class BatchChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, batch: Batch) -> str:
        return _describe(batch)


class OrderByReference(forms.ModelChoiceField):  # type: ignore[type-arg]
    def to_python(self, value: Any) -> Any:
        return super().to_python(str(value or "").strip().upper())


class BatchSelect(SearchSelect):
    """A choice of a batch, found by typing. No column of a table refers to one, so Django's own
    search does not find them."""

    def get_url(self) -> str:
        return reverse("find_batches")


def _describe(batch: Batch) -> str:
    name, day = row_title(Batch, str(batch)), local_day(batch.imported_at)
    return " · ".join(filter(None, [name, str(batch.shelf), batch.supplier, batch.invoice, day]))


def _account() -> forms.Field:
    account = ReferenceLink._meta.get_field("account")
    return forms.ModelChoiceField(
        Account.objects.exclude(wallet=None),
        label=_("Account"),
        widget=SearchSelect(account, admin.site, attrs=SEARCHED),
        error_messages={"invalid_choice": _("This account has no wallet.")},
    )


def _order() -> forms.Field:
    return OrderByReference(
        Order.objects.all(),
        to_field_name="reference",
        label=_("Order reference"),
        widget=UnfoldAdminTextInputWidget,
        error_messages={"invalid_choice": _("There is no order with this reference.")},
    )


def _shelves() -> forms.Field:
    shelf = ReferenceLink._meta.get_field("shelf")
    return forms.ModelMultipleChoiceField(
        Shelf.objects.all(),
        label=_("Products and variations"),
        widget=SearchSelectMany(shelf, admin.site, attrs=SEARCHED),
    )


def _batch() -> forms.Field:
    return BatchChoice(
        Batch.objects.all(),
        label=_("Batch"),
        widget=BatchSelect(ReferenceLink._meta.get_field("shelf"), admin.site, attrs=SEARCHED),
        help_text=_(
            "Search by product, supplier or invoice number. Hold single codes in their list."
        ),
    )


@require_safe
def find_batches(request: HttpRequest) -> JsonResponse:
    """The batches that match what was typed, the newest first."""
    if not staff_of(request).has_perms([HOLD, "catalogue.view_batch"]):
        raise PermissionDenied
    page_of_batches: Any = admin.site.get_model_admin(Batch)
    rows, _repeats = page_of_batches.get_search_results(
        request, page_of_batches.get_queryset(request), request.GET.get("term", "")
    )
    rows = rows.select_related("shelf__product", "shelf__variation__product").order_by("-pk")
    found = CappedPaginator(rows, FOUND_AT_ONCE).get_page(request.GET.get("page"))
    results = [{"id": str(batch.pk), "text": _describe(batch)} for batch in found]
    return JsonResponse({"results": results, "pagination": {"more": found.has_next()}})


def _page(name: str) -> Callable[[Any], str]:
    return lambda row: reverse(f"admin:{name}", args=[row.pk])


def _prices(shelves: Any) -> str:
    ids = [shelf.pk for shelf in shelves[: MOST + 1]]
    return reverse("admin:catalogue_shelf_new_prices", query={"row": ids})


ACTION_FORMS = {
    "booking": ActionForm(
        lazy("Book money"),
        MOVE_MONEY,
        _account,
        _page("accounts_account_book"),
        lazy("deposit top up wallet balance add money payment pay in out withdraw fee correction"),
    ),
    "credit": ActionForm(
        lazy("Pay back an order"),
        MOVE_MONEY,
        _order,
        _page("orders_order_credit"),
        lazy("refund credit reimburse money return"),
    ),
    "hold": ActionForm(
        lazy("Hold codes"),
        HOLD,
        _batch,
        _page("catalogue_batch_hold"),
        lazy("block lock stop recall quarantine stock"),
    ),
    "price": ActionForm(
        lazy("Change prices"),
        "catalogue.change_shelf",
        _shelves,
        _prices,
        lazy("increase raise lower discount sale cost"),
    ),
}


def begin(request: HttpRequest, name: str) -> HttpResponse:
    """Asks for the row, and leads to the form."""
    action = ACTION_FORMS.get(name)
    if action is None:
        raise Http404
    if not staff_of(request).has_perm(action.right):
        raise PermissionDenied
    form = forms.Form(posted(request))
    form.fields["row"] = action.field()
    if form.is_valid():
        return HttpResponseRedirect(action.leads_to(form.cleaned_data["row"]))
    return site_page(
        request,
        "admin/confirm.html",
        title=action.title,
        question=_("What is it about?"),
        form=form,
        button=_("Continue"),
        back=reverse("admin:index"),
    )
