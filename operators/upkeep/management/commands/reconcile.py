import sys
from typing import Any

from django.core.management.base import CommandParser

from core.command_line import ServiceCommand
from core.json_output import dumps
from operators.upkeep.reconcile import reconcile


class Command(ServiceCommand):
    help = "Checks every invariant over all data and exits with 1 on any finding. Changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--decrypt",
            action="store_true",
            help="also open every sealed value, and check that each order has its own codes",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        result = reconcile(
            decrypt=options["decrypt"], report=lambda name: self.stderr.write(f"… {name}")
        )
        self.stdout.write(dumps(result).decode())
        if not result["ok"]:
            sys.exit(1)
