from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from catalogue.imports.code_import import check_codes, import_codes
from catalogue.stock.batches import BatchDetails, total_cost
from core.command_line import (
    JSONCommand,
    add_confirm_option,
    add_problems_option,
    amount,
    shell_actor,
    whole_number,
    writing_problems,
)
from core.files.doubts import doubt_id


class Command(JSONCommand):
    help = (
        "Imports the codes of a CSV or XLSX file, all or nothing. The first line names the"
        " columns: code, and optionally serial_number and pin_code."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("product_id", type=whole_number)
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--variation", type=whole_number, metavar="ID")
        parser.add_argument(
            "--check",
            action="store_true",
            help="import nothing: show the shelf, the cost, how many codes, and the first outlines",
        )
        add_confirm_option(parser)
        add_problems_option(parser)
        parser.add_argument("--supplier", metavar="TEXT")
        parser.add_argument("--invoice", metavar="TEXT", help="the number of the invoice")
        parser.add_argument("--unit-cost", type=amount, help="what one code cost, such as 9.12")
        parser.add_argument("--cost-currency", metavar="CODE", help="of the cost, such as EUR")
        parser.add_argument("--expires-on", metavar="DAY", help="last day of sale in UTC")

    def answer(self, **options: Any) -> dict[str, Any]:
        with writing_problems(options["problems"]):
            return self._import(options)

    def _import(self, options: dict[str, Any]) -> dict[str, Any]:
        details = BatchDetails.read(options)
        if options["check"]:
            shelf, checked = check_codes(
                product_id=options["product_id"],
                path=Path(options["file"]),
                variation_id=options["variation"],
            )
            return {
                "product_id": shelf.product_id,
                "variation_id": shelf.variation_id,
                "shelf": str(shelf),
                **asdict(checked),
                "doubts": {doubt_id(one): one for one in checked.doubts},
                "unit_cost": details.unit_cost,
                "total_cost": total_cost(details.unit_cost, checked.codes),
                "cost_currency": details.cost_currency or None,
            }
        batch = import_codes(
            product_id=options["product_id"],
            path=Path(options["file"]),
            imported_by=shell_actor(),
            variation_id=options["variation"],
            details=details,
            confirmed=options["confirm"],
        )
        batch.shelf.refresh_from_db()
        return {
            "product_id": batch.shelf.product_id,
            "variation_id": batch.shelf.variation_id,
            "batch": batch.pk,
            "imported": batch.number,
            "available_stock": batch.shelf.available_stock,
        }
