from typing import Any

from django.core.management.base import CommandParser

from config.command_line import JSONCommand, amount
from wallets.provisioning import book_deposit


class Command(JSONCommand):
    help = (
        "Books what a merchant paid in. A negative amount is booked as an adjustment. Acts again"
        " each time it is run."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account_id", type=int)
        parser.add_argument("amount", type=amount)
        parser.add_argument(
            "--note", default="", metavar="TEXT", help="the reason, kept in the ledger"
        )

    def answer(self, **options: Any) -> dict[str, Any]:
        entry = book_deposit(
            account_id=options["account_id"],
            amount=options["amount"],
            actor="command:deposit",
            note=options["note"],
        )
        return {
            "account_id": entry.wallet_id,
            "entry_id": entry.pk,
            "kind": entry.kind,
            "amount": entry.amount,
            "balance": entry.balance_after,
        }
