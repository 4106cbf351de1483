"""The shell command that imports a kind of table: its arguments, and what they call."""

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
from operators.imports.table_imports import TableKind, check_path, import_path


class TableImportCommand(JSONCommand):
    """A subclass names its `kind` and has a `help`."""

    kind: TableKind

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        add_check_option(parser)
        add_confirm_option(parser)
        add_problems_option(parser)

    def answer(self, **options: Any) -> dict[str, Any]:
        path = Path(options["file"])
        with writing_problems(options["problems"]):
            if options["check"]:
                return check_path(self.kind, path)
            return import_path(self.kind, path, actor=shell_actor(), confirmed=options["confirm"])
