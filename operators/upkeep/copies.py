"""Copies that must lie outside the host (docs/operate/lost-host.md), and when each was last seen.

A job that copies something off the host writes a mark: a file in the folder MARKS that contains the
name of the host. A worker of that host stores the time of the mark. For the files of the host, a
person shows that the copy opens (deploy/backup/check-files).
"""

from datetime import UTC, datetime
from math import inf
from pathlib import Path

from django.db import transaction
from django.utils import timezone

from audit.models import AuditAction
from audit.services import record_action
from core.backoffice.declarations import Alert, Component, Gauges, Severity, Unit
from core.inputs import InputProblem
from core.texts import lazy
from operators.upkeep.models import Copy, CopyKind, Heartbeat

MARKS = Path("/run/voucher-copies")
GAUGE = "voucher_copy_age_seconds"
HOUR = 3600.0
DAY = 24 * HOUR


def note_copy(kind: CopyKind, *, host: str, seen_at: datetime) -> None:
    """Stores when a copy was seen outside."""
    Copy.objects.bulk_create(
        [Copy(kind=kind, host=host.strip()[:200], seen_at=seen_at)],
        update_conflicts=True,
        unique_fields=["kind", "host"],
        update_fields=["seen_at"],
    )


def note_marks() -> None:
    """Stores the marks of the jobs of this host."""
    for kind in CopyKind:
        mark = MARKS / kind.value
        if mark.is_file():
            seen_at = datetime.fromtimestamp(mark.stat().st_mtime, UTC)
            note_copy(kind, host=mark.read_text(), seen_at=seen_at)


@transaction.atomic
def forget_host(host: str) -> None:
    """Deletes what is known of the copies of a host that is gone.

    Raises InputProblem for an unknown host.
    """
    if not Copy.objects.filter(host=host).delete()[0]:
        raise InputProblem(f"Nothing is known of a host {host!r}.")
    record_action(actor=None, action=AuditAction.DELETED, on=Copy, reference=host)


def read_ages() -> list[tuple[str, float]]:
    """The seconds since each kind was seen outside; infinite if never.

    Of the purchase log, which each host has, the oldest copy counts; of other kinds, the newest.
    """
    seen: dict[str, datetime] = {}
    for kind, seen_at in Copy.objects.values_list("kind", "seen_at"):
        choose = min if kind == CopyKind.PURCHASE_LOG else max
        seen[kind] = choose(seen_at, seen.get(kind, seen_at))
    now = timezone.now()
    return [
        (kind.value, max(0.0, (now - seen[kind]).total_seconds()) if kind in seen else inf)
        for kind in CopyKind
    ]


def _age(never: str, last: str) -> str:
    """The text of an alert about an age, which is +Inf if there never was a copy."""
    return f"{{{{ if gt $value 1e12 }}}}{never}{{{{ else }}}}{last}{{{{ end }}}}"


def _component(
    title: str, kind: CopyKind, alert: Alert, advice: str, *, amber: float, red: float
) -> Component:
    return Component(
        title=title,
        gauge=GAUGE,
        labels={"copy": kind.value},
        unit=Unit.SECONDS,
        amber=amber,
        red=red,
        advice=advice,
        alert=alert,
        model=Heartbeat,
        leads_to_list=False,
        set_up_later=True,
    )


GAUGES = [
    Gauges(
        {
            GAUGE: "Time since a copy of this kind was last seen outside the host; +Inf if never."
            " Of the purchase log, that of the host whose copy is the oldest.",
        },
        read_ages,
        labels=["copy"],
        seconds=30,
    ),
]
COMPONENTS = [
    _component(
        lazy("Copy of keys and settings"),
        CopyKind.FILES,
        Alert(
            "VoucherCopyOfFilesOld",
            Severity.WARNING,
            "1h",
            _age(
                "No copy of the host's files was ever opened.",
                "The copy of the host's files was last opened {{ $value | humanizeDuration }} ago.",
            ),
        ),
        lazy(
            "Without these files of the host, no stored code opens after its loss. Bring the"
            " encrypted copy back from outside, and run deploy/backup/check-files with it."
        ),
        amber=90 * DAY,
        red=100 * DAY,
    ),
    _component(
        lazy("Last backup"),
        CopyKind.BACKUP,
        Alert(
            "VoucherBackupOld",
            Severity.CRITICAL,
            "10m",
            _age("There is no backup.", "The last backup is {{ $value | humanizeDuration }} old."),
        ),
        lazy(
            "If there never was one, set up the nightly backup before you sell with real money."
            " If it failed, look for the reason on the database's host, and start it again."
        ),
        amber=26 * HOUR,
        red=50 * HOUR,  # two nights and two hours
    ),
    _component(
        lazy("Copy of the purchase log"),
        CopyKind.PURCHASE_LOG,
        Alert(
            "VoucherCopyOfLogOld",
            Severity.WARNING,
            "10m",
            _age(
                "The purchase log of a host was never copied.",
                "The purchase log of a host was last copied {{ $value | humanizeDuration }} ago.",
            ),
        ),
        lazy(
            "It names what was sold since the last backup. Without it, a restore would have to hold"
            " every code in stock. Start ship-purchases.timer, or look at what its service says."
            " manage.py check_recovery shows the hosts."
        ),
        amber=120,
        red=600,
    ),
    _component(
        lazy("Copy of the signatures of the ledger"),
        CopyKind.ROOTS,
        Alert(
            "VoucherCopyOfRootsOld",
            Severity.WARNING,
            "1h",
            _age(
                "The signed roots never left the host.",
                "The signed roots last left the host {{ $value | humanizeDuration }} ago.",
            ),
        ),
        lazy(
            "Only signatures kept outside can show that nobody rewrote the ledger. Start"
            " voucher-evidence.timer, or look at what its service says."
        ),
        amber=26 * HOUR,
        red=50 * HOUR,
    ),
]
