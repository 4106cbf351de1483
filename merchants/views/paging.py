"""Splits long lists into pages by the key of a row, without COUNT or OFFSET."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django import forms
from django.db.models import Model, QuerySet
from django.http import QueryDict

from core.api.serializer_fields import MAX_ID

PER_PAGE = 50
MOST_FOUND = 50  # rows of a search

Row = TypeVar("Row", bound=Model)


class Place(forms.Form):
    """The page's position: rows before or after a key. Invalid values mean the first page."""

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
    place = Place(query)
    place.is_valid()
    before, after = place.cleaned_data.get("before"), place.cleaned_data.get("after")
    if after is not None:
        found = list(rows.filter(**{f"{key}__gt": after}).order_by(key)[: per_page + 1])
        shown = found[:per_page][::-1]
        newer, older = len(found) > per_page, bool(shown)
    else:
        older_rows = rows if before is None else rows.filter(**{f"{key}__lt": before})
        found = list(older_rows.order_by(f"-{key}")[: per_page + 1])
        shown = found[:per_page]
        newer, older = before is not None and bool(shown), len(found) > per_page
    return KeysetPage(
        rows=shown,
        newer=_link(query, after=getattr(shown[0], key)) if newer else None,
        older=_link(query, before=getattr(shown[-1], key)) if older else None,
    )


def newest_of(found: Sequence[Row] | QuerySet[Row]) -> tuple[list[Row], bool]:
    """The rows that a search shows, and whether it leaves out any."""
    rows = list(found[: MOST_FOUND + 1])
    return rows[:MOST_FOUND], len(rows) > MOST_FOUND


def without_place(query: QueryDict) -> str:
    """The query string of the list's first page, with its filters."""
    return _link(query)


def _link(query: QueryDict, **place: int) -> str:
    kept = query.copy()
    for name in ("before", "after"):
        kept.pop(name, None)
    for name, value in place.items():
        kept[name] = str(value)
    return kept.urlencode()
