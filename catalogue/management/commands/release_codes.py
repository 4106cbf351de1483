from typing import Any

from django.core.management.base import CommandParser

from catalogue.stock.holds import release_hold
from core.command_line import JSONCommand, whole_number


class Command(JSONCommand):
    help = "Returns the codes of a hold to stock, once it is certain that nobody has them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("hold", type=whole_number, help="the number that hold_codes printed")

    def answer(self, **options: Any) -> dict[str, Any]:
        return {"hold": options["hold"], "released": release_hold(options["hold"])}
