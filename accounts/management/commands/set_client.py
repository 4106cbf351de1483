from typing import Any

from django.core.management.base import CommandParser

from accounts.services import change_client
from core.command_line import JSONCommand, whole_number


class Command(JSONCommand):
    help = "Changes a client and prints it. Options that are not given change nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", type=whole_number)
        switch = parser.add_mutually_exclusive_group()
        switch.add_argument("--disable", dest="enabled", action="store_false", default=None)
        switch.add_argument("--enable", dest="enabled", action="store_true", default=None)
        parser.add_argument(
            "--rate-limit", type=whole_number, metavar="N", help="requests per minute"
        )
        parser.add_argument(
            "--allow",
            action="append",
            metavar="CIDR",
            help="an address or network that may call; may be repeated. Replaces the allowlist."
            " 0.0.0.0/0 and ::/0 allow every address",
        )

    def answer(self, **options: Any) -> dict[str, Any]:
        client = change_client(
            client_id=options["client_id"],
            enabled=options["enabled"],
            rate_limit=options["rate_limit"],
            allowed_networks=options["allow"],
        )
        return {
            "client_id": client.pk,
            "name": client.name,
            "account_id": client.account_id,
            "enabled": client.enabled,
            "rate_limit_per_minute": client.rate_limit_per_minute,
            "allowed_networks": client.allowed_networks,
        }
