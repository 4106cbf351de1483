"""Importing the top-up products of a catalogue file, with their fields, by id."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext_noop
from rest_framework import serializers

from audit.services import record_changes
from catalogue.imports.catalogue_import import (
    NO_CATEGORY,
    SOLD_IN,
    FileRow,
    StrictBooleanField,
    Values,
    at_place,
    currency_field,
    find_repeats,
    id_field,
    ids_of,
    name_field,
    price_field,
    save_rows,
)
from catalogue.models import Category
from core.api.serializer_fields import StrictIntegerField, StrictStringField
from core.inputs import validate_not_blank
from topups.models import (
    FIELD_LABEL_LENGTH,
    FIELD_NAME_LENGTH,
    MAX_FIELD_VALUE_LENGTH,
    MAX_FIELDS,
    MAX_STOCK,
    PROVIDER_LENGTH,
    FieldId,
    FieldType,
    Fulfilment,
    TopUpField,
    TopUpFieldOption,
    TopUpProduct,
)

# What is wrong with a row of the file. Imports store it in English, and pages translate it.
OPTIONS = gettext_noop("A dropdown needs options; other types have none.")
REUSED_ID = gettext_noop(
    "%(id)s is the id of the field %(name)s and is never reused. Give the field %(other)s an id"
    " above %(most)s"
)
WRONG_TOPUP_ROWS = (OPTIONS, REUSED_ID)


class OptionRow(FileRow):
    value = StrictStringField(max_length=MAX_FIELD_VALUE_LENGTH, validators=[validate_not_blank])
    label = StrictStringField(  # type: ignore[assignment]  # the contract's own word
        max_length=FIELD_LABEL_LENGTH,
        required=False,
        allow_null=True,
        validators=[validate_not_blank],
    )


class FieldRow(FileRow):
    id = StrictIntegerField(min_value=1, max_value=MAX_STOCK)
    name = StrictStringField(max_length=FIELD_NAME_LENGTH)
    label = StrictStringField(max_length=FIELD_LABEL_LENGTH)  # type: ignore[assignment]  # contract's word
    type = serializers.ChoiceField(FieldType.choices)
    required = StrictBooleanField(required=False)  # type: ignore[assignment]  # contract's word
    options = serializers.ListField(child=OptionRow(), required=False)

    def validate(self, attrs: Values) -> Values:
        if (attrs["type"] == FieldType.DROPDOWN) != bool(attrs.get("options")):
            raise serializers.ValidationError({"options": [OPTIONS]})
        return attrs


class TopUpProductRow(FileRow):
    id = id_field()
    name = name_field()
    category = id_field(required=False, allow_null=True)
    currency = currency_field()
    price = price_field()
    available_stock = StrictIntegerField(
        min_value=0, max_value=MAX_STOCK, required=False, allow_null=True
    )
    active = StrictBooleanField(required=False)
    published = StrictBooleanField(required=False)
    external_provider = StrictStringField(
        max_length=PROVIDER_LENGTH, required=False, allow_null=True
    )
    announce = StrictBooleanField(required=False)
    fields = serializers.ListField(  # type: ignore[assignment]  # the contract's own word
        child=FieldRow(),
        required=False,
        max_length=MAX_FIELDS,
        error_messages={"max_length": "A top-up product has at most {max_length} fields."},
    )


@transaction.atomic
def save_topup_products(*, products: Sequence[Values]) -> dict[str, dict[str, int]]:
    """Creates or updates rows in one transaction; returns counts by kind. The caller has validated
    them, and `find_topup_problems` found nothing.

    If the file lists the `fields` of a product, they replace the present ones, in that order.
    Orders keep their own copy.
    """
    saved = save_rows(
        TopUpProduct,
        [{**row, "category_id": row["category"]} if "category" in row else row for row in products],
        [
            "name",
            "category_id",
            "currency",
            "price",
            "active",
            "published",
            "external_provider",
            "announce",
        ],
    )
    present = _present_fields(row["id"] for row in products if "fields" in row)
    for product in products:
        if "available_stock" in product and _set_stock(product["id"], product["available_stock"]):
            saved.updated.add(product["id"])
        if "fields" in product:
            fields = [_field_values(row) for row in product["fields"]]
            if fields != present.get(product["id"], []):
                _replace_fields(product["id"], product["fields"])
                _record_fields(product["id"], present.get(product["id"], []), fields)
                saved.updated.add(product["id"])
    saved.updated.difference_update(saved.created)
    return {"topup_products": saved.counts()}


def find_topup_problems(categories: Sequence[Values], products: Sequence[Values]) -> Iterator[str]:
    """A sentence for each mistake that a single row does not show; `categories` are those of the
    same file. Values may be missing in the rows, because they were wrong."""
    yield from find_repeats(
        (f"topup_products[{place}].id", row.get("id")) for place, row in enumerate(products)
    )
    known = ids_of(categories) | set(Category.objects.values_list("pk", flat=True))
    ids = ids_of(products)
    currencies = dict(TopUpProduct.objects.filter(pk__in=ids).values_list("pk", "currency"))
    names: dict[int, dict[int, str]] = defaultdict(dict)
    field_ids = FieldId.objects.filter(product__in=ids).values_list("product", "number", "name")
    for product_id, number, name in field_ids:
        names[product_id][number] = name
    for place, row in enumerate(products):
        path = f"topup_products[{place}]"
        if row.get("category") is not None and row["category"] not in known:
            yield at_place(f"{path}.category", NO_CATEGORY % {"category": row["category"]})
        currency = currencies.get(row.get("id", 0), "")
        sold = Fulfilment.objects.filter(product=row.get("id"))
        if currency and currency != row.get("currency", currency) and sold.exists():
            yield at_place(f"{path}.currency", SOLD_IN % {"currency": currency})
        yield from _find_field_problems(path, row.get("fields", []))
        yield from _find_reused_ids(path, names.get(row.get("id", 0), {}), row.get("fields", []))


def _find_field_problems(path: str, fields: Sequence[Values]) -> Iterator[str]:
    for key in ("id", "name"):
        yield from find_repeats(
            (f"{path}.fields[{place}].{key}", field.get(key)) for place, field in enumerate(fields)
        )
    for place, field in enumerate(fields):
        yield from find_repeats(
            (f"{path}.fields[{place}].options[{number}].value", option.get("value"))
            for number, option in enumerate(field.get("options", []))
        )


def _find_reused_ids(
    path: str, known: Mapping[int, str], fields: Sequence[Values]
) -> Iterator[str]:
    """`known` are the names of the product's fields, also of former ones, by their ids."""
    for place, field in enumerate(fields):
        if "name" not in field:
            continue
        name = known.get(field.get("id", 0), field["name"])
        if name != field["name"]:
            values = {"id": field["id"], "name": repr(name), "other": repr(field["name"])}
            problem = REUSED_ID % {**values, "most": max(known)}
            yield at_place(f"{path}.fields[{place}].id", problem)


