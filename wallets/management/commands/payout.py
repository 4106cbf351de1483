from typing import Any

from django.core.management.base import CommandParser

from core.command_line import JSONCommand, amount, shell_actor, whole_number
from wallets.booking_commands import add_booking_arguments, book_payout


class Command(JSONCommand):
    help = (
        "Books what was paid out to a merchant. The same reference is booked once: a second run"
        " prints the first booking."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account_id", type=whole_number)
        parser.add_argument("amount", type=amount)
        add_booking_arguments(parser)

    def answer(self, **options: Any) -> dict[str, Any]:
        return book_payout(
            account_id=options["account_id"],
            amount=options["amount"],
            booking_reference=options["reference"],
            actor=shell_actor(),
            note=options["note"],
        )
