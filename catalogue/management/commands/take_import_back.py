from typing import Any

from django.core.management.base import CommandParser

from catalogue.imports.take_back import take_import_back
from core.command_line import JSONCommand, shell_actor, whole_number
from core.database.columns import NOTE_LENGTH
from core.inputs import clean_text


class Command(JSONCommand):
    help = (
        "Takes an import of codes back: deletes its codes if none of them is sold or void, and"
        " otherwise holds those in stock."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("batch", type=whole_number, help="the number that import_codes printed")
        parser.add_argument("--reason", required=True, metavar="TEXT")

    def answer(self, **options: Any) -> dict[str, Any]:
        deleted, held = take_import_back(
            batch_id=options["batch"],
            reason=clean_text(options["reason"], what="reason", max_length=NOTE_LENGTH),
            held_by=shell_actor(),
        )
        return {"batch": options["batch"], "deleted": deleted, "held": held}
