import argparse
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Q
from django.utils.dateparse import parse_datetime

from catalogue.models import Batch
from catalogue.stock.holds import hold_codes, next_codes
from core.command_line import JSONCommand, shell_actor, whole_number
from core.database.columns import NOTE_LENGTH
from core.inputs import InputProblem, clean_text, find_row
from orders.recovery.logged_purchases import LoggedPurchase, read_purchases
from orders.recovery.lost_purchases import count_unlogged_orders, hold_lost_purchases

DEFAULT_REASON = "Sold, and lost by a restore of the database"

FORGOTTEN = (
    "Warning: {} orders since --since are in none of these logs. If the log of a web host is"
    " missing, run the command again with the logs of all web hosts. The log of a killed process"
    " may lack its last lines."
)


class Command(JSONCommand):
    help = (
        "Run it after a restore that lost purchases. With --log, it holds the codes of purchases"
        " that the logs name and the database lacks, and their keys never buy again. With --all, it"
        " holds every code in stock, with --next the codes that each shelf sells next, and with"
        " --batch those of one import."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--log",
            nargs="+",
            type=Path,
            metavar="PATH",
            help="logs of all web processes, or folders with them; - reads standard input",
        )
        which.add_argument(
            "--batch", type=whole_number, metavar="ID", help="all codes of one import"
        )
        which.add_argument("--all", action="store_true", help="without logs: all codes in stock")
        which.add_argument(
            "--next",
            type=whole_number,
            metavar="N",
            help="without logs: the next N codes of each shelf, in the order of sale",
        )
        parser.add_argument(
            "--since",
            type=moment,
            metavar="TIME",
            help="with --log: before the time that was restored, such as 2026-11-22T10:00Z",
        )
        parser.add_argument(
            "--skip-damaged",
            action="store_true",
            help="with --log: go on without damaged lines, such as the torn last line of a crash",
        )
        parser.add_argument(
            "--skip-missing",
            action="store_true",
            help="with --log: go on although lines are missing that cannot be found",
        )
        parser.add_argument(
            "--killed",
            action="append",
            default=[],
            metavar="PROCESS",
            help="with --log: this process was killed on a host that went on; repeatable",
        )
        parser.add_argument("--reason", default=DEFAULT_REASON, metavar="TEXT")

    def answer(self, **options: Any) -> dict[str, Any]:
        reason = clean_text(options["reason"], what="reason", max_length=NOTE_LENGTH)
        if options["all"]:
            return _hold(Q(), reason)
        if options["next"] is not None:
            if options["next"] < 1:
                raise InputProblem("--next needs a number above 0.")
            return _hold(next_codes(options["next"]), reason)
        if options["batch"] is not None:
            return _hold(find_row(Batch.objects.all(), options["batch"]).its_codes, reason)
        if options["since"] is None:
            raise InputProblem("--log needs --since.")
        purchases = read_purchases(
            self._logs(options["log"]),
            since=options["since"],
            skip_damaged=options["skip_damaged"],
            skip_missing=options["skip_missing"],
            killed=options["killed"],
        )
        logged: set[str] = set()
        held = hold_lost_purchases(
            _note_references(logged, purchases), reason=reason, held_by=shell_actor()
        )
        if unlogged := count_unlogged_orders(logged, since=options["since"]):
            self.stderr.write(FORGOTTEN.format(unlogged))
        return held

    def _logs(self, paths: Iterable[Path]) -> list[Path]:
        """The files, and those in the folders and below, compressed ones too. Warns of a folder
        without any: not every host has copies of other hosts. Raises InputProblem if there is no
        file at all."""
        files: list[Path] = []
        for path in paths:
            below = path.rglob("*.log*") if path.is_dir() else [path]
            found = sorted(one for one in below if one == path or one.is_file())
            if not found:
                self.stderr.write(f"Warning: there is no *.log in {path}.")
            files += found
        if not files:
            raise InputProblem("There is no log in these folders. Give the folders that have them.")
        return files


def _note_references(
    references: set[str], purchases: Iterable[LoggedPurchase]
) -> Iterator[LoggedPurchase]:
    """The purchases, whose references are added to the set."""
    for purchase in purchases:
        references.add(purchase.reference)
        yield purchase


def _hold(codes: Q, reason: str) -> dict[str, Any]:
    hold, held = hold_codes(codes=codes, reason=reason, held_by=shell_actor())
    return {"hold": hold.pk if hold else None, "codes_held": held}


def moment(text: str) -> datetime:
    """A time with its zone; without one, nobody knows which hour is meant."""
    try:
        time = parse_datetime(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-11-22T10:00Z")
    return time
