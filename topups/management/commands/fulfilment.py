from typing import Any

from django.core.management.base import CommandParser

from core.command_line import JSONCommand, whole_number
from topups.fulfilment.fulfilment_command import list_open, move_by_command, show_one
from topups.fulfilment.transitions import Move
from topups.models import RejectReason


class Command(JSONCommand):
    help = (
        "Shows top-up orders and moves them: claim, release, complete, review or reject. A move"
        " names the version that you saw. If the order has moved since then, nothing is changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list", help="list open top-up orders, oldest first")
        show = actions.add_parser("show", help="show one top-up order and its version")
        show.add_argument("reference")
        for move in (Move.CLAIM, Move.RELEASE, Move.COMPLETE, Move.REVIEW, Move.REJECT):
            action = actions.add_parser(move.value)
            action.add_argument("reference")
            action.add_argument(
                "--version",
                required=True,
                type=whole_number,
                help="the version of the order that you saw, as `list` and `show` print it",
            )
            action.add_argument("--operator", required=True, metavar="USERNAME")
            action.add_argument("--note", default="", metavar="TEXT")
            if move == Move.REJECT:
                action.add_argument("--reason", choices=RejectReason.values, default="other")
                action.add_argument(
                    "--message", default="", metavar="TEXT", help="what the merchant reads"
                )
                action.add_argument(
                    "--no-refund",
                    action="store_true",
                    help="for a senior operator, from review only",
                )

    def answer(self, **options: Any) -> dict[str, Any]:
        if options["action"] == "list":
            return {"fulfilments": list_open()}
        if options["action"] == "show":
            return show_one(options["reference"])
        return move_by_command(
            reference=options["reference"],
            version=options["version"],
            move=Move.REJECT_UNREFUNDED if options.get("no_refund") else Move(options["action"]),
            username=options["operator"],
            reason=RejectReason(options.get("reason") or "other"),
            note=options["note"],
            message=options.get("message") or "",
        )
