"""Splits long lists into pages by the key of a row, without OFFSET. Counts are bounded."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

from django import forms
from django.db import models
from django.db.models import Model, QuerySet
from django.db.models.expressions import Combinable
from django.http import QueryDict

from core.api.serializer_fields import MAX_ID

PER_PAGE = 50
MOST_FOUND = 50  # rows of a search
MOST_COUNTED = 3_000  # rows of a list, with the sum of their amounts

Row = TypeVar("Row", bound=Model)


class Position(forms.Form):
    """A page's position: rows before or after a key. Invalid values mean the first page."""

    before = forms.IntegerField(required=False, min_value=1, max_value=MAX_ID)
    after = forms.IntegerField(required=False, min_value=0, max_value=MAX_ID)


@dataclass(frozen=True)
class KeysetPage(Generic[Row]):
    """Rows, newest first, and the query strings of the newer and older pages, if there are any."""

    rows: list[Row]
    newer: str | None
    older: str | None


def page_of(
    rows: QuerySet[Row], *, query: QueryDict, key: str = "pk", per_page: int = PER_PAGE
) -> KeysetPage[Row]:
    """The page of `rows` at the query's `before` or `after`, which are values of the field `key`.

    The links keep the query's other parameters, such as filters.
    """
    position = Position(query)
    position.is_valid()
    before, after = position.cleaned_data.get("before"), position.cleaned_data.get("after")
    if after is not None:
        rows_read = list(rows.filter(**{f"{key}__gt": after}).order_by(key)[: per_page + 1])
        on_page = rows_read[:per_page][::-1]
        newer, older = len(rows_read) > per_page, bool(on_page)
    else:
        older_rows = rows if before is None else rows.filter(**{f"{key}__lt": before})
        rows_read = list(older_rows.order_by(f"-{key}")[: per_page + 1])
        on_page = rows_read[:per_page]
        newer, older = before is not None and bool(on_page), len(rows_read) > per_page
    return KeysetPage(
        rows=on_page,
        newer=_link(query, after=getattr(on_page[0], key)) if newer else None,
        older=_link(query, before=getattr(on_page[-1], key)) if older else None,
    )


@dataclass(frozen=True)
class Count:
    """The number of rows of a list, and the sum of their amounts. `is_more`: there are more than
    MOST_COUNTED rows, and `sum` is None."""

    number: int
    is_more: bool
    sum: Decimal | None


def count_rows(rows: QuerySet[Any], *, key: str = "pk", amount: Combinable | None = None) -> Count:
    """Counts the rows, and adds up `amount` of each. Reads MOST_COUNTED rows at most."""
    amounts = rows.annotate(counted_amount=amount) if amount else rows
    some = amounts.order_by(f"-{key}")[: MOST_COUNTED + 1]
    sums = {"sum": models.Sum("counted_amount")} if amount else {}
    found = some.aggregate(number=models.Count("pk"), **sums)
    is_more = found["number"] > MOST_COUNTED
    return Count(
        number=min(found["number"], MOST_COUNTED),
        is_more=is_more,
        sum=None if is_more else found.get("sum"),
    )


def newest_of(matches: Sequence[Row] | QuerySet[Row]) -> tuple[list[Row], bool]:
    """The rows that a search shows, and whether it leaves out any."""
    rows = list(matches[: MOST_FOUND + 1])
    return rows[:MOST_FOUND], len(rows) > MOST_FOUND


def first_page_query(query: QueryDict) -> str:
    """The query string of the list's first page, with its filters."""
    return _link(query)


def _link(query: QueryDict, **position: int) -> str:
    values = query.copy()
    for name in ("before", "after"):
        values.pop(name, None)
    for name, value in position.items():
        values[name] = str(value)
    return values.urlencode()
