from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from core.command_line import JSONCommand
from operators.upkeep.evidence import export_evidence


class Command(JSONCommand):
    help = (
        "Writes a file for each day that has ended, with its audit entries and signed roots, for a"
        " store that cannot be rewritten. Days that have a file in the folder are left alone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)

    def answer(self, **options: Any) -> dict[str, Any]:
        return {"written": export_evidence(options["folder"])}
