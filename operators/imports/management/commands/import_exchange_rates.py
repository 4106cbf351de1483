from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from core.command_line import (
    JSONCommand,
    add_check_option,
    add_confirm_option,
    add_problems_option,
    shell_actor,
    writing_problems,
)
from operators.imports.rate_file import KIND
from operators.imports.table_imports import check_path, import_path


class Command(JSONCommand):
    help = "Adds and changes the exchange rates in a CSV or XLSX file, all or nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        add_check_option(parser)
        add_confirm_option(parser)
        add_problems_option(parser)

    def answer(self, **options: Any) -> dict[str, Any]:
        path = Path(options["file"])
        with writing_problems(options["problems"]):
            if options["check"]:
                return check_path(KIND, path)
            return import_path(KIND, path, actor=shell_actor(), confirmed=options["confirm"])
