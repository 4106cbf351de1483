"""The search of the first page: the account's orders and requests, by anything that names them."""

from django import forms
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from accounts.models import RequestRecord
from accounts.request_records import KEY_LENGTH, find_records
from config.finders import newest_first
from merchants.people.access import Member, member_page
from merchants.views.orders import MOST_FOUND
from merchants.views.pages import show
from merchants.views.requests import with_advice
from orders.search import find_orders


class SearchForm(forms.Form):
    q = forms.CharField(
        max_length=KEY_LENGTH,
        label="Find an order or a request",
        help_text="Order reference, player ID, idempotency key or request id",
        widget=forms.TextInput(attrs={"type": "search"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def search(request: HttpRequest, member: Member) -> HttpResponse:
    """Shows the account's newest orders and requests with the text that was typed.

    The text comes in the body of a POST: no address holds it (docs/decisions/0056-search.md).
    """
    form = SearchForm(request.POST if request.method == "POST" else None)
    orders, requests = [], []
    if form.is_valid():
        text = form.cleaned_data["q"]
        orders = find_orders(text, account=member.account, most=MOST_FOUND)
        records = RequestRecord.objects.filter(account=member.account).select_related("client")
        requests = list(find_records(records, text).order_by(newest_first())[:MOST_FOUND])
    return show(
        request,
        member,
        "merchants/search.html",
        title="Search",
        form=form,
        orders=orders,
        requests=with_advice(requests),
    )
