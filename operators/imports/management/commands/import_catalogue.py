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
from operators.imports.catalogue_file import check_catalogue, import_catalogue


class Command(JSONCommand):
    help = (
        "Creates or updates catalogue entries by id from a JSON, CSV or XLSX file, all or nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        add_check_option(parser)
        add_confirm_option(parser)
        add_problems_option(parser)

    def answer(self, **options: Any) -> dict[str, Any]:
        with writing_problems(options["problems"]):
            path = Path(options["file"])
            if options["check"]:
                return check_catalogue(path=path)
            return import_catalogue(path=path, actor=shell_actor(), confirmed=options["confirm"])
