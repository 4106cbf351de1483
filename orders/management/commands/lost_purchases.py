from typing import Any

from django.core.management.base import CommandParser

from accounts.models import Account
from core.command_line import JSONCommand, shell_actor, whole_number
from core.database.columns import NOTE_LENGTH
from core.inputs import InputProblem, clean_text, find_row
from orders.recovery.settlements import (
    open_purchases,
    settle_lost_purchases,
    show_lost_purchases,
    write_notice,
)


class Command(JSONCommand):
    help = (
        "Shows and settles the purchases that a restore of the database lost and hold_codes"
        " recorded. Each is settled once; a second run changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list", help="list every lost purchase, oldest first")
        notice = actions.add_parser("notice", help="print a text for a merchant about its own")
        notice.add_argument("account", type=whole_number)
        settle = actions.add_parser("settle", help="debit open ones, or record that you do not")
        which = settle.add_mutually_exclusive_group(required=True)
        which.add_argument("--reference", nargs="+", metavar="REFERENCE")
        which.add_argument("--account", type=whole_number, help="all of this account")
        which.add_argument("--all", action="store_true", help="all of every account")
        how = settle.add_mutually_exclusive_group(required=True)
        how.add_argument("--debit", action="store_true", help="debit the price")
        how.add_argument("--no-debit", action="store_true", help="the merchant pays nothing")
        settle.add_argument("--note", required=True, help="why; the merchant reads it")

    def answer(self, **options: Any) -> dict[str, Any]:
        if options["action"] == "list":
            return {"lost_purchases": list(show_lost_purchases())}
        if options["action"] == "notice":
            return {"notice": write_notice(find_row(Account.objects.all(), options["account"]))}
        purchases = open_purchases()
        if options["account"]:
            purchases = purchases.filter(client__account=options["account"])
        if options["reference"]:
            purchases = purchases.filter(reference__in=options["reference"])
            if unknown := set(options["reference"]) - {each.reference for each in purchases}:
                raise InputProblem(f"Not an open lost purchase: {', '.join(sorted(unknown))}.")
        return settle_lost_purchases(
            purchases,
            debits=options["debit"],
            note=clean_text(options["note"], what="note", max_length=NOTE_LENGTH),
            actor=shell_actor(),
        )
