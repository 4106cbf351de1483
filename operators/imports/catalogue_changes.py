"""The changes of an import of the catalogue: each value, old and new, the dangerous ones first.

The rows that an import changes leave entries in the audit trail. A check imports everything, reads
its entries, and rolls back.
"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from io import StringIO
from typing import Any

from django.utils.translation import gettext_noop
from structlog.contextvars import bound_contextvars

from audit.models import AuditEntry
from catalogue.models import Category, Product, Shelf, Variation
from core.files.csv_cells import harmless
from topups.models import TopUpProduct

KEPT = 10_000  # of one file; the others are counted
SHELF = Shelf._meta.label_lower
KINDS = {
    Category._meta.label_lower: "category",
    Product._meta.label_lower: "product",
    Variation._meta.label_lower: "variation",
    SHELF: "shelf",
    TopUpProduct._meta.label_lower: "topup_product",
}
SWITCHES = ("active", "published")
# Why a change is dangerous, the worst first.
DANGERS = (
    gettext_noop("lower price"),
    gettext_noop("other step"),
    gettext_noop("no longer counted"),
    gettext_noop("switched on or off"),
    gettext_noop("far from the rate before"),
    gettext_noop("other rate"),
)
COLUMNS = ("danger", "kind", "id", "name", "value", "before", "after", "one_before", "one_after")


@dataclass(frozen=True)
class Change:
    """A value that changes. `danger` is one of DANGERS, or empty. Where the price or the step of a
    shelf moves, `one_before` and `one_after` are the price of one code. `list` is the name of a
    price list, and `since` the time from which the new value holds; empty for now."""

    danger: str
    kind: str
    id: str
    name: str
    value: str
    before: str
    after: str
    one_before: str = ""
    one_after: str = ""
    list: str = ""
    since: str = ""


@contextmanager
def marking_entries(mark: str) -> Iterator[None]:
    """Within the block, entries of the audit trail have this mark as their request."""
    with bound_contextvars(request_id=mark):
        yield


def find_changes(mark: str) -> list[Change]:
    """The changes of the entries with this mark. Call it in the transaction of the changes."""
    entries = list(AuditEntry.objects.filter(request_id=mark, object_type__in=KINDS).order_by("pk"))
    shelves = Shelf.objects.in_bulk(
        {int(one.object_id) for one in entries if one.object_type == SHELF}
    )
    changes = [
        _change(entry, value, before, after, shelves)
        for entry in entries
        for value, (before, after) in entry.changes.items()
    ]
    return sorted(changes, key=rank_of)


def as_stored(changes: Sequence[Change]) -> dict[str, Any]:
    """The changes for the result of an import."""
    return {
        "changes": [asdict(one) for one in changes[:KEPT]],
        "more_changes": max(0, len(changes) - KEPT),
    }


def as_csv(changes: Sequence[dict[str, str]], columns: Sequence[str] = COLUMNS) -> bytes:
    """Stored changes as a file for a spreadsheet."""
    text = StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([harmless(one[name]) for name in columns] for one in changes)
    return text.getvalue().encode("utf-8-sig")


def rank_of(change: Change) -> int:
    """Its place among changes: the dangerous ones come first."""
    return DANGERS.index(change.danger) if change.danger else len(DANGERS)


def _change(
    entry: AuditEntry, value: str, before: Any, after: Any, shelves: dict[int, Shelf]
) -> Change:
    one_before, one_after = "", ""
    if entry.object_type == SHELF and (shelf := shelves.get(int(entry.object_id))):
        now = {"price": shelf.price, "quantity_step": shelf.quantity_step}
        earlier = {
            name: entry.changes[name][0] if name in entry.changes else now[name] for name in now
        }
        one_before, one_after = _price_of_one(earlier), _price_of_one(now)
    return Change(
        danger=_danger(value, before, after),
        kind=KINDS[entry.object_type],
        id=entry.object_id,
        name=entry.reference,
        value=value,
        before=_text(value, before),
        after=_text(value, after),
        one_before=one_before,
        one_after=one_after,
    )


def _danger(value: str, before: Any, after: Any) -> str:
    lower_price, other_step, uncounted, switched, *_rates = DANGERS
    if (
        value == "price"
        and before is not None
        and (after is None or Decimal(after) < Decimal(before))
    ):
        return lower_price
    if value == "quantity_step":
        return other_step
    if value == "available_stock" and after is None:
        return uncounted
    return switched if value in SWITCHES else ""


def _price_of_one(terms: dict[str, Any]) -> str:
    if terms["price"] is None:
        return ""
    return f"{Decimal(terms['price']) / int(terms['quantity_step']):.4f}"


def _text(value: str, content: Any) -> str:
    if content is None:
        return ""
    if value == "price":
        return f"{Decimal(content):.4f}"
    return str(content).lower() if isinstance(content, bool) else str(content)
