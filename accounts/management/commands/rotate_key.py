from typing import Any

from django.core.management.base import CommandParser

from accounts.services import rotate_client_key
from config.command_line import JSONCommand


class Command(JSONCommand):
    help = "Gives a client a new key; its orders, limits and allowlist stay."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", type=int)
        parser.add_argument(
            "--overlap-hours",
            type=int,
            default=24,
            metavar="N",
            help="how long the keys before it still work (default: 24; 0 ends them now)",
        )

    def answer(self, **options: Any) -> dict[str, Any]:
        key = rotate_client_key(
            client_id=options["client_id"], overlap_hours=options["overlap_hours"]
        )
        return {"client_id": options["client_id"], "api_key": key}
