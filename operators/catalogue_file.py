"""Reads the file of `import_catalogue` and passes each app its part, in one transaction."""

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from rest_framework import serializers

from audit.models import AuditAction
from audit.services import record_action
from catalogue.catalogue_import import (
    CategoryRow,
    FileRow,
    ProductRow,
    advance_ids,
    name_problems,
    save_catalogue,
)
from catalogue.models import Category, Product, Variation
from catalogue.models import PriceChange as ShelfPriceChange
from config.database.functions import name_actor
from config.inputs import InputProblem, raise_problems
from topups.models import PriceChange as TopUpPriceChange
from topups.models import TopUpProduct
from topups.topup_product_import import TopUpProductRow, save_topup_products

Counts = dict[str, dict[str, int]]


class CatalogueFile(FileRow):
    """The whole file. Each top-level list belongs to one app."""

    categories = serializers.ListField(child=CategoryRow(), default=list)
    products = serializers.ListField(child=ProductRow(), default=list)
    topup_products = serializers.ListField(child=TopUpProductRow(), default=list)


@dataclass(frozen=True)
class PriceMove:
    """What an import would do to one price. `percent` is None if the price is removed."""

    name: str
    currency: str
    before: Decimal
    after: Decimal | None

    @property
    def percent(self) -> Decimal | None:
        if self.after is None:
            return None
        return 100 * (self.after - self.before) / self.before


def import_catalogue(*, path: Path, actor: str) -> Counts:
    """Creates or updates everything in the file by id, or nothing. Returns counts by kind.

    The price history records `actor` as the person who changed a price. Raises InputProblem with
    each problem and its place in the file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputProblem(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError:  # the path contains NUL
        raise InputProblem("Cannot read the file.") from None
    return import_rows(parse_catalogue(content, name=str(path)), actor=actor)


@transaction.atomic
def import_rows(content: Any, *, actor: str, user: User | None = None) -> Counts:
    """Imports the parsed content of a catalogue file, like `import_catalogue`.

    The audit entry names `user`, or for None who runs the command.
    """
    counts = _save(content, actor=actor)
    for model in (Category, Product, Variation, TopUpProduct):
        advance_ids(model)
    # The price history holds the old and new prices.
    record_action(actor=user, action=AuditAction.PRODUCTS_IMPORTED, on=Product, note=f"{counts}")
    return counts


def preview_rows(content: Any) -> tuple[Counts, list[PriceMove]]:
    """What `import_rows` would do now: the counts, and the prices that would change.

    It imports everything and rolls back, so it holds the same locks for the same time. Raises
    InputProblem as `import_rows` does.
    """
    with transaction.atomic():
        newest = [_newest(ShelfPriceChange), _newest(TopUpPriceChange)]
        actor = f"check:{uuid4().hex}"  # tells these price changes from concurrent ones
        counts = _save(content, actor=actor)
        prices = _price_moves(actor, *newest)
        transaction.set_rollback(True)
    return counts, prices


def _newest(model: type[ShelfPriceChange | TopUpPriceChange]) -> int:
    return model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0


def _save(content: Any, *, actor: str) -> Counts:
    file = CatalogueFile(data=content)
    if not file.is_valid():
        raise_problems(name_problems(file.errors))
    rows = file.validated_data
    with transaction.atomic():
        name_actor(actor)
        return {
            **save_catalogue(categories=rows["categories"], products=rows["products"]),
            **save_topup_products(products=rows["topup_products"]),
        }


def _price_moves(actor: str, after_shelves: int, after_topups: int) -> list[PriceMove]:
    """The prices that this actor changed, in rows after these. First prices are left out."""
    of_shelves = (
        ShelfPriceChange.objects.filter(pk__gt=after_shelves, changed_by=actor)
        .select_related("shelf__product", "shelf__variation__product")
        .order_by("pk")
    )
    of_topups = (
        TopUpPriceChange.objects.filter(pk__gt=after_topups, changed_by=actor)
        .select_related("product")
        .order_by("pk")
    )
    return [
        *(
            PriceMove(str(one.shelf), one.shelf.product.currency, one.before, one.after)
            for one in of_shelves
            if one.before is not None  # else its first price
        ),
        *(
            PriceMove(one.product.name, one.product.currency, one.before, one.after)
            for one in of_topups
        ),
    ]


def parse_catalogue(content: bytes, *, name: str) -> Any:
    """The content of a catalogue file. `name` names the file in the message of an InputProblem."""
    try:
        return json.loads(
            content.decode("utf-8-sig"),
            parse_float=Decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_refuse_repeated_names,
        )
    except UnicodeDecodeError:
        raise InputProblem(f"{name} is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InputProblem(
            f"{name} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        ) from None
    except RecursionError:
        raise InputProblem(f"{name} is nested too deeply.") from None
    except InputProblem:
        raise
    except (ValueError, ArithmeticError):  # a number has thousands of digits, or a huge exponent
        raise InputProblem("Cannot read the file or a number in it.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise InputProblem(f"{name} is not a JSON number.")


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise InputProblem(f"The name {repeated!r} appears twice in one object.")
    return members
