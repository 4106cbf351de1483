"""The declarations of the upkeep for the back office (core/backoffice/)."""

from math import inf

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext_noop

from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Component,
    Expiring,
    Gauges,
    MenuEntry,
    MenuPage,
    Personal,
    Rights,
    Section,
    Severity,
    StaffRight,
    Unit,
    Watch,
    Whose,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.texts import lazy
from operators.frame.limits import ALIVE_SECONDS
from operators.telegram.updates.bot_cache import seconds_since_beat
from operators.upkeep import copies
from operators.upkeep.models import AGE, Heartbeat, HeartbeatKind, ReconcileRun

MEBIBYTE = 1024 * 1024
HEARTBEAT = "voucher_heartbeat_age_seconds"


def read_heartbeats() -> list[tuple[str, float]]:
    """The age of the newest heartbeat of each kind of process, in seconds; infinite if none."""
    found = dict(Heartbeat.objects.values_list("kind").annotate(age=AGE))
    ages = [
        (kind.value, max(0.0, found[kind].total_seconds()) if kind in found else inf)
        for kind in HeartbeatKind
    ]
    if settings.TELEGRAM_BOT_TOKEN:
        ages.append(("bot", _age_of_bot()))
    return ages


def _age_of_bot() -> float:
    try:
        seconds_ago = seconds_since_beat()
    except Exception:  # the cache is lost; its own gauge says so
        seconds_ago = None
    return inf if seconds_ago is None else seconds_ago


def may_open_system_page(user: User) -> bool:
    """Whether this person may see a line of the System page."""
    from operators.upkeep.monitoring import system_page  # noqa: PLC0415  reads all declarations

    return system_page.may_open(user)


GAUGES = [
    *copies.GAUGES,
    Gauges(
        {
            HEARTBEAT: "Time since the last sign of life of a process of this kind, on any host;"
            " +Inf if there is none. The bot has no value if no token is set.",
        },
        read_heartbeats,
        labels=["process"],
    ),
    Gauges(
        {
            "voucher_archiving_fails_seconds": "Time since the last WAL file was archived, while"
            " archiving fails, otherwise 0; no value if WAL is not archived.",
        },
        """
        SELECT CASE WHEN last_failed_time > coalesce(last_archived_time, '-infinity')
                    THEN extract(epoch FROM now() - coalesce(last_archived_time, stats_reset))
                    ELSE 0 END
          FROM pg_stat_archiver WHERE current_setting('archive_mode') <> 'off'
        """,
        seconds=30,
    ),
    Gauges(
        {
            "voucher_replica_behind_bytes": "WAL that a replica has not received, by its"
            " replication slot.",
        },
        """
        SELECT slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)
          FROM pg_replication_slots
         WHERE slot_type = 'physical' AND restart_lsn IS NOT NULL AND NOT pg_is_in_recovery()
        """,
        labels=["slot"],
    ),
    Gauges(
        {
            "voucher_oldest_id_age": "Ids that PostgreSQL has used since the oldest one that a row"
            " still carries, of this kind (`transaction` or `multixact`). It stops writing at 2.1"
            " billion.",
        },
        """
        SELECT kind, max(age)
          FROM pg_database
         CROSS JOIN LATERAL (VALUES ('transaction', age(datfrozenxid)),
                                    ('multixact', mxid_age(datminmxid))) AS ids (kind, age)
         GROUP BY kind
        """,
        labels=["kind"],
        seconds=30,
    ),
    Gauges(
        {
            "voucher_reconcile_age_seconds": "Time since the last complete run of reconcile began,"
            " or since the installation.",
            "voucher_reconcile_findings": "Findings of that run.",
            "voucher_reconcile_warnings": "Warnings of that run.",
        },
        """
        SELECT extract(epoch FROM now() - coalesce(started_at, min(applied), now())),
               jsonb_array_length(findings), jsonb_array_length(warnings)
          FROM django_migrations
          LEFT JOIN (SELECT started_at, findings, warnings FROM upkeep_reconcilerun
                      WHERE state IN ('clean', 'findings') AND started_at <= now()
                      ORDER BY started_at DESC LIMIT 1) AS last ON true
         GROUP BY started_at, findings, warnings
        """,
        seconds=30,
    ),
]


def _alive(title: str, process: str, alert: Alert, advice: str) -> Component:
    return Component(
        title=title,
        gauge=HEARTBEAT,
        labels={"process": process},
        unit=Unit.SECONDS,
        amber=ALIVE_SECONDS / 2,
        red=ALIVE_SECONDS,
        advice=advice,
        alert=alert,
        model=Heartbeat,
        every_exporter=True,
    )


