"""Reads the file of `import_catalogue` and passes each app its part, in one transaction."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from django.db import transaction
from rest_framework import serializers

from audit.models import AuditAction
from audit.services import record_action
from catalogue.catalogue_import import (
    CategoryRow,
    FileRow,
    ProductRow,
    name_problems,
    save_catalogue,
)
from catalogue.models import Product
from config.database.functions import name_actor
from config.inputs import InputProblem, raise_problems
from topups.topup_product_import import TopUpProductRow, save_topup_products


class CatalogueFile(FileRow):
    """The whole file. Each top-level list belongs to one app."""

    categories = serializers.ListField(child=CategoryRow(), default=list)
    products = serializers.ListField(child=ProductRow(), default=list)
    topup_products = serializers.ListField(child=TopUpProductRow(), default=list)


def import_catalogue(*, path: Path, actor: str) -> dict[str, dict[str, int]]:
    """Creates or updates everything in the file by id, or nothing. Returns counts by kind.

    The price history records `actor` as the person who changed a price. Raises InputProblem with
    each problem and its place in the file.
    """
    return import_rows(_read(path), actor=actor)


def import_rows(content: Any, *, actor: str) -> dict[str, dict[str, int]]:
    """Imports the parsed content of a catalogue file, like `import_catalogue`."""
    file = CatalogueFile(data=content)
    if not file.is_valid():
        raise_problems(name_problems(file.errors))
    rows = file.validated_data
    with transaction.atomic():
        name_actor(actor)
        counts = {
            **save_catalogue(categories=rows["categories"], products=rows["products"]),
            **save_topup_products(products=rows["topup_products"]),
        }
        # The price history holds the old and new prices.
        record_action(
            actor=None, action=AuditAction.PRODUCTS_IMPORTED, on=Product, note=f"{counts}"
        )
        return counts


def _read(path: Path) -> Any:
    try:
        return json.loads(
            path.read_text("utf-8-sig"),
            parse_float=Decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_refuse_repeated_names,
        )
    except OSError as error:
        raise InputProblem(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputProblem(f"{path} is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InputProblem(
            f"{path} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        ) from None
    except RecursionError:
        raise InputProblem(f"{path} is nested too deeply.") from None
    except InputProblem:
        raise
    except ValueError:  # the path contains NUL, or a number has thousands of digits
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