def _set_stock(product_id: int, stock: int | None) -> bool:
    """Sets the stock; returns whether that changed it. One statement: purchases go on meanwhile."""
    product = TopUpProduct.objects.get(pk=product_id)
    same = Q(available_stock=stock)
    changed = TopUpProduct.objects.filter(pk=product_id).exclude(same)
    if not changed.update(available_stock=stock):
        return False
    record_changes([(product, {"available_stock": (product.available_stock, stock)})])
    return True


def _replace_fields(product_id: int, rows: Sequence[Values]) -> None:
    TopUpField.objects.filter(product=product_id).delete()
    for position, row in enumerate(rows):
        field = TopUpField.objects.create(
            product_id=product_id,
            position=position,
            number=row["id"],
            name=row["name"],
            label=row["label"],
            type=row["type"],
            required=row.get("required", True),
        )
        TopUpFieldOption.objects.bulk_create(
            TopUpFieldOption(
                field=field, position=number, value=option["value"], label=option.get("label")
            )
            for number, option in enumerate(row.get("options", []))
        )


def _record_fields(product_id: int, before: Sequence[Any], after: Sequence[Any]) -> None:
    """Adds an audit entry about the fields of a product, each in a few words."""

    def in_words(fields: Sequence[Any]) -> str:
        return ", ".join(
            f"{name} ({label}, {kind}{choices(options)}{'' if required else ', optional'})"
            for _number, name, label, kind, required, options in fields
        )

    def choices(options: Sequence[tuple[str, str | None]]) -> str:
        words = (f"{value} {label or ''}".strip() for value, label in options)
        return f": {' / '.join(words)}" if options else ""

    product = TopUpProduct.objects.get(pk=product_id)
    record_changes([(product, {"fields": (in_words(before), in_words(after))})])


def _present_fields(product_ids: Iterable[int]) -> dict[int, list[tuple[Any, ...]]]:
    """The fields of each product that has some, like `_field_values`."""
    present: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    fields = TopUpField.objects.filter(product__in=list(product_ids))
    for field in fields.prefetch_related("options"):
        options = [(option.value, option.label) for option in field.options.all()]
        values = field.number, field.name, field.label, field.type, field.required, options
        present[field.product_id].append(values)
    return present


def _field_values(row: Values) -> tuple[Any, ...]:
    options = [(option["value"], option.get("label")) for option in row.get("options", [])]
    required = row.get("required", True)
    return row["id"], row["name"], row["label"], row["type"], required, options
