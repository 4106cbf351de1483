from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from core.command_line import JSONCommand, whole_number
from operators.upkeep.personal_data import By, delete_person, find_person, hand_over_person


class Command(JSONCommand):
    help = (
        "Finds, hands over and deletes what is stored about a person"
        " (docs/operate/personal-data.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        find = actions.add_parser("find", help="count the rows about a person, by table")
        find.add_argument("text", help="an email, a name, a Telegram user ID or a player ID")
        hand_over = actions.add_parser("hand_over", help="write the rows to a new file, as JSON")
        delete = actions.add_parser(
            "delete", help="show what would be deleted and what is kept; with --apply, delete"
        )
        for one in (hand_over, delete):
            one.add_argument("by", choices=[by.value for by in By])
            one.add_argument("text")
            one.add_argument(
                "--product",
                type=whole_number,
                action="append",
                default=[],
                metavar="ID",
                help="with player_id: a top-up product of this player; may be repeated",
            )
        hand_over.add_argument("--to", required=True, type=Path, metavar="FILE")
        delete.add_argument("--apply", action="store_true")

    def answer(self, **options: Any) -> dict[str, Any]:
        if options["action"] == "find":
            return find_person(options["text"])
        by, text, products = By(options["by"]), options["text"], options["product"]
        if options["action"] == "hand_over":
            return hand_over_person(by, text, products=products, to=options["to"])
        return delete_person(by, text, products=products, apply=options["apply"])
