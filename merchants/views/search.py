"""The search of the first page: the account's orders and requests, by anything that names them."""

from django import forms
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from accounts.models import RequestRecord
from accounts.request_records import find_records
from config.finders import newest_first
from idempotency.models import MAX_KEY_BYTES
from merchants.people.access import Member, member_page
from merchants.views.pages import show
from merchants.views.paging import MOST_FOUND, newest_of
from merchants.views.requests import with_advice
from orders.models import Order
from orders.search import find_orders


class SearchForm(forms.Form):
    q = forms.CharField(
        max_length=MAX_KEY_BYTES,
        label="Find an order or a request",
        help_text="Order reference, player ID, idempotency key or request ID",
        widget=forms.TextInput(attrs={"type": "search"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def search(request: HttpRequest, member: Member) -> HttpResponse:
    """Shows the account's newest orders and requests with the text that was typed.

    The text comes in the body of a POST: no address holds it (docs/decisions/0056-search.md).
    """
    form = SearchForm(request.POST if request.method == "POST" else None)
    orders: list[Order] = []
    requests: list[RequestRecord] = []
    more = False
    if form.is_valid():
        text = form.cleaned_data["q"]
        found = find_orders(text, account=member.account, limit=MOST_FOUND + 1)
        orders, more_orders = newest_of(found)
        records = RequestRecord.objects.filter(account=member.account).select_related("client")
        matches = find_records(records, text).order_by(newest_first())
        requests, more_requests = newest_of(matches)
        more = more_orders or more_requests
    return show(
        request,
        member,
        "merchants/search.html",
        title="Search",
        form=form,
        orders=orders,
        requests=with_advice(requests),
        more=more,
    )
