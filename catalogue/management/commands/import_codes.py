from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from catalogue.code_import import import_codes
from core.command_line import JSONCommand


class Command(JSONCommand):
    help = (
        "Imports the codes of a CSV file, all or nothing. The first line names the columns: code,"
        " and optionally serial_number and pin_code."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("product_id", type=int)
        parser.add_argument("file", type=Path, metavar="FILE.csv")
        parser.add_argument("--variation", type=int, metavar="ID")

    def answer(self, **options: Any) -> dict[str, Any]:
        shelf, number = import_codes(
            product_id=options["product_id"],
            path=Path(options["file"]),
            variation_id=options["variation"],
        )
        return {
            "product_id": shelf.product_id,
            "variation_id": shelf.variation_id,
            "imported": number,
            "available_stock": shelf.available_stock,
        }
