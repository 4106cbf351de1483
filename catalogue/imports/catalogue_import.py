"""Importing a catalogue file: categories, products and variations, created or updated by id.

A value that the file leaves out stays as it is, or gets the model's default in a new row. An import
never deletes anything. To stop selling a product, switch it off.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from django.db import connection, transaction
from django.db.models import Model
from django.utils.translation import gettext_noop
from rest_framework import serializers

from audit.services import Changes, find_changes, record_changes
from catalogue.models import (
    MAX_QUANTITY,
    PRICE_DIGITS,
    Category,
    Product,
    ProductType,
    Shelf,
    Variation,
    VoucherCode,
)
from core.api.serializer_fields import StrictIntegerField, StrictSerializer, StrictStringField
from core.database.columns import MONEY_DECIMALS, NAME_LENGTH, validate_currency

MAX_FILE_ID = 2**53 - 1  # exact in every JSON reader, and leaves ids for rows created elsewhere
BATCH = 1000  # rows per statement
# What is wrong with a row of the file. Imports store it in English, and pages translate it.
AT_PLACE = gettext_noop("%(place)s: %(problem)s")
THE_FILE = gettext_noop("the file")
NOT_AN_OBJECT = gettext_noop("Must be an object.")
REPEATS = gettext_noop("repeats %(place)s")
OTHER_PRODUCT = gettext_noop("belongs to product %(product)s")
NO_CATEGORY = gettext_noop("there is no category %(category)s")
SOLD_IN = gettext_noop("the product was sold in %(currency)s")
WRONG_ROWS = (THE_FILE, NOT_AN_OBJECT, REPEATS, OTHER_PRODUCT, NO_CATEGORY, SOLD_IN)

Values = dict[str, Any]


class StrictBooleanField(serializers.BooleanField):
    """Accepts only true and false, not strings or numbers."""

    def to_internal_value(self, data: Any) -> bool:
        if type(data) is not bool:
            self.fail("invalid", input=data)
        return data


class FileRow(StrictSerializer):
    """An object in the file. Names that are not declared are refused."""

    def to_internal_value(self, data: Any) -> Values:
        if not isinstance(data, dict):
            raise serializers.ValidationError({"non_field_errors": [NOT_AN_OBJECT]})
        unknown: Values = self.unknown_fields(data)
        if not unknown:
            return super().to_internal_value(data)
        known = {name: value for name, value in data.items() if name in self.fields}
        try:
            super().to_internal_value(known)
        except serializers.ValidationError as error:
            unknown |= cast("Values", error.detail)
        raise serializers.ValidationError(unknown)


def id_field(**options: Any) -> StrictIntegerField:
    """An id from the file."""
    return StrictIntegerField(min_value=1, max_value=MAX_FILE_ID, **options)


def name_field() -> StrictStringField:
    """A name to show."""
    return StrictStringField(max_length=NAME_LENGTH)


def currency_field() -> StrictStringField:
    """A currency code."""
    return StrictStringField(validators=[validate_currency])


def price_field(**options: Any) -> serializers.DecimalField:
    """An exact price, as a string or a JSON number."""
    return serializers.DecimalField(
        max_digits=PRICE_DIGITS,
        decimal_places=MONEY_DECIMALS,
        min_value=Decimal(1).scaleb(-MONEY_DECIMALS),
        **options,
    )


class CategoryRow(FileRow):
    id = id_field()
    name = name_field()
    active = StrictBooleanField(required=False)


class VariationRow(FileRow):
    id = id_field()
    name = name_field()
    active = StrictBooleanField(required=False)
    price = price_field(required=False, allow_null=True)
    quantity_step = StrictIntegerField(required=False, min_value=1, max_value=MAX_QUANTITY)


class ProductRow(VariationRow):
    type = serializers.ChoiceField(ProductType.choices, required=False, allow_null=True)
    category = id_field(required=False, allow_null=True)
    currency = currency_field()
    variations = serializers.ListField(child=VariationRow(), required=False)


@dataclass(frozen=True)
class Saved:
    """Which rows of one kind were created and updated, by id, and how many there were."""

    created: set[int]
    updated: set[int]
    total: int

    def counts(self) -> dict[str, int]:
        created, updated = len(self.created), len(self.updated)
        return {
            "created": created,
            "updated": updated,
            "unchanged": self.total - created - updated,
        }


@transaction.atomic
def save_catalogue(
    *, categories: Sequence[Values], products: Sequence[Values]
) -> dict[str, dict[str, int]]:
    """Creates or updates rows in one transaction; returns counts by kind. The caller has validated
    them, and `find_problems` found nothing."""
    lock_out_other_editors()
    variations = [
        {**variation, "product_id": product["id"]}
        for product in products
        for variation in product.get("variations", [])
    ]
    saved_categories = save_rows(Category, categories, ["name", "active"])
    saved_products = save_rows(
        Product,
        [_with_category_id(product) for product in products],
        ["name", "type", "category_id", "currency", "active"],
    )
    saved_variations = save_rows(Variation, variations, ["product_id", "name", "active"])
    for shelf in _save_shelves(products, variations):
        if shelf.variation_id is None:
            saved_products.updated.add(shelf.product_id)
        else:
            saved_variations.updated.add(shelf.variation_id)
    saved_products.updated.difference_update(saved_products.created)
    saved_variations.updated.difference_update(saved_variations.created)
    return {
        "categories": saved_categories.counts(),
        "products": saved_products.counts(),
        "variations": saved_variations.counts(),
    }


def save_rows(model: type[Model], rows: Sequence[Values], fields: Sequence[str]) -> Saved:
    """Creates or updates rows by id. Afterwards call `advance_ids`, unless all is rolled back.

    The audit trail gets an entry for each updated row.
    """
    # Locked, so that no edit between reading and writing is lost.
    locked = model._default_manager.select_for_update(no_key=True).order_by("pk")
    present = locked.in_bulk([row["id"] for row in rows])
    created, updated, recorded = [], [], []
    for row in rows:
        values = {name: row[name] for name in fields if name in row}
        instance = present.get(row["id"])
        if instance is None:
            created.append(model(pk=row["id"], **values))
        elif changes := find_changes({name: getattr(instance, name) for name in values}, values):
            for name, value in values.items():
                setattr(instance, name, value)
            updated.append(instance)
            recorded.append((instance, changes))
    model._default_manager.bulk_create(created, batch_size=BATCH)
    if updated:
        model._default_manager.bulk_update(
            updated, [name.removesuffix("_id") for name in fields], batch_size=BATCH
        )
    record_changes(recorded)
    return Saved({row.pk for row in created}, {row.pk for row in updated}, len(rows))


def find_repeats(paths: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """A sentence for each repeated id. Takes pairs of a place in the file and the id there, or
    None."""
    first: dict[Any, str] = {}
    for path, row_id in paths:
        if row_id in first:
            yield at_place(path, REPEATS % {"place": first[row_id]})
        elif row_id is not None:
            first[row_id] = path


def ids_of(rows: Iterable[Values]) -> set[int]:
    """The ids of the rows that have one."""
    return {row["id"] for row in rows if "id" in row}


def name_problems(detail: Any, path: str = "") -> Iterator[str]:
    """One line for each error of a serializer, such as `products[3].variations[0].price: …`."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from name_problems(inner, _step(path, name))
    elif isinstance(detail, list):
        yield from (at_place(path or THE_FILE, str(sentence)) for sentence in detail)
    else:
        yield at_place(path or THE_FILE, str(detail))


