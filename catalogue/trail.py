"""Price changes of shelves as lines of the audit trail (config/trails.py)."""

from collections.abc import Sequence

from django.db.models import Q

from catalogue.models import PriceChange, ReferenceLink, Shelf, Variation
from config.trails import Line, Objects, Person, Trail, ids_of, who_and_where


def _line(change: PriceChange) -> Line:
    who, where = who_and_where(change.changed_by)
    return Line(
        at=change.changed_at,
        what="Price changed",
        on=("catalogue.shelf", str(change.shelf_id)),
        name=str(change.shelf),
        who=who,
        where=where,
        changes={"price": (change.before, change.after)},
        is_price=True,
    )


def parts_of_product(pk: int) -> Objects:
    """The shelves and variations of a product."""
    return {
        "catalogue.shelf": ids_of(Shelf.objects.filter(product=pk)),
        "catalogue.variation": ids_of(Variation.objects.filter(product=pk)),
    }


def parts_of_account(pk: int) -> Objects:
    """The reference links of an account."""
    return {"catalogue.referencelink": ids_of(ReferenceLink.objects.filter(account=pk))}


def _about(objects: Objects) -> Sequence[Q]:
    shelves = objects.get("catalogue.shelf", ())
    return [Q(shelf__in=shelves)] if shelves else []


def _by(person: Person) -> Sequence[Q]:
    return [Q(changed_by=name) for name in person.names]


TRAIL = Trail(
    title="Prices of products",
    model=PriceChange,
    seen_with=Shelf,
    at="changed_at",
    rows=lambda: PriceChange.objects.prefetch_related(
        "shelf__product", "shelf__variation__product"
    ),
    line=_line,
    by=_by,
    about=_about,
)
