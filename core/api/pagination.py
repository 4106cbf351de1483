"""Reads `page` and `per_page` and builds the `data` of list responses (contract, "Pagination")."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rest_framework.request import Request

DEFAULT_PER_PAGE = 50  # of the catalogue; orders, which are larger, have their own
MAX_PER_PAGE = 100
# Larger than any real page; `MAX_PAGE * MAX_PER_PAGE` still fits PostgreSQL's bigint.
MAX_PAGE = 10**12
_INTEGER = re.compile(r"[+-]?\d+")


@dataclass(frozen=True)
class Page:
    """The requested slice of a list: `page` counts from 1, `offset` from 0."""

    page: int
    per_page: int

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.per_page


def read_page(request: Request, *, default_per_page: int) -> Page:
    """Reads `page` and `per_page`. A value out of range is clamped; not a number is the default."""
    return Page(
        page=_clamp(request.query_params.get("page"), default=1, highest=MAX_PAGE),
        per_page=_clamp(
            request.query_params.get("per_page"), default=default_per_page, highest=MAX_PER_PAGE
        ),
    )


def page_data(items: Any, *, page: Page, total: int) -> dict[str, Any]:
    """The `data` of a list response. `total` counts all items, not only those of this page."""
    return {
        "items": items,
        "pagination": {
            "page": page.page,
            "per_page": page.per_page,
            "total": total,
            "last_page": max(1, -(-total // page.per_page)),
        },
    }


def _clamp(text: str | None, *, default: int, highest: int) -> int:
    text = (text or "").strip()  # a plus sign in a query is read as a space
    if not _INTEGER.fullmatch(text):
        return default
    # Decimal has no limit on digits; int() refuses more than 4,300 of them.
    return int(min(max(Decimal(text), Decimal(1)), Decimal(highest)))