def at_place(place: str, problem: str) -> str:
    """A sentence about a place in the file."""
    return AT_PLACE % {"place": place, "problem": problem}


def _step(path: str, name: object) -> str:
    if isinstance(name, int):
        return f"{path}[{name}]"
    if name == "non_field_errors":
        return path
    member = name if str(name).isidentifier() else repr(name)
    return f"{path}.{member}" if path else str(member)


def lock_out_other_editors() -> None:
    """Makes other imports and edits in the back office wait for the commit, but not purchases."""
    with connection.cursor() as cursor:
        cursor.execute(
            "LOCK TABLE catalogue_category, catalogue_product, catalogue_variation"
            " IN SHARE ROW EXCLUSIVE MODE"
        )


def find_problems(categories: Sequence[Values], products: Sequence[Values]) -> Iterator[str]:
    """A sentence for each mistake that a single row does not show. Values may be missing in the
    rows, because they were wrong."""
    variations = [
        (f"products[{place}].variations[{inner}]", product.get("id"), variation.get("id"))
        for place, product in enumerate(products)
        for inner, variation in enumerate(product.get("variations", []))
    ]
    yield from find_repeats(
        (f"categories[{place}].id", row.get("id")) for place, row in enumerate(categories)
    )
    yield from find_repeats(
        (f"products[{place}].id", row.get("id")) for place, row in enumerate(products)
    )
    yield from find_repeats((f"{path}.id", variation_id) for path, _, variation_id in variations)

    owners = dict(
        Variation.objects.filter(pk__in={row[2] for row in variations} - {None}).values_list(
            "pk", "product_id"
        )
    )
    for path, product_id, variation_id in variations:
        if product_id is not None and owners.get(variation_id, product_id) != product_id:
            yield at_place(f"{path}.id", OTHER_PRODUCT % {"product": owners[variation_id]})

    known = ids_of(categories) | set(Category.objects.values_list("pk", flat=True))
    currencies = dict(Product.objects.filter(pk__in=ids_of(products)).values_list("pk", "currency"))
    for place, product in enumerate(products):
        category = product.get("category")
        if category is not None and category not in known:
            yield at_place(f"products[{place}].category", NO_CATEGORY % {"category": category})
        if "currency" not in product:
            continue
        # Merchants reconcile by product, so all orders of a product must have one currency.
        currency = currencies.get(product.get("id", 0), product["currency"])
        if currency != product["currency"] and _is_sold(product["id"]):
            yield at_place(f"products[{place}].currency", SOLD_IN % {"currency": currency})


