"""The search of the first page: the account's orders, requests and bank transfers, by anything that
names them."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.models import RequestRecord
from cases.models import Case
from cases.selectors import cases_of
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
from wallets.models import AnnouncedTransfer, LedgerEntry
from wallets.selectors import find_payments
from wallets.transfers import find_transfers

CASE_NUMBER = re.compile("[0-9]{1,18}")


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
    (merchants/frame/searches.py), to the order whose whole reference was typed, or to the case
    whose title was.
    """
    query = read_query(request)
    form = SearchForm(query if "q" in query else None)
    rows: Mapping[type[Model], list[Any]] = {}
    matches: QuerySet[AnnouncedTransfer] = AnnouncedTransfer.objects.none()
    payments: list[LedgerEntry] = []
    if form.is_valid() and request.method == "POST":
        if case := _case_with_title(form.cleaned_data["q"], member):
            return HttpResponseRedirect(reverse("merchants:case", args=[case.pk]))
        order = find_account_order(member.account, form.cleaned_data["q"].upper())
        if order is not None:
            return HttpResponseRedirect(reverse("merchants:order", args=[order.reference]))
        return redirect_to_result(request, "merchants:search", form)
    if form.is_valid():
        text = form.cleaned_data["q"]
        rows = find_for_member(text, account=member.account, limit=MOST_FOUND + 1)
        payments = find_payments(text, account=member.account)
        matches = find_transfers(text, account=member.account)
    orders, more_orders = newest_of(rows.get(Order, []))
    requests, more_requests = newest_of(rows.get(RequestRecord, []))
    payments, more_payments = newest_of(payments)
    transfers, more_transfers = newest_of(matches)
    return show(
        request,
        member,
        "merchants/search.html",
        title=_("Search"),
        form=form,
        orders=orders,
        requests=with_advice(requests),
        entries=[(payment, None) for payment in payments],
        transfers=transfers,
        more=more_orders or more_requests,
        more_payments=more_payments or more_transfers,
    )


def _case_with_title(text: str, member: Member) -> Case | None:
    """The case of the account with this title, in English or in the reader's language."""
    number = text.rsplit(maxsplit=1)[-1]
    titles = {f"case {number}", (_("Case %(name)s") % {"name": number}).casefold()}
    if " ".join(text.split()).casefold() not in titles or not CASE_NUMBER.fullmatch(number):
        return None
    return cases_of(member.account).filter(pk=number).first()
