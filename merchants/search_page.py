"""The search of the first page: the account's orders, requests and bank transfers, by anything that
names them."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.models import RequestRecord
from core.backoffice.search import find_for_member
from core.texts import lazy
from idempotency.models import MAX_KEY_BYTES
from merchants.api_access.request_pages import with_advice
from merchants.frame.pages import show
from merchants.frame.paging import MOST_FOUND, newest_of
from merchants.frame.searches import read_query, redirect_to_result
from merchants.people.access import Member, member_page
from orders.account_orders import find_account_order
from orders.models import Order
from wallets.models import AnnouncedTransfer
from wallets.selectors import find_payment
from wallets.transfers import find_transfers


class SearchForm(forms.Form):
    q = forms.CharField(
        max_length=MAX_KEY_BYTES,
        label=lazy("Find an order, a request or a payment"),
        help_text=lazy("Order reference, player ID, idempotency key, request ID or bank reference"),
        widget=forms.TextInput(attrs={"type": "search"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def search(request: HttpRequest, member: Member) -> HttpResponse:
    """Shows the account's newest orders, requests and bank transfers with the text that was typed.

    The text comes in the body of a POST, which redirects to the result
    (merchants/frame/searches.py), or to the order whose whole reference was typed.
    """
    query = read_query(request)
    form = SearchForm(query if "q" in query else None)
    rows: Mapping[type[Model], list[Any]] = {}
    transfers: QuerySet[AnnouncedTransfer] = AnnouncedTransfer.objects.none()
    payment = None
    if form.is_valid() and request.method == "POST":
        order = find_account_order(member.account, form.cleaned_data["q"].upper())
        if order is not None:
            return HttpResponseRedirect(reverse("merchants:order", args=[order.reference]))
        return redirect_to_result(request, "merchants:search", form)
    if form.is_valid():
        text = form.cleaned_data["q"]
        rows = find_for_member(text, account=member.account, limit=MOST_FOUND + 1)
        payment = find_payment(text, account=member.account)
        transfers = find_transfers(text, account=member.account)[:MOST_FOUND]
    orders, more_orders = newest_of(rows.get(Order, []))
    requests, more_requests = newest_of(rows.get(RequestRecord, []))
    return show(
        request,
        member,
        "merchants/search.html",
        title=_("Search"),
        form=form,
        orders=orders,
        requests=with_advice(requests),
        entries=[(payment, None)] if payment else [],
        transfers=transfers,
        more=more_orders or more_requests,
    )
