from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from catalogue.transfers import send_stock
from config.command_line import JSONCommand, shell_actor


class Command(JSONCommand):
    help = (
        "Takes codes out of stock for ever, and writes them to a file for another cell. With the"
        " same reference again, writes the same file again (docs/operate/cells.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("product_id", type=int)
        parser.add_argument("quantity", type=int, help="number of codes")
        parser.add_argument("--variation", type=int)
        parser.add_argument("--to", required=True, metavar="CELL")
        parser.add_argument("--reference", required=True, help="names this transfer in both cells")
        parser.add_argument("--file", required=True, type=Path)

    def answer(self, **options: Any) -> dict[str, Any]:
        transfer = send_stock(
            product_id=options["product_id"],
            variation_id=options["variation"],
            quantity=options["quantity"],
            to=options["to"],
            reference=options["reference"],
            path=options["file"],
            actor=shell_actor(),
        )
        return {"reference": transfer.reference, "to": transfer.cell, "codes": transfer.codes}
