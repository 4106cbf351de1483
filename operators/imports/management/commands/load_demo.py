from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from core.command_line import ServiceCommand, acting_from_shell
from operators.imports.demo.shop import load_demo, welcome


class Command(ServiceCommand):
    """Prints text, not JSON: `make run` shows it to people who try the service."""

    help = "Fills an empty database with a demo shop, its sales of three months and an admin user."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--base-url", default="http://127.0.0.1:8000", metavar="URL")
        parser.add_argument(
            "--force", action="store_true", help="load it even if DJANGO_HTTPS is on"
        )
        parser.add_argument("--no-history", action="store_true", help="add no sales")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.HTTPS and not options["force"]:
            raise CommandError(
                "Demo data is not loaded while DJANGO_HTTPS is on. Add --force to load it anyway."
            )
        with acting_from_shell():
            demo = load_demo(with_history=not options["no_history"])
        self.stdout.write(welcome(demo, base_url=options["base_url"]))
