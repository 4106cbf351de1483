from typing import Any

from django.core.management.base import CommandParser

from core.command_line import JSONCommand
from operators.sign_in.company.identities import unlink_company_account


class Command(JSONCommand):
    help = (
        "Unlinks a member of staff from their company account and ends the sessions that began with"
        " it. Safe to run twice."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def answer(self, **options: Any) -> dict[str, Any]:
        unlinked = unlink_company_account(username=options["username"])
        return {"username": options["username"], "unlinked": unlinked}
