from typing import Any

from django.core.management.base import CommandParser

from accounts.services import change_account
from core.command_line import JSONCommand, whole_number


class Command(JSONCommand):
    help = "Switches an account with all its clients off or on, and prints the account."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account_id", type=whole_number)
        switch = parser.add_mutually_exclusive_group()
        switch.add_argument("--disable", dest="enabled", action="store_false", default=None)
        switch.add_argument("--enable", dest="enabled", action="store_true", default=None)

    def answer(self, **options: Any) -> dict[str, Any]:
        account = change_account(account_id=options["account_id"], enabled=options["enabled"])
        return {
            "account_id": account.pk,
            "name": account.name,
            "currency": account.currency,
            "enabled": account.enabled,
        }
