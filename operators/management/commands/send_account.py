from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from config.command_line import JSONCommand
from operators.account_transfers.sending import send_account


class Command(JSONCommand):
    help = (
        "Ends an account's purchases in this cell for ever, and writes the account to a file for"
        " another cell. Run it again to write the file again (docs/operate/cells.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("account", type=int, help="its id")
        parser.add_argument("--to", required=True, metavar="CELL")
        parser.add_argument("--reference", required=True, help="names this transfer in both cells")
        parser.add_argument("--file", required=True, type=Path)
        parser.add_argument(
            "--trial", action="store_true", help="close nothing; the file is only to be checked"
        )

    def answer(self, **options: Any) -> dict[str, Any]:
        wallet = send_account(
            account_id=options["account"],
            to=options["to"],
            reference=options["reference"],
            path=options["file"],
            trial=options["trial"],
        )
        return {"account": wallet.pk, "to": options["to"], "balance": wallet.balance}
