from typing import Any

from django.core.management.base import CommandParser

from accounts.services import revoke_key_by_prefix
from config.command_line import JSONCommand


class Command(JSONCommand):
    help = "Ends a key at once. In `vk_0123456789ab_…` the prefix is 0123456789ab."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("prefix")

    def answer(self, **options: Any) -> dict[str, Any]:
        key = revoke_key_by_prefix(prefix=options["prefix"])
        return {"client_id": key.client_id, "prefix": key.prefix, "revoked_at": key.revoked_at}
