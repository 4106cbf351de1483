import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from core.command_line import ServiceCommand
from core.json_output import dumps
from operators.upkeep.evidence import verify_evidence


class Command(ServiceCommand):
    help = (
        "Compares files of `export_evidence`, fetched from outside, with the audit trail and the"
        " ledger. Exits with 1 on any finding. Changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        result = verify_evidence(options["files"])
        self.stdout.write(dumps(result).decode())
        if not result["ok"]:
            sys.exit(1)
