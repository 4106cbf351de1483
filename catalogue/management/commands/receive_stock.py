from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from catalogue.transfers import receive_stock
from config.command_line import JSONCommand


class Command(JSONCommand):
    help = "Puts the codes of another cell's file into stock, once (docs/operate/cells.md)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def answer(self, **options: Any) -> dict[str, Any]:
        received = receive_stock(path=options["file"])
        transfer = received.transfer
        return {
            "reference": transfer.reference,
            "from": transfer.cell,
            "received_before": received.before,
            "codes": transfer.codes,
            "already_here": received.already_here,
            "void_here": received.void_here,
        }
