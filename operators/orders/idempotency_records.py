"""Idempotency records."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter, DropdownFilter
from unfold.decorators import display

from accounts.api_access.request_records import find_requests
from accounts.models import RequestRecord
from core.texts import lazy
from idempotency.models import BLOCKED, IdempotencyRecord
from operators.frame.base import EMPTY, Colours, link_to_list, time_cell
from operators.frame.long_lists import LongRecordAdmin, PeriodFilter
from orders.models import Order
from orders.selectors import REFERENCE_PATTERN

# A claim and its purchase are seldom further apart, unless a retry took the key over.
NEAR = timedelta(minutes=5)
IS_STORED = ExpressionWrapper(Q(response__isnull=False), output_field=BooleanField())
# As a retry sees it: before this time, the purchase may still be answered.
IS_LOST = Q(
    response=None,
    order_reference__isnull=False,
    started_at__lt=Now() - timedelta(seconds=settings.IDEMPOTENCY_IN_PROGRESS_SECONDS),
)
# `hold_codes` blocked the key: a restore of the database lost the order.
IS_BLOCKED = Q(started_at=BLOCKED)


class OutcomeFilter(DropdownFilter):
    title = lazy("outcome")
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("stored", _("Response stored")),
            ("ordered", _("Ordered, response lost")),
            ("restored", _("Order lost by a restore")),
            ("open", _("In progress")),
        ]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[IdempotencyRecord]
    ) -> QuerySet[IdempotencyRecord]:
        match self.value():
            case "stored":
                return queryset.filter(response__isnull=False)
            case "ordered":
                return queryset.filter(IS_LOST & ~IS_BLOCKED)
            case "restored":
                return queryset.filter(IS_BLOCKED)
            case "open":
                return queryset.filter(~IS_LOST, response=None)
        return queryset


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(LongRecordAdmin):
    """Shows idempotency records. Never loads the stored response or the fingerprint."""

    list_display = (
        "idempotency_key",
        "client",
        "outcome",
        "order",
        "created_at",
        "last_attempt_at",
    )
    list_before_template = "admin/about_idempotency_records.html"
    change_form_before_template = "admin/about_idempotency_records.html"
    list_filter = (
        OutcomeFilter,
        ("client", AutocompleteSelectFilter),
        ("created_at", PeriodFilter),
    )
    list_select_related = ("client",)
    search_fields = ("key",)
    search_help_text = lazy("Whole key or order reference")
    fields = ("id", *list_display)

    def get_queryset(self, request: HttpRequest) -> QuerySet[IdempotencyRecord]:
        records: QuerySet[IdempotencyRecord] = super().get_queryset(request)
        return records.defer("response", "fingerprint").annotate(
            is_stored=IS_STORED, is_lost=ExpressionWrapper(IS_LOST, output_field=BooleanField())
        )

    def search(
        self, queryset: QuerySet[IdempotencyRecord], term: str, request: HttpRequest
    ) -> tuple[QuerySet[IdempotencyRecord], bool]:
        if not term:
            return queryset, False
        if REFERENCE_PATTERN.fullmatch(term):
            order = Order.objects.filter(reference=term).first()
            if order:  # records are indexed by client and key, and by time
                requests = find_requests(RequestRecord.objects.all(), order_reference=term)
                keys = [one.idempotency_key for one in requests if one.idempotency_key]
                same_time = Q(created_at__range=(order.created_at - NEAR, order.created_at + NEAR))
                near = Q(key__in=keys) if keys else same_time
                rows = queryset.filter(near, client=order.client_id, order_reference=term)
                return rows, False
        return queryset.filter(key=term), False

    @admin.display(description=lazy("idempotency key"))
    def idempotency_key(self, record: IdempotencyRecord) -> str:
        return record.key

    @admin.display(description=lazy("last attempt at"))
    def last_attempt_at(self, record: IdempotencyRecord) -> str:
        return time_cell(record.started_at)

    @display(
        description=lazy("outcome"),
        label=Colours(
            {
                lazy("response stored"): "success",
                lazy("ordered, response lost"): "warning",
                lazy("order lost by a restore"): "danger",
                lazy("in progress"): "info",
            }
        ),
    )
    def outcome(self, record: IdempotencyRecord) -> str:
        if getattr(record, "is_stored", False):
            return _("response stored")
        if record.started_at == BLOCKED:
            return _("order lost by a restore")
        return (
            _("ordered, response lost") if getattr(record, "is_lost", False) else _("in progress")
        )

    @admin.display(description=lazy("order"))
    def order(self, record: IdempotencyRecord) -> str:
        if not record.order_reference:
            return EMPTY
        return link_to_list(Order, record.order_reference, q=record.order_reference)
