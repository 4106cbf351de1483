"""The pages of the account's orders. They never show codes."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import F
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
)
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import Account, ApiClient
from cases.selectors import cases_of, with_replacements
from catalogue.models import ReferenceLink
from core.database.columns import NAME_LENGTH
from core.files.uploads import download
from core.texts import lazy
from idempotency.models import MAX_KEY_BYTES
from merchants.frame.exports import File, NoFile, file_view, refuse_invalid, table_file
from merchants.frame.pages import show
from merchants.frame.paging import count_rows, first_page_query, newest_of, page_of
from merchants.frame.periods import PeriodForm
from merchants.frame.searches import read_query, redirect_to_result
from merchants.orders.order_file import COLUMNS, cells_of
from merchants.people.access import Member, member_page
from orders.account_orders import (
    OrderList,
    find_account_order,
    list_account_orders,
    read_orders,
)
from orders.models import Order, OrderStatus
from orders.search import (
    NEWEST_OF_ACCOUNT,
    days_found_by_key,
    find_goods,
    find_orders,
    list_orders_of_goods,
)
from topups.fulfilment.proofs import proofs_of
from topups.models import DeliveryFile, FulfilmentEvent
from wallets.models import LedgerEntry

MOST_READ = 500  # among so many of the newest matches the filters look


class OrderFilter(PeriodForm):
    """Searches orders, and filters them by product, day, status and client of this account."""

    q = forms.CharField(
        required=False,
        max_length=MAX_KEY_BYTES,
        label=lazy("Order reference, player ID or idempotency key"),
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    product = forms.CharField(required=False, max_length=NAME_LENGTH, label=lazy("Product name"))
    status = forms.ChoiceField(
        label=lazy("Status"), required=False, choices=[("", lazy("All")), *OrderStatus.choices]
    )
    client: Any = forms.ModelChoiceField(
        required=False,
        label=lazy("API client"),
        queryset=ApiClient.objects.none(),
        empty_label=lazy("All"),
    )

    field_order = ("q", "product", "since", "until", "status", "client")

    def __init__(self, data: Any, *, account: Account) -> None:
        super().__init__(data)
        self.account = account
        self.fields["client"].queryset = account.clients.order_by("name", "pk")  # type: ignore[attr-defined]

    def search(self) -> list[Order]:
        """The account's newest orders with the reference, player id or idempotency key that was
        typed, as far as they match the filter. Call it only on a valid form."""
        values = self.cleaned_data
        goods = find_goods(values["product"])
        return [
            order
            for order in find_orders(
                values["q"],
                account=self.account,
                limit=MOST_READ,
                client=values["client"],
                since=self.begins,
                until=self.ends,
            )
            if values["client"] in (None, order.client)
            and values["status"] in ("", order.status)
            and (self.begins is None or order.created_at >= self.begins)
            and (self.ends is None or order.created_at < self.ends)
            and order in goods
        ]

    def orders(self) -> OrderList:
        """The account's orders that match; with a product, those among the newest. Call it only on
        a valid form."""
        if product := self.cleaned_data["product"]:
            return list_orders_of_goods(
                find_goods(product), account=self.account, **self._other_filters()
            )
        return list_account_orders(self.account, **self._other_filters())

    def all_orders(self) -> Iterable[Order]:
        """All of the account's orders that match, newest first, in bounded memory. Call it only on
        a valid form."""
        orders = read_orders(list_account_orders(self.account, **self._other_filters()))
        goods = find_goods(self.cleaned_data["product"])
        return (order for order in orders if order in goods)

    def _other_filters(self) -> dict[str, Any]:
        """The filters of a list of orders, without the product."""
        status = self.cleaned_data["status"]
        return {
            "client": self.cleaned_data["client"],
            "status": OrderStatus(status) if status else None,
            "since": self.begins,
            "until": self.ends,
        }


@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def orders(request: HttpRequest, member: Member) -> HttpResponse:
    """Lists the orders of all clients of the account, newest first.

    The filters come in the body of a POST, which redirects to the result: an address that can be
    kept. It holds a text to search for only encrypted (merchants/frame/searches.py).
    """
    query = read_query(request)
    filters = OrderFilter(query, account=member.account)
    rows: list[Order] = []
    page, count, more = None, None, False
    if filters.is_valid() and request.method == "POST":
        return redirect_to_result(request, "merchants:orders", filters)
    if filters.is_valid() and filters.cleaned_data["q"]:
        rows, more = newest_of(filters.search())
    elif filters.is_valid():
        listed = filters.orders()
        page = page_of(listed.rows, query=query, key=listed.key)
        rows = listed.orders(page.rows)
        count = count_rows(listed.rows, key=listed.key, amount=listed.price)
    return show(
        request,
        member,
        "merchants/orders.html",
        title=_("Orders"),
        filters=filters,
        page=page,
        count=count,
        orders=rows,
        filtered=bool(query),
        query=first_page_query(query),
        searched=bool(filters.is_valid() and filters.cleaned_data["q"]),
        days=days_found_by_key(),
        most_read=NEWEST_OF_ACCOUNT,
        more=more,
    )


def _explain(request: HttpRequest, member: Member, problem: NoFile) -> HttpResponse:
    """Back to the list, which shows an invalid filter."""
    if problem.status == HTTPStatus.BAD_REQUEST:
        return HttpResponseRedirect(f"{reverse('merchants:orders')}?{request.GET.urlencode()}")
    messages.error(request, str(problem))
    return HttpResponseRedirect(reverse("merchants:orders"))


@file_view(_explain)
def export(request: HttpRequest, account: Account, format: str) -> File:
    """The filtered orders as a file without codes."""
    filters = OrderFilter(request.GET, account=account)
    refuse_invalid(filters)
    return table_file(
        "orders",
        format,
        columns=COLUMNS,
        rows=map(cells_of, filters.all_orders()),
        filters=filters,
        mark=False,
    )


@require_safe
@member_page()
def order(request: HttpRequest, member: Member, reference: str) -> HttpResponse:
    """Shows one order: what was sold, its delivery, and its wallet entries."""
    order = find_account_order(member.account, reference)
    if order is None:
        raise Http404
    return show(
        request,
        member,
        "merchants/order.html",
        title=_("Order %(reference)s") % {"reference": order.reference},
        order=order,
        merchant_reference=_merchant_reference(member.account, order),
        entries=LedgerEntry.objects.filter(
            wallet=member.account.pk, order_reference=order.reference
        ).order_by("pk"),
        moves=_moves(order),
        proofs=proofs_of(order.fulfilment_id) if order.fulfilment_id else [],
        cases=with_replacements(cases_of(member.account).filter(order=order)),
        replaces=cases_of(member.account).filter(pk=order.case_id or 0).first(),
    )


@require_safe
@member_page(heavy=True)
def delivery_proof(
    request: HttpRequest, member: Member, reference: str, proof_id: int
) -> HttpResponse:
    """Sends the file of a proof of delivery as a download."""
    order = find_account_order(member.account, reference)
    if order is None or order.fulfilment_id is None:
        raise Http404
    files = DeliveryFile.objects.filter(proof__fulfilment=order.fulfilment_id)
    return download(get_object_or_404(files, proof=proof_id))


def _merchant_reference(account: Account, order: Order) -> str | None:
    """The account's current reference for the order's shelf, as the API shows it."""
    if order.shelf_id is None:
        return None
    links = ReferenceLink.objects.filter(account=account, shelf=order.shelf_id)
    return links.values_list("reference", flat=True).first()


def _moves(order: Order) -> list[FulfilmentEvent]:
    """A top-up's status changes, without the operators' names and notes, and without its refund."""
    if order.fulfilment_id is None:
        return []
    events = FulfilmentEvent.objects.filter(fulfilment=order.fulfilment_id).order_by("pk")
    changes = events.exclude(from_status=F("to_status"))
    return list(changes.only("to_status", "created_at"))
