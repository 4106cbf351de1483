import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from core.command_line import ServiceCommand
from core.json_output import dumps
from wallets.evidence.verification import verify_ledger


class Command(ServiceCommand):
    help = (
        "Computes the hash of every ledger entry again and compares it with the signed roots."
        " Exits with 1 on any finding. Changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--roots",
            nargs="+",
            type=Path,
            default=[],
            metavar="FILE",
            help="logs that left the host; each root in them must be in the database",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        result = verify_ledger(files=options["roots"])
        self.stdout.write(dumps(result).decode())
        if not result["ok"]:
            sys.exit(1)
