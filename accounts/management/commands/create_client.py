from typing import Any

from django.core.management.base import CommandParser

from accounts.services import create_client
from core.command_line import JSONCommand, whole_number


class Command(JSONCommand):
    help = (
        "Creates an API client and prints its key, which cannot be shown again. Each run"
        " creates another client."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--account",
            type=whole_number,
            metavar="ID",
            help="the account that pays; without one the client cannot buy",
        )
        parser.add_argument(
            "--rate-limit", type=whole_number, metavar="N", help="requests per minute"
        )
        parser.add_argument(
            "--allow",
            action="append",
            default=[],
            metavar="CIDR",
            help="an address or network that may call; may be repeated (default: anywhere)",
        )

    def answer(self, **options: Any) -> dict[str, Any]:
        client, key = create_client(
            name=options["name"],
            account_id=options["account"],
            rate_limit=options["rate_limit"],
            allowed_networks=options["allow"],
        )
        return {"client_id": client.pk, "api_key": key}
