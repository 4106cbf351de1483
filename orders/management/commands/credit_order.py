from typing import Any

from django.core.management.base import CommandParser

from core.command_line import JSONCommand, amount, shell_actor
from orders.remedies.credits import credit_order
from topups.models import Channel
from wallets.booking_commands import add_booking_arguments, book_once, refuse_unbookable


class Command(JSONCommand):
    help = (
        "Credits a part or all of what an order cost. The same reference is booked once: a second"
        " run prints the first booking."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("order_reference")
        parser.add_argument("amount", type=amount)
        add_booking_arguments(parser, note="what the merchant reads in the statement")

    def answer(self, **options: Any) -> dict[str, Any]:
        refuse_unbookable(options["amount"])
        return book_once(
            lambda: credit_order(
                reference=options["order_reference"],
                amount=options["amount"],
                note=options["note"],
                actor=shell_actor(),
                channel=Channel.COMMAND,
                booking_reference=options["reference"],
            )
        )
