from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core.command_line import JSONCommand
from operators.imports.catalogue_export import ExportFormat, export_catalogue


class Command(JSONCommand):
    help = (
        "Writes the catalogue to a file that import_catalogue reads. The ending of its name says"
        " whether it is CSV, XLSX or JSON."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.csv|FILE.xlsx|FILE.json")

    def answer(self, **options: Any) -> dict[str, Any]:
        path: Path = options["file"]
        ending = path.suffix.lower().removeprefix(".")
        if ending not in ExportFormat.values:
            raise CommandError("The name of the file must end with .csv, .xlsx or .json.")
        content = export_catalogue(file_format=ExportFormat(ending))
        try:
            path.write_bytes(content)
        except OSError as error:
            raise CommandError(f"Cannot write {path}: {error.strerror}.") from None
        return {"file": str(path), "bytes": len(content)}
