"""The whole catalogue as a file that `import_catalogue` reads: importing it changes nothing.

Counted stock of top-up products is left out: an import would set it back to what it was when the
file was made.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import models, transaction

from audit.models import AuditAction
from audit.services import record_action
from catalogue.imports.catalogue_import import lock_out_other_editors
from catalogue.models import Category, Product, Shelf, Variation
from core.numbers import clear_text
from operators.imports.catalogue_table import write_text, write_workbook
from topups.models import TopUpProduct


class ExportFormat(models.TextChoices):
    """The format of the file, and the ending of its name."""

    CSV = "csv", "CSV"
    XLSX = "xlsx", "XLSX"
    JSON = "json", "JSON"


def export_catalogue(*, file_format: ExportFormat, actor: User | None = None) -> bytes:
    """The file. The audit entry names `actor`, or for None who runs the command.

    Raises InputProblem if a workbook cannot hold it.
    """
    content = read_catalogue()
    match file_format:
        case ExportFormat.CSV:
            file = write_text(content)
        case ExportFormat.XLSX:
            file = write_workbook(content)
        case _:
            file = f"{json.dumps(content, ensure_ascii=False, indent=1)}\n".encode()
    record_action(
        actor=actor,
        action=AuditAction.EXPORTED,
        on=Product,
        note=f"Catalogue as {file_format.label}",
    )
    return file


def read_catalogue() -> dict[str, Any]:
    """The content of the file."""
    with transaction.atomic():
        lock_out_other_editors()
        shelves = {(one.product_id, one.variation_id): one for one in Shelf.objects.all()}
        variations = defaultdict(list)
        for one in Variation.objects.order_by("pk"):
            variations[one.product_id].append(one)
        return {
            "categories": [
                {"id": one.pk, "name": one.name, "active": one.active}
                for one in Category.objects.order_by("pk")
            ],
            "products": [
                {
                    "id": one.pk,
                    "name": one.name,
                    "category": one.category_id,
                    "type": one.type,
                    "currency": one.currency,
                    "active": one.active,
                    **_terms(shelves[one.pk, None]),
                    "variations": [
                        {
                            "id": each.pk,
                            "name": each.name,
                            "active": each.active,
                            **_terms(shelves[one.pk, each.pk]),
                        }
                        for each in variations[one.pk]
                    ],
                }
                for one in Product.objects.order_by("pk")
            ],
            "topup_products": [
                _topup_product(one)
                for one in TopUpProduct.objects.order_by("pk").prefetch_related("fields__options")
            ],
        }


def _terms(shelf: Shelf) -> Mapping[str, Any]:
    return {"price": _price(shelf.price), "quantity_step": shelf.quantity_step}


def _topup_product(product: TopUpProduct) -> dict[str, Any]:
    return {
        "id": product.pk,
        "name": product.name,
        "category": product.category_id,
        "currency": product.currency,
        "active": product.active,
        "price": _price(product.price),
        "published": product.published,
        "external_provider": product.external_provider,
        "announce": product.announce,
        "fields": [
            {
                "id": field.number,
                "name": field.name,
                "label": field.label,
                "type": field.type,
                "required": field.required,
                "options": [
                    {"value": option.value, "label": option.label} for option in field.options.all()
                ],
            }
            for field in product.fields.all()
        ],
    }


def _price(price: Decimal | None) -> str | None:
    """An exact price with two or four decimals: with three, the point may be between thousands."""
    if price is None:
        return None
    whole, _, decimals = clear_text(price).partition(".")
    return f"{whole}.{decimals:0<2}"
