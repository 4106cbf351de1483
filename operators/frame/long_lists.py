"""Lists of tables whose rows stay for years: what such a list reads does not grow with the table.

A time becomes a range of ids. With a filter that no index serves, a list looks at LOOKED_AT rows,
the newest first, and links to the older ones: the filter may match few rows or none, and then the
database would read the whole table (docs/decisions/0081-bounded-lists.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.contrib.admin.views.main import PAGE_VAR
from django.db.models import Max, Min, QuerySet, Sum
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import RangeDateTimeFilter
from unfold.utils import parse_datetime_str

from accounts.models import ApiClient
from core.database.ids import MARGIN, find_first_id
from core.inputs import is_id
from operators.frame.base import BackOfficeList, RecordAdmin
from orders.models import ClientCounter

LOOKED_AT = 3_000
# No row is older or newer. Near the ends of the calendar, sums with times overflow.
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
BEFORE = "before"  # a parameter of the address: the list looks at rows with smaller ids


class TimeFilter(RangeDateTimeFilter):
    """Filters by a time, in the time zone of the reader."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        since, until = self._moment("from"), self._moment("to")
        if since is not None:
            queryset = queryset.filter(**{f"{self.field_path}__gte": since})
        if until is not None:
            queryset = queryset.filter(**{f"{self.field_path}__lte": until})
        return queryset

    def _moment(self, end: str) -> datetime | None:
        words = [self.used_parameters.get(f"{self.parameter_name}_{end}_{n}") for n in (0, 1)]
        moment = parse_datetime_str(" ".join(words)) if all(words) else None
        if moment is None:
            return None
        if timezone.is_naive(moment):
            moment = timezone.make_aware(moment)
        return min(max(moment, EARLIEST), LATEST)


class PeriodFilter(TimeFilter):
    """Filters by the time at which rows were made, through their ids."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        first, end = self.ids(queryset.model)
        if first is not None:
            queryset = queryset.filter(pk__gte=first)
        if end is not None:
            queryset = queryset.filter(pk__lt=end)
        return super().queryset(request, queryset)

    def ids(self, model: Any) -> tuple[int | None, int | None]:
        """The first id of the period, and the first after it; None for an end that is open. Ids
        and times may disagree by the length of a transaction, so both are beyond the period."""
        since, until = self._moment("from"), self._moment("to")
        return (
            None if since is None else find_first_id(model, since - MARGIN),
            None if until is None else find_first_id(model, until + MARGIN),
        )


class LongList(BackOfficeList):
    """Bounds what the list reads, unless an index serves its filters."""

    looked_at = 0  # rows
    older = ""  # the query that leads to the rows before those that were looked at

    left_out_of_files = (PAGE_VAR, BEFORE)

    def get_filters_params(self, params: Any = None) -> Any:
        found = super().get_filters_params(params)
        found.pop(BEFORE, None)
        return found

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        if not self._reads_too_much(request):
            return rows
        page: Any = self.model_admin
        return self._bounded_rows(request, rows, page.position_of(request))

    def all_rows(self, request: HttpRequest) -> tuple[QuerySet[Any], bool]:
        return super().get_queryset(request), self._reads_too_much(request)

    def _reads_too_much(self, request: HttpRequest) -> bool:
        page: Any = self.model_admin
        term = self.query.replace("\x00", "").strip()
        return bool(page.reads_too_much(request, self._filters(), term))

    def _filters(self) -> set[str]:
        """The parameters of the filters that are used, without those of a period."""
        of_periods = {
            name
            for spec in self.filter_specs
            if isinstance(spec, PeriodFilter)
            for name in spec.expected_parameters()
        }
        return set(self.get_filters_params()) - of_periods

    def _bounded_rows(self, request: HttpRequest, rows: QuerySet[Any], name: str) -> QuerySet[Any]:
        """The rows among LOOKED_AT of the table."""
        ends = self.model._default_manager.aggregate(first=Min(name), last=Max(name))
        first, end = ends["first"] or 0, (ends["last"] or 0) + 1
        for spec in self.filter_specs:
            if isinstance(spec, PeriodFilter):
                begins, ended = spec.ids(self.model)
                first, end = max(first, begins or 0), min(end, ended or end)
        if is_id(before := request.GET.get(BEFORE, "")):
            end = min(end, int(before))
        self.looked_at = LOOKED_AT
        begin = end - LOOKED_AT
        if begin > first:
            self.older = self.get_query_string({BEFORE: begin})
        return rows.filter(**{f"{name}__gte": begin, f"{name}__lt": end})


class LongRecordAdmin(RecordAdmin):
    """Records that stay for years.

    served: the filters, by their parameters, each of which an index serves in the order of the
    list.
    """

    served: Sequence[str] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BackOfficeList]:
        return LongList

    def reads_too_much(self, request: HttpRequest, filters: set[str], term: str) -> bool:
        """Whether the list could read the whole table to find few rows, with these filters and
        this search."""
        return bool(filters) and not (len(filters) == 1 and filters <= set(self.served))

    def position_of(self, request: HttpRequest) -> str:
        """The column that rises with time, and has an index."""
        return "pk"


def has_few_orders(clients: QuerySet[ApiClient]) -> bool:
    """Whether these clients have so few orders, by their counters, that a list may read them all.

    A list finds these rows by their ids. By the clients, PostgreSQL might walk all newer orders, or
    join all top-ups.
    """
    counters = ClientCounter.objects.filter(client__in=clients)
    return (counters.aggregate(sum=Sum("orders"))["sum"] or 0) <= LOOKED_AT