def _is_sold(product_id: int) -> bool:
    return VoucherCode.objects.filter(shelf__product=product_id, order_id__isnull=False).exists()


def _with_category_id(product: Values) -> Values:
    return {**product, **({"category_id": product["category"]} if "category" in product else {})}


def _save_shelves(products: Sequence[Values], variations: Sequence[Values]) -> list[Shelf]:
    """Sets price and step of the shelves, which triggers have created; returns the changed ones."""
    rows: dict[tuple[int, int | None], Values] = {(row["id"], None): row for row in products}
    rows |= {(row["product_id"], row["id"]): row for row in variations}
    changed = []
    recorded: list[tuple[Shelf, Changes]] = []
    shelves = Shelf.objects.filter(product__in=[row["id"] for row in products]).order_by("pk")
    shelves = shelves.select_related("product", "variation__product")  # for the audit entries
    for shelf in shelves.select_for_update(of=("self",), no_key=True):
        row = rows.get((shelf.product_id, shelf.variation_id), {})
        before: Values = {"price": shelf.price, "quantity_step": shelf.quantity_step}
        after: Values = {name: row.get(name, value) for name, value in before.items()}
        if changes := find_changes(before, after):
            recorded.append((shelf, changes))
            shelf.price, shelf.quantity_step = after["price"], after["quantity_step"]
            changed.append(shelf)
    record_changes(recorded)
    if changed:
        Shelf.objects.bulk_update(changed, ["price", "quantity_step"], batch_size=BATCH)
    return changed


def advance_ids(model: type[Model]) -> None:
    """Moves the id sequence on, so that the back office does not create an id of the file again.

    A rollback does not move the sequence back.
    """
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [table])
        (sequence,) = cursor.fetchone()
        cursor.execute(
            f"SELECT setval(%s, newest.id) FROM (SELECT max(id) AS id FROM {table}) AS newest"  # noqa: S608  our own names
            f" WHERE newest.id > (SELECT last_value FROM {sequence})",
            [sequence],
        )
