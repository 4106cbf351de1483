"""The page of the account's purchase attempts and refused requests."""

from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.models import Account, ApiClient, RequestRecord
from accounts.request_records import ANSWERS, KEY_LENGTH, find_records, with_answer
from merchants.people.access import Member, member_page
from merchants.views.docs_content import CODES, REASONS
from merchants.views.pages import show
from merchants.views.paging import page_of


class RequestFilter(forms.Form):
    """Filters requests. Only clients of this account can be chosen."""

    q = forms.CharField(
        required=False,
        max_length=KEY_LENGTH,
        label="Request id, order or idempotency key",
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    client: Any = forms.ModelChoiceField(
        required=False, queryset=ApiClient.objects.none(), empty_label="All"
    )
    code = forms.ChoiceField(
        required=False,
        label="Answer",
        choices=[("", "All"), *ANSWERS],
    )

    def __init__(self, data: Any, *, account: Account) -> None:
        super().__init__(data)
        self.rows = RequestRecord.objects.filter(account=account).select_related("client")
        self.fields["client"].queryset = account.clients.order_by("name", "pk")  # type: ignore[attr-defined]

    def requests(self) -> Any:
        """The account's records that match. Call it only on a valid form."""
        rows = self.rows
        wanted = self.cleaned_data
        if wanted["q"]:
            rows = find_records(rows, wanted["q"].strip())
        if wanted["client"]:
            rows = rows.filter(client=wanted["client"])
        if wanted["code"]:
            rows = with_answer(rows, wanted["code"])
        return rows


@require_safe
@member_page()
def request_list(request: HttpRequest, member: Member) -> HttpResponse:
    """Lists purchase attempts and refused requests of all clients of the account, newest first."""
    filters = RequestFilter(request.GET, account=member.account)
    page = page_of(filters.requests(), query=request.GET) if filters.is_valid() else None
    return show(
        request,
        member,
        "merchants/requests.html",
        title="Requests",
        filters=filters,
        page=page,
        requests=[(row, _advice(row)) for row in _newest_first(page.rows)] if page else [],
        filtered=bool(request.GET),
        days=settings.RETENTION_DAYS["requests"],
    )


def _newest_first(rows: list[RequestRecord]) -> list[RequestRecord]:
    """Web processes write their records in turns, so ids of the same seconds are not in order."""
    return sorted(rows, key=lambda row: row.at, reverse=True)


def _advice(row: RequestRecord) -> str:
    """What the documentation advises after this answer."""
    if row.reason in REASONS:
        return REASONS[row.reason].act  # type: ignore[index]
    return CODES[row.code].act if row.code in CODES else ""  # type: ignore[index]