RECONCILE_AGE = Component(
    title=lazy("Last complete reconcile"),
    gauge="voucher_reconcile_age_seconds",
    unit=Unit.SECONDS,
    amber=26 * 3600,
    red=28 * 3600,  # one day, the longest run, and an hour
    advice=lazy(
        "Check that the scheduler and a worker run, and look for reconcile_failed in the"
        " worker's log."
    ),
    alert=Alert(
        "VoucherReconcileOverdue",
        Severity.WARNING,
        "10m",
        "reconcile has not finished for {{ $value | humanizeDuration }}.",
    ),
    model=ReconcileRun,
    begins_with="voucher_reconcile_findings",
)
COMPONENTS = [
    _alive(
        lazy("Worker last seen"),
        "worker",
        Alert(
            "VoucherWorkerMissing",
            Severity.CRITICAL,
            "30s",
            "No worker has given a sign of life for a minute.",
        ),
        lazy(
            "Refunds, emails and announcements wait. Start a worker on at least one host, and check"
            " that it reaches the broker."
        ),
    ),
    _alive(
        lazy("Imports worker last seen"),
        "imports",
        Alert(
            "VoucherImportsMissing",
            Severity.WARNING,
            "1m",
            "No imports worker has given a sign of life for a minute.",
        ),
        lazy(
            "Files that staff upload wait, and so do large files to download. Start an imports"
            " worker on at least one host, and check that it reaches the broker."
        ),
    ),
    _alive(
        lazy("Scheduler last seen"),
        "beat",
        Alert(
            "VoucherSchedulerMissing",
            Severity.CRITICAL,
            "30s",
            "The scheduler has given no sign of life for a minute.",
        ),
        lazy(
            "Refunds and emails that a worker missed wait, and nothing is reconciled or deleted."
            " Start celery beat on exactly one host, and check that it reaches the broker."
        ),
    ),
    _alive(
        lazy("Telegram bot last seen"),
        "bot",
        Alert(
            "VoucherBotMissing",
            Severity.WARNING,
            "1m",
            "The Telegram bot has given no sign of life for a minute.",
        ),
        lazy(
            "Buttons in Telegram do nothing; the desk works. Start manage.py run_bot on exactly one"
            " host."
        ),
    ),
    *copies.COMPONENTS,
    Component(
        title=lazy("WAL archiving has failed for"),
        gauge="voucher_archiving_fails_seconds",
        unit=Unit.SECONDS,
        amber=0,
        red=600,
        advice=lazy(
            "A restore loses what is not archived, and the database's disk fills. The log of"
            " PostgreSQL says why archive_command fails."
        ),
        alert=Alert(
            "VoucherArchivingFails",
            Severity.CRITICAL,
            "5m",
            "PostgreSQL has archived no WAL for {{ $value | humanizeDuration }}.",
        ),
        model=Heartbeat,
        leads_to_list=False,
    ),
    Component(
        title=lazy("Replica behind"),
        gauge="voucher_replica_behind_bytes",
        unit=Unit.BYTES,
        amber=16 * MEBIBYTE,
        red=256 * MEBIBYTE,
        advice=lazy(
            "A failover to this replica loses purchases, and the primary's disk fills. Start the"
            " replica, or drop its replication slot."
        ),
        alert=Alert(
            "VoucherReplicaBehind",
            Severity.WARNING,
            "5m",
            "The replica {{ $labels.slot }} lacks {{ $value | humanize1024 }}B of WAL.",
        ),
        model=Heartbeat,
        leads_to_list=False,
    ),
    Component(
        title=lazy("Oldest transaction id"),
        gauge="voucher_oldest_id_age",
        unit=Unit.COUNT,
        amber=1_200_000_000,
        red=1_500_000_000,  # of 2,147,483,648; vacuum hurries from 1,600,000,000
        advice=lazy(
            "Vacuum does not keep up, or something holds it up: an old transaction, a replication"
            " slot, or a prepared transaction. PostgreSQL stops writing at 2.1 billion."
        ),
        alert=Alert(
            "VoucherTransactionIdsOld",
            Severity.CRITICAL,
            "10m",
            "The oldest {{ $labels.kind }} id is {{ $value | humanize }} ids old.",
        ),
        model=Heartbeat,
        leads_to_list=False,
        technical=True,
    ),
    RECONCILE_AGE,
    Component(
        title=lazy("Findings of the last reconcile"),
        gauge="voucher_reconcile_findings",
        unit=Unit.COUNT,
        amber=0,
        red=0,
        advice=lazy(
            "The books contradict each other. Correct nothing until the cause is known, and"
            " tell an administrator."
        ),
        alert=Alert(
            "VoucherReconcileFindings",
            Severity.CRITICAL,
            "1m",
            "Problems in the books that the last reconcile found: {{ $value }}.",
        ),
        model=ReconcileRun,
    ),
]

