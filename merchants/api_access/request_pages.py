"""The page of the account's purchase attempts and refused requests."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.api_access.request_records import RESPONSES, find_records, with_response
from accounts.models import Account, ApiClient, RequestRecord
from core.api.advice import CODES, REASONS
from core.api.errors import ErrorCode, RefusalReason
from core.backoffice.search import newest_first
from core.texts import lazy
from idempotency.models import MAX_KEY_BYTES, IdempotencyRecord
from merchants.frame.exports import send_table
from merchants.frame.pages import show
from merchants.frame.paging import count_rows, first_page_query, newest_of, page_of
from merchants.frame.searches import read_query, redirect_to_result
from merchants.people.access import Member, member_page

FILTERED = 3_000  # the newest requests, at which a filter looks
COLUMNS = (
    *("time", "client", "method", "path", "request_id", "status", "code", "reason"),
    *("order_reference", "idempotency_key", "milliseconds"),
)
CHUNK = 1000  # records per query of a file
CLOCKS_AGREE = timedelta(seconds=1)  # of a record's time, which comes from a monotonic clock


class RequestFilter(forms.Form):
    """Filters requests. Only clients of this account can be chosen."""

    q = forms.CharField(
        required=False,
        max_length=MAX_KEY_BYTES,
        label=lazy("Request ID, order reference or idempotency key"),
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    client: Any = forms.ModelChoiceField(
        required=False,
        label=lazy("API client"),
        queryset=ApiClient.objects.none(),
        empty_label=lazy("All"),
    )
    code = forms.ChoiceField(
        required=False,
        label=lazy("Response"),
        choices=[("", lazy("All")), *RESPONSES],
    )

    def __init__(self, data: Any, *, account: Account) -> None:
        super().__init__(data)
        self.rows = RequestRecord.objects.filter(account=account).select_related(
            "client__spending_limit"
        )
        self.fields["client"].queryset = account.clients.order_by("name", "pk")  # type: ignore[attr-defined]

    def _newest(self) -> Any:
        """The newest FILTERED records of the account: a filter may match few or none of them."""
        ids = self.rows.order_by("-pk").values_list("pk", flat=True)
        oldest = list(ids[FILTERED - 1 : FILTERED])
        return self.rows.filter(pk__gte=oldest[0]) if oldest else self.rows

    def requests(self) -> Any:
        """The account's records that match. Call it only on a valid form."""
        rows = self.rows
        values = self.cleaned_data
        if values["q"]:
            rows = find_records(rows, values["q"].strip())
        elif values["client"] or values["code"]:
            rows = self._newest()
        if values["client"]:
            rows = rows.filter(client=values["client"])
        if values["code"]:
            rows = with_response(rows, values["code"])
        return rows


@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def request_list(request: HttpRequest, member: Member) -> HttpResponse:
    """Lists purchase attempts and refused requests of all clients of the account, newest first.

    The filters come in the body of a POST, which redirects to the result: an address that can be
    kept. It holds a text to search for only encrypted (merchants/frame/searches.py).
    """
    query = read_query(request)
    filters = RequestFilter(query, account=member.account)
    records: list[RequestRecord] = []
    page, count, more = None, None, False
    if filters.is_valid() and request.method == "POST":
        return redirect_to_result(request, "merchants:requests", filters)
    if filters.is_valid() and filters.cleaned_data["q"]:
        records, more = newest_of(filters.requests().order_by(newest_first()))
    elif filters.is_valid():
        page = page_of(filters.requests(), query=query)
        count = count_rows(filters.requests())
        records = page.rows
    return show(
        request,
        member,
        "merchants/requests.html",
        title=_("Requests"),
        filters=filters,
        page=page,
        count=count,
        requests=with_advice(records),
        filtered=bool(query),
        more=more,
        query=first_page_query(query),
        days=settings.RETENTION_DAYS["requests"],
        looked_at=FILTERED,
    )


@require_safe
@member_page(heavy=True)
def export(request: HttpRequest, member: Member, format: str) -> HttpResponseBase:
    """The filtered requests as a file."""
    query = request.GET.copy()
    query.pop("q", None)
    filters = RequestFilter(query, account=member.account)
    if not filters.is_valid():
        return HttpResponseRedirect(f"{reverse('merchants:requests')}?{query.urlencode()}")
    return send_table(
        request,
        member,
        name="requests",
        format=format,
        columns=COLUMNS,
        rows=map(_cells, _newest_first(filters.requests())),
        back="merchants:requests",
        filters=filters,
    )


def _newest_first(rows: Any) -> Iterator[RequestRecord]:
    """All records, in bounded memory: each chunk is a query of its own."""
    rows = rows.order_by("-pk")
    chunk = list(rows[:CHUNK])
    while chunk:
        yield from chunk
        chunk = list(rows.filter(pk__lt=chunk[-1].pk)[:CHUNK])


def _cells(row: RequestRecord) -> list[Any]:
    return [
        *(row.at, row.client.name, row.method, row.path, row.request_id, row.status, row.code),
        *(row.reason, row.order_reference, row.idempotency_key, row.milliseconds),
    ]


def with_advice(rows: list[RequestRecord]) -> list[tuple[RequestRecord, str, str]]:
    """The records, newest first, each with its order and with advice on what to do after its
    response. A record does not hold `error.message`, which the documentation refers to.

    Web processes write their records in turns, so ids of the same seconds are not in order.
    """
    held = _orders_of(
        [row for row in rows if row.is_replay or row.code == ErrorCode.IDEMPOTENCY_KEY_REUSED]
    )
    return [
        (row, row.order_reference or held.get(row.pk, ""), _advice(row))
        for row in sorted(rows, key=lambda row: row.at, reverse=True)
    ]


def _orders_of(rows: list[RequestRecord]) -> dict[int, str]:
    """The orders that the same client bought with the keys of these requests, as long as the keys
    are remembered.

    A key that was forgotten may have bought again since: that purchase is later than the request.
    """
    if not rows:
        return {}
    records = IdempotencyRecord.objects.filter(
        client__in={row.client_id for row in rows},
        key__in={row.idempotency_key for row in rows},
    )
    of_keys = {(record.client_id, record.key): record for record in records.defer("response")}
    references = {}
    for row in rows:
        record = of_keys.get((row.client_id, row.idempotency_key or ""))
        if record is None or record.order_reference is None or record.bought_at is None:
            continue
        if record.bought_at <= row.at + CLOCKS_AGREE:
            references[row.pk] = record.order_reference
    return references


def _advice(row: RequestRecord) -> str:
    if row.reason == RefusalReason.INSUFFICIENT_BALANCE:
        return _(
            "The balance of the account, or the spending limit of this client, was too low. Add"
            " money to the wallet, or ask an owner to raise the limit. Then send the same request"
            " with the same idempotency key."
        )
    if row.reason in REASONS:
        return _(REASONS[row.reason].act)  # type: ignore[index]
    return _(CODES[row.code].act) if row.code in CODES else ""  # type: ignore[index]
