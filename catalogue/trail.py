"""Price changes of shelves as lines of the audit trail (core/trails.py)."""

from catalogue.models import PriceChange, ReferenceLink, Shelf, Variation
from core.trails import Objects, ids_of, price_trail


def parts_of_product(pk: int) -> Objects:
    """The shelves and variations of a product."""
    return {
        "catalogue.shelf": ids_of(Shelf.objects.filter(product=pk)),
        "catalogue.variation": ids_of(Variation.objects.filter(product=pk)),
    }


def parts_of_account(pk: int) -> Objects:
    """The reference links of an account."""
    return {"catalogue.referencelink": ids_of(ReferenceLink.objects.filter(account=pk))}


TRAIL = price_trail(
    title="Prices of products",
    model=PriceChange,
    of=Shelf,
    column="shelf",
    read_with=["shelf__product", "shelf__variation__product"],
)
