import socket
import sys
from collections.abc import Collection
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from core.command_line import ServiceCommand, acting_from_shell
from core.database.key_ring import check_stored_root
from core.json_output import dumps
from core.texts import english
from operators.upkeep.copies import COMPONENTS, forget_host, note_copy, read_ages
from operators.upkeep.models import Copy, CopyKind
from operators.upkeep.monitoring.system_lines import Health, judge


class Command(ServiceCommand):
    help = (
        "Shows when each thing that must lie outside the host was last seen there, and what to do."
        " Exits with 1 if one was never seen, or too long ago."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--seen",
            choices=CopyKind.values,
            help="first note that it was seen outside now; for `files`, the keys of this process"
            " must open the stored values",
        )
        parser.add_argument(
            "--host", default=socket.gethostname(), help="with --seen: the host of the copy"
        )
        parser.add_argument("--forget", metavar="HOST", help="first forget a host that is gone")

    def handle(self, *args: Any, **options: Any) -> None:
        with acting_from_shell():
            if kind := options["seen"]:
                if kind == CopyKind.FILES:
                    check_stored_root()
                note_copy(CopyKind(kind), host=options["host"], seen_at=timezone.now())
            if options["forget"] is not None:
                forget_host(options["forget"])
        copies = _copies([options["seen"]] if options["seen"] else CopyKind.values)
        ok = all(copy["state"] == Health.GREEN.name.lower() for copy in copies)
        self.stdout.write(dumps({"ok": ok, "copies": copies}).decode())
        if not ok:
            sys.exit(1)


def _copies(kinds: Collection[str]) -> list[dict[str, Any]]:
    """Each of these kinds, as the System page judges it."""
    ages = dict(read_ages())
    copies = []
    for component in COMPONENTS:
        if (kind := component.labels["copy"]) not in kinds:
            continue
        health = judge(component, ages[kind])
        seen = Copy.objects.filter(kind=kind).order_by("host")
        copies.append(
            {
                "copy": kind,
                "state": health.name.lower(),
                "last_seen": dict(seen.values_list("host", "seen_at")),
                "advice": "" if health is Health.GREEN else english(component.advice),
            }
        )
    return copies
