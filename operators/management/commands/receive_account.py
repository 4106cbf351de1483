from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from config.command_line import JSONCommand
from operators.account_transfers.receiving import moved_keys, receive_account


class Command(JSONCommand):
    help = (
        "Adds the account of another cell's file, once, and prints the lines for HAProxy's"
        " moved.map. The file of a trial is only checked: it adds nothing (docs/operate/cells.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def answer(self, **options: Any) -> dict[str, Any]:
        received = receive_account(path=options["file"])
        transfer = received.transfer
        if received.trial:
            return {"reference": transfer.reference, "from": transfer.cell, "trial": True}
        return {
            "reference": transfer.reference,
            "from": transfer.cell,
            "received_before": received.before,
            "account": transfer.account_id,
            "moved_map": moved_keys(transfer.account, settings.CELL),
        }
