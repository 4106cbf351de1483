"""Request records: purchase attempts and refused requests, to answer "why was this refused?"."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter, DropdownFilter
from unfold.decorators import display

from accounts.api_access.request_records import RESPONSES, find_records, with_response
from accounts.models import RequestRecord
from core.api.errors import ErrorCode, RefusalReason
from core.texts import lazy
from operators.frame.base import DETAILS, EMPTY, Colours, link_to, link_to_list, time_cell
from operators.frame.long_lists import LongRecordAdmin
from orders.models import Order

MEANINGS = {code.value: code.default_message for code in ErrorCode} | {
    reason.value: reason.message for reason in RefusalReason
}


class CodeFilter(DropdownFilter):
    title = lazy("response")
    parameter_name = "code"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return RESPONSES

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[RequestRecord]
    ) -> QuerySet[RequestRecord]:
        response = self.value()
        return with_response(queryset, response) if response else queryset


@admin.register(RequestRecord)
class RequestRecordAdmin(LongRecordAdmin):
    list_display = ("time", "caller", "call", "response", "order", "idempotency_key")
    list_before_template = "admin/about_requests.html"
    list_filter = (("account", AutocompleteSelectFilter), CodeFilter)
    list_select_related = ("client", "account")
    served = ("account__id__exact",)
    search_fields = ("request_id",)
    search_help_text = lazy("Request ID, order or idempotency key")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    *("time", "caller", "account_link", "call", "response", "meaning"),
                    *("wrong_fields", "order", "idempotency_key"),
                )
            },
        ),
        (DETAILS, {"fields": ("request_id", "milliseconds"), "classes": ["collapse"]}),
    )

    def search(
        self, queryset: QuerySet[RequestRecord], term: str, request: HttpRequest
    ) -> tuple[QuerySet[RequestRecord], bool]:
        """Finds whole values only."""
        if term:
            return find_records(queryset, term), False
        return queryset, False

    def name_of(self, row: RequestRecord) -> str:
        name = _("Request of %(time)s") % {"time": time_cell(row.at)}
        return f"{name} · {row.account}" if row.account else name

    @admin.display(description=lazy("time"))
    def time(self, record: RequestRecord) -> str:
        return time_cell(record.at)

    @admin.display(description=lazy("client"))
    def caller(self, record: RequestRecord) -> str:
        return link_to(record.client)

    @admin.display(description=lazy("account"))
    def account_link(self, record: RequestRecord) -> str:
        return link_to(record.account) if record.account else EMPTY

    @admin.display(description=lazy("request"))
    def call(self, record: RequestRecord) -> str:
        return f"{record.method} {record.path}"

    @display(
        description=lazy("response"),
        label=Colours({lazy("bought"): "success", lazy("replayed"): "success"}),
    )
    def response(self, record: RequestRecord) -> str:
        if record.is_replay:
            return _("replayed")
        if not record.code:
            return _("bought") if record.status < 300 else str(record.status)
        words = [str(record.status), record.code, record.reason]
        return " ".join(word for word in words if word)

    @admin.display(description=lazy("meaning"))
    def meaning(self, record: RequestRecord) -> str:
        """The usual message of the reason or the code."""
        text = MEANINGS.get(record.reason) or MEANINGS.get(record.code)
        return format_html('<span lang="en">{}</span>', text) if text else EMPTY

    @admin.display(description=lazy("wrong fields"))
    def wrong_fields(self, record: RequestRecord) -> str:
        lines = ((name, " ".join(messages)) for name, messages in record.problems.items())
        return format_html_join("", "<p><b>{}</b>: {}</p>", lines) or EMPTY

    @admin.display(description=lazy("order"))
    def order(self, record: RequestRecord) -> str:
        reference = record.order_reference
        return link_to_list(Order, reference, q=reference) if reference else EMPTY