ALERTS = [
    Alert(
        "VoucherExporterDown",
        Severity.CRITICAL,
        "5m",
        "The exporter at {{ $labels.instance }} does not respond, or Prometheus does not scrape"
        " the gauges.",
        'up{job=~"voucher-.*"} == 0 or absent(voucher_database_up)',
    ),
    Alert(
        "VoucherDatabaseUnreachable",
        Severity.CRITICAL,
        "1m",
        "The database does not respond to the exporter.",
        "max(voucher_database_up) == 0",
    ),
    Alert(
        "VoucherGaugesFailed",
        Severity.WARNING,
        "10m",
        "{{ $value }} groups of gauges cannot be read, so their alerts cannot fire.",
        "max(voucher_gauges_failed) > 0",
    ),
    # Debian's node exporter and blackbox exporter (docs/operate/monitor.md).
    Alert(
        "VoucherDiskFull",
        Severity.CRITICAL,
        "10m",
        "{{ $labels.mountpoint }} of {{ $labels.instance }} has {{ $value | humanizePercentage }}"
        " of its space left.",
        'node_filesystem_avail_bytes{job="node",fstype!="tmpfs",fstype!="overlay"}'
        " / node_filesystem_size_bytes < 0.1",
    ),
    Alert(
        "VoucherClockOff",
        Severity.WARNING,
        "10m",
        "The clock of {{ $labels.instance }} is wrong, or nothing sets it.",
        'abs(node_timex_offset_seconds{job="node"}) > 0.5'
        ' or node_timex_sync_status{job="node"} == 0',
    ),
    Alert(
        "VoucherCertificateExpires",
        Severity.WARNING,
        "1h",
        "The certificate of {{ $labels.instance }} expires in {{ $value | humanizeDuration }}.",
        "min by (instance) (probe_ssl_earliest_cert_expiry) - time() < 14 * 86400",
    ),
    Alert(
        "VoucherProbeFails",
        Severity.CRITICAL,
        "2m",
        "{{ $labels.instance }} does not answer as it should, seen from outside.",
        "probe_success == 0",
    ),
    # It always fires: a service outside reports when it stops (deploy/prometheus/alertmanager.yml).
    Alert(
        "VoucherAlertsArrive",
        Severity.NONE,
        "0m",
        "Alerts reach the service that watches them.",
        "vector(1)",
    ),
]

WATCHES = [
    Watch(
        "reconcile_findings",
        lazy("Findings of the nightly reconcile"),
        """
        SELECT 'reconcile', format('Problems in the books that the last reconcile found: %%s',
                                   jsonb_array_length(findings)), id
          FROM (SELECT id, findings FROM upkeep_reconcilerun
                 WHERE state IN ('clean', 'findings') AND started_at <= statement_timestamp()
                 ORDER BY started_at DESC LIMIT 1) AS last
         WHERE jsonb_array_length(findings) > %(limit)s
        """,
        limit=0,
        unit=lazy("findings"),
        advice=lazy("Correct nothing until the cause is known, and tell an administrator."),
        model=ReconcileRun,
        sentences=[
            gettext_noop("Problems in the books that the last reconcile found: %(count)s"),
        ],
    ),
    Watch(
        "silent_process",
        lazy("Silent workers and scheduler"),
        # A host that is gone for a day is forgotten.
        """
        SELECT kind || ' ' || host,
               format('The %%s on %%s has given no sign of life for %%s minutes',
                                           CASE kind WHEN 'beat' THEN 'scheduler'
                                           WHEN 'imports' THEN 'imports worker' ELSE kind END,
                                           host, round(%(limit)s)), NULL
          FROM upkeep_heartbeat
         WHERE beat_at < now() - make_interval(mins => round(%(limit)s)::int)
        """,
        limit=5,
        unit=lazy("minutes without a sign of life"),
        advice=lazy("Start it again, or ignore this if the host was taken out of service."),
        model=Heartbeat,
        sentences=[
            gettext_noop(
                "The scheduler on %(host)s has given no sign of life for %(minutes)s minutes"
            ),
            gettext_noop(
                "The worker on %(host)s has given no sign of life for %(minutes)s minutes"
            ),
        ],
    ),
]

BACK_OFFICE = BackOffice(
    gauges=GAUGES,
    watches=WATCHES,
    components=COMPONENTS,
    alerts=ALERTS,
    expiring=[
        Expiring(
            kind="reconcile_runs",
            table="upkeep_reconcilerun",
            old="finished_at < %(before)s",
            days="runs",
        ),
    ],
    personal=[
        Personal(
            "upkeep_reconcilerun",
            Whose.STAFF,
            "who asked for a run",
            withheld=["asked_by"],
            kept="everything, until it expires",
        ),
    ],
    rights={
        "upkeep_copy": Rights.CHANGE,
        "upkeep_heartbeat": Rights.CHANGE,
        "upkeep_reconcilerun": Rights.CHANGE,
    },
    staff_rights=[
        StaffRight(
            Section.SYSTEM,
            lazy("See the runs of reconcile, and receive their findings by email"),
            read_access(ReconcileRun),
            [StaffRole.ADMINISTRATOR, StaffRole.FINANCE],
        ),
        StaffRight(
            Section.SYSTEM,
            lazy("Run reconcile now"),
            ["upkeep.run_reconcile", *read_access(ReconcileRun)],
            [StaffRole.ADMINISTRATOR, StaffRole.FINANCE],
        ),
        StaffRight(
            Section.SYSTEM,
            lazy("See the figures of the System page"),
            read_access(Heartbeat),
            [StaffRole.ADMINISTRATOR],
        ),
    ],
    menu=[MenuEntry(Section.RECORDS, lazy("Reconcile runs"), ReconcileRun, "fact_check")],
    menu_pages=[
        MenuPage(Section.SYSTEM, lazy("System"), "monitor_heart", "system", may_open_system_page)
    ],
)
