from typing import Any

from django.core.management.base import CommandParser

from accounts.api_access.keys import find_key, revoke_key
from core.command_line import JSONCommand


class Command(JSONCommand):
    help = "Ends a key at once. The prefix of `vk_0123456789ab_…` is 0123456789ab."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("prefix")

    def answer(self, **options: Any) -> dict[str, Any]:
        key = find_key(options["prefix"])
        revoke_key(key=key, actor=None)
        return {"client_id": key.client_id, "prefix": key.prefix, "revoked_at": key.revoked_at}
