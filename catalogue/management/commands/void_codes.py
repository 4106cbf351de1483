from typing import Any

from django.core.management.base import CommandParser

from catalogue.stock.holds import void_hold
from core.command_line import JSONCommand, whole_number


class Command(JSONCommand):
    help = (
        "Voids the codes of a hold that another person made. They are never sold; this cannot be"
        " undone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("hold", type=whole_number, help="the number that hold_codes printed")

    def answer(self, **options: Any) -> dict[str, Any]:
        return {"hold": options["hold"], "voided": void_hold(options["hold"])}
