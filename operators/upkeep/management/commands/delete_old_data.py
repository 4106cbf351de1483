from typing import Any

from django.core.management.base import CommandParser

from core.command_line import JSONCommand
from operators.upkeep.retention import KINDS, delete_old_data


class Command(JSONCommand):
    help = (
        "Counts old rows (docs/operate/retention.md). With --apply, deletes them. It is safe to"
        " interrupt it and to run it again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--apply", action="store_true", help="delete; without it, only count")
        parser.add_argument("--only", action="append", default=[], metavar="KIND", choices=KINDS)
        parser.add_argument(
            "--seconds", type=float, default=float("inf"), help="start nothing new after this time"
        )

    def answer(self, **options: Any) -> dict[str, Any]:
        return delete_old_data(
            apply=options["apply"],
            kinds=options["only"],
            seconds=options["seconds"],
            report=lambda kind, rows: self.stderr.write(f"… {kind}: {rows}"),
        )
